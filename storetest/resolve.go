package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/pacht-queue/pacht"
)

func resolveTxCases(g *group) {
	done := pacht.Resolution{Status: pacht.Completed, Output: []byte(`{"psp": 9007199254740993}`)}
	g.run("R2, R10/resolving in a transaction commits with the business write, or neither is", func(c *kase) {
		c.book()
		for _, status := range []pacht.Status{pacht.Pending, pacht.Stuck} {
			for _, to := range []pacht.Resolution{done, {Status: pacht.Dead, Error: "a\x00b"}} {
				j := c.in(status)
				before, booked := c.lease(j.ID), c.booked()
				tx := c.begin()
				c.must(c.note(tx, "paid"))
				c.must(tx.ResolveTx(c.ctx, j.Ref(), to, act))
				c.must(tx.Rollback(c.ctx))
				c.same("the row", c.lease(j.ID), before)
				c.same("business rows", c.booked(), booked)
				c.inTx(func(tx Txn) {
					c.must(c.note(tx, "paid"))
					c.must(tx.ResolveTx(c.ctx, j.Ref(), to, act))
				})
				ledger := c.ledger(j.ID)
				last := ledger[len(ledger)-1]
				c.same("ledger", fmt.Sprint(last.Token, last.Attempt, last.Owner, last.Outcome, last.NextStatus, string(last.Output)),
					fmt.Sprint(j.Token+1, j.Attempt, act.By, pacht.OutcomeResolved, to.Status, string(to.Output)))
				audit, err := c.Store.Audit(c.ctx, j.ID)
				c.must(err)
				c.same("audit", fmt.Sprint(len(audit), audit[0].Act, audit[0].By), fmt.Sprint(1, "resolve", act.By))
			}
		}
		c.same("business rows", c.booked(), "4")
	})
	g.run("R2, R4, R10/of two that resolve one job in transactions at once, one wins, and the other cannot commit", func(c *kase) {
		c.book()
		for round := range 20 {
			j := c.in([]pacht.Status{pacht.Stuck, pacht.Pending}[round%2])
			before := c.booked()
			var won atomic.Int32
			c.together(3, func(int) {
				tx, err := c.Begin(c.ctx)
				if err != nil {
					c.Errorf("begin: %v", err)
					return
				}
				defer func() { _ = tx.Rollback(c.ctx) }()
				if err := c.note(tx, "paid"); err != nil {
					c.Errorf("note: %v", err)
				}
				err = tx.ResolveTx(c.ctx, j.Ref(), done, act)
				if err != nil && !errors.Is(err, pacht.ErrLeaseLost) {
					c.Errorf("resolve: %v", err)
				}
				commit := tx.Commit(c.ctx) // also of those who lost: they ignore the error
				if (err == nil) != (commit == nil) {
					c.Errorf("resolve: %v, commit: %v", err, commit)
				}
				if err == nil {
					won.Add(1)
				}
			})
			c.same("resolved", won.Load(), int32(1))
			c.same("business rows", c.query("SELECT count(*) - %s FROM {business}", before)[0], "1")
			c.same("token", c.job(j.ID).Token, j.Token+1)
		}
	})
	g.run("R4/whatever a resolve in a transaction refuses breaks it", func(c *kase) {
		stuck, held, finished := c.in(pacht.Stuck), c.in(pacht.Processing), c.in(pacht.Completed)
		ended, cancel := context.WithCancel(c.ctx)
		cancel()
		row := c.lease(stuck.ID) + c.lease(held.ID)
		for what, r := range map[string]struct {
			ctx  context.Context
			ref  pacht.Ref
			res  pacht.Resolution
			act  pacht.Act
			want error
		}{
			"a token that was": {c.ctx, pacht.Ref{Job: stuck.ID, Token: stuck.Token - 1}, done, act, pacht.ErrLeaseLost},
			"a held job":       {c.ctx, held.Ref(), done, act, pacht.ErrWrongStatus},
			"a finished job":   {c.ctx, finished.Ref(), done, act, pacht.ErrWrongStatus},
			"no job":           {c.ctx, pacht.Ref{Job: 1 << 40}, done, act, pacht.ErrNotFound},
			"no status":        {c.ctx, stuck.Ref(), pacht.Resolution{}, act, nil},
			"nobody":           {c.ctx, stuck.Ref(), done, pacht.Act{}, nil},
			"ended context":    {ended, stuck.Ref(), done, act, nil},
		} {
			c.brokenTx(func(tx Txn) error {
				err := tx.ResolveTx(r.ctx, r.ref, r.res, r.act)
				if r.want != nil && !errors.Is(err, r.want) {
					c.Errorf("%s: %v", what, err)
				}
				return err
			})
		}
		c.same("the rows", c.lease(stuck.ID)+c.lease(held.ID), row)
		c.same("audit", c.query("SELECT count(*) FROM {audit}")[0], "0")
	})
}
