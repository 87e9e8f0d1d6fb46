package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pacht-queue/pacht"
)

// book is the caller's own table, which a broken transaction must leave alone.
func (c *kase) book() {
	c.Helper()
	c.sql("CREATE TABLE IF NOT EXISTS {business} (note text)")
	c.sql("DELETE FROM {business}")
}

func (c *kase) begin() Txn {
	c.Helper()
	tx, err := c.Begin(c.ctx)
	c.must(err)
	c.begun = append(c.begun, tx)
	return tx
}

// booked counts the business rows that are committed.
func (c *kase) booked() string {
	c.Helper()
	return c.query("SELECT count(*) FROM {business}")[0]
}

func (c *kase) note(tx Txn, text string) error {
	return tx.Exec(c.ctx, c.named("INSERT INTO {business} VALUES ('%s')", text))
}

// brokenTx writes a business row, runs fn, which must fail, ignores that, writes again and
// commits: nothing of it may be kept (R4).
func (c *kase) brokenTx(fn func(tx Txn) error) {
	c.Helper()
	c.book()
	tx := c.begin()
	c.must(c.note(tx, "before"))
	if fn(tx) == nil {
		c.Error("accepted in the transaction")
	}
	// Both may fail and commit must; what counts is what is there afterwards.
	_ = c.note(tx, "after")
	if err := tx.Commit(c.ctx); err == nil {
		c.Error("the broken transaction was committed without an error")
	}
	_ = tx.Rollback(c.ctx)
	c.same("business rows", c.booked(), "0")
}

// inTx runs fn in a transaction and commits it.
func (c *kase) inTx(fn func(tx Txn)) {
	c.Helper()
	tx := c.begin()
	fn(tx)
	c.must(tx.Commit(c.ctx))
}

// complete is what a handler does: a business row and the completion, both or neither.
func (c *kase) complete(tx Txn, ref pacht.Ref) error {
	if err := c.note(tx, "paid "+ref.String()); err != nil {
		return err
	}
	return tx.SettleTx(c.ctx, pacht.Settlement{Ref: ref, Outcome: pacht.OutcomeCompleted})
}

func txCases(g *group) {
	g.run("R4/completing in a transaction commits with the business write", func(c *kase) {
		c.book()
		held := c.take("a")
		c.inTx(func(tx Txn) { c.must(c.complete(tx, held.Ref())) })
		c.same("business rows", c.booked(), "1")
		c.same("ledger", c.outcomes(held.ID), "1 Completed Completed")
		again := c.close(held.Ref(), pacht.OutcomeCompleted)
		c.same("a settle afterwards is a repeat", [2]any{again.Repeated, again.Status}, [2]any{true, pacht.Completed})
	})
	g.run("R4, S077/a rollback leaves the lease held and no business write", func(c *kase) {
		c.book()
		held := c.take("a")
		before := c.lease(held.ID)
		tx := c.begin()
		c.must(c.complete(tx, held.Ref()))
		c.must(tx.Rollback(c.ctx))
		c.same("business rows", c.booked(), "0")
		c.same("the row", c.lease(held.ID), before)
		c.same("ledger", len(c.ledger(held.ID)), 0)
		c.same("renewal", c.renew(held.Ref()).State, pacht.RenewExtended)
		c.inTx(func(tx Txn) { c.must(c.complete(tx, held.Ref())) })
		c.same("business rows", c.booked(), "1")
	})
	g.run("R4/repeating a transaction whose COMMIT went unanswered books nothing twice", func(c *kase) {
		c.book()
		held := c.take("a")
		c.inTx(func(tx Txn) { c.must(c.complete(tx, held.Ref())) })
		tx := c.begin()
		if err := c.complete(tx, held.Ref()); !errors.Is(err, pacht.ErrAlreadySettled) || errors.Is(err, pacht.ErrLeaseLost) {
			c.Errorf("got %v, want already settled", err)
		}
		if err := tx.Commit(c.ctx); err == nil {
			c.Error("the repeated transaction was committed")
		}
		_ = tx.Rollback(c.ctx)
		c.same("business rows", c.booked(), "1")
		c.same("ledger", c.outcomes(held.ID), "1 Completed Completed")
	})
	g.run("R4/a second completion in the same transaction is not answered from the ledger", func(c *kase) {
		held := c.take("a")
		before := c.lease(held.ID)
		c.brokenTx(func(tx Txn) error {
			c.must(c.complete(tx, held.Ref()))
			err := c.complete(tx, held.Ref())
			if !errors.Is(err, pacht.ErrAlreadySettled) {
				c.Errorf("got %v, want already settled", err)
			}
			return err
		})
		c.same("the row", c.lease(held.ID), before)
	})
	g.run("R4/completing what was closed otherwise is a lost lease and breaks the transaction", func(c *kase) {
		for _, outcome := range []pacht.Outcome{pacht.OutcomeFailed, pacht.OutcomeUnknown, pacht.OutcomeCancelled, pacht.OutcomeReleased} {
			held := c.take("a")
			c.close(held.Ref(), outcome)
			c.brokenTx(func(tx Txn) error {
				err := c.complete(tx, held.Ref())
				c.same("outcome in the error", c.lost(err, held.Ref()).Outcome, outcome)
				return err
			})
		}
	})
	g.run("R7/completing in a transaction past lease_until is accepted and late, while nobody took the lease", func(c *kase) {
		c.book()
		held := c.take("a")
		c.age(2 * pacht.DefaultTTL)
		c.inTx(func(tx Txn) { c.must(c.complete(tx, held.Ref())) })
		c.same("late", c.ledger(held.ID)[0].Late, true)
	})
	g.run("every outcome can be settled in a transaction, as Settle does", func(c *kase) {
		for _, s := range []pacht.Settlement{
			{Outcome: pacht.OutcomeFailed, Delay: time.Hour, Error: "a\x00b"},
			{Outcome: pacht.OutcomeFailed, Permanent: true},
			{Outcome: pacht.OutcomeFailed, GiveBack: true},
			{Outcome: pacht.OutcomeReleased},
			{Outcome: pacht.OutcomeSnoozed, Delay: time.Minute},
			{Outcome: pacht.OutcomeCancelled},
			{Outcome: pacht.OutcomeUnknown, Output: json.RawMessage("no JSON")},
		} {
			held := c.take("a")
			s.Ref = held.Ref()
			c.inTx(func(tx Txn) { c.must(tx.SettleTx(c.ctx, s)) })
			want := pacht.Next(held.Facts(), s)
			c.same("ledger", c.outcomes(held.ID), fmt.Sprintf("1 %s %s", s.Outcome, want.Status))
			if j := c.job(held.ID); !want.Status.Finished() {
				c.same("attempt", j.Attempt, want.Attempt)
			}
		}
	})
	g.run("two leases are settled in one transaction, both or neither", func(c *kase) {
		c.book()
		first, second := c.take("a"), c.take("a")
		tx := c.begin()
		c.must(c.complete(tx, first.Ref()))
		c.must(c.complete(tx, second.Ref()))
		c.must(tx.Rollback(c.ctx))
		c.same("status", [2]pacht.Status{c.job(first.ID).Status, c.job(second.ID).Status}, [2]pacht.Status{pacht.Processing, pacht.Processing})
		c.inTx(func(tx Txn) {
			c.must(c.complete(tx, second.Ref()))
			c.must(c.complete(tx, first.Ref()))
		})
		c.same("business rows", c.booked(), "2")
	})
	g.run("a job and the business row that wants it commit together or not at all", func(c *kase) {
		c.book()
		tx := c.begin()
		c.must(c.note(tx, "payment"))
		answers, err := tx.EnqueueTx(c.ctx, []pacht.NewJob{c.keyed("k", 1), c.new()})
		c.must(err)
		c.must(tx.Rollback(c.ctx))
		if _, err := c.Store.Job(c.ctx, answers[0].ID); !errors.Is(err, pacht.ErrNotFound) {
			c.Errorf("after a rollback: %v", err)
		}
		c.same("keys", c.query("SELECT count(*) FROM {keys}")[0], "0")
		var id pacht.ID
		c.inTx(func(tx Txn) {
			c.must(c.note(tx, "payment"))
			answers, err := tx.EnqueueTx(c.ctx, []pacht.NewJob{c.keyed("k", 2)})
			c.must(err)
			id = c.fresh("the key is free again", answers[0])
		})
		c.same("business rows", c.booked(), "1")
		c.same("claimed", c.claimID("a", id).Attempt, 1)
	})
	g.run("R11/refusals, conflicts and duplicates leave the transaction usable", func(c *kase) {
		c.book()
		first := c.ask(c.keyed("k", 1)).ID
		c.inTx(func(tx Txn) {
			c.must(c.note(tx, "payment"))
			answers, err := tx.EnqueueTx(c.ctx, []pacht.NewJob{c.keyed("k", 2), c.keyed("k", 1), c.new(pacht.Priority(7)), c.keyed("new", 1)})
			c.must(err)
			c.conflict("other content", answers[0], first)
			c.duplicate("same content", answers[1], first)
			if answers[2].Err == nil {
				c.Error("priority 7 was accepted")
			}
			id := c.fresh("a new key", answers[3])
			answers, err = tx.EnqueueTx(c.ctx, []pacht.NewJob{c.keyed("new", 1), c.keyed("new", 2)})
			c.must(err)
			c.duplicate("of this transaction's own", answers[0], id)
			c.conflict("with this transaction's own", answers[1], id)
			c.must(c.note(tx, "and more"))
		})
		c.same("business rows", c.booked(), "2")
		c.same("jobs", c.query("SELECT count(*) FROM {jobs}")[0], "2")
	})
	g.run("R11/a key of an open transaction is waited for, not stored twice", func(c *kase) {
		other := c.Reopen(c.T)
		for _, commit := range []bool{true, false} {
			key := fmt.Sprint("k", commit)
			tx := c.begin()
			mine, err := tx.EnqueueTx(c.ctx, []pacht.NewJob{c.keyed(key, 1)})
			c.must(err)
			answers := make(chan pacht.Enqueued, 1)
			go func() {
				got, err := other.Enqueue(c.ctx, []pacht.NewJob{c.keyed(key, 1)})
				if err != nil {
					got = []pacht.Enqueued{{Err: err}}
				}
				answers <- got[0]
			}()
			if commit {
				c.must(tx.Commit(c.ctx))
				c.duplicate("after the commit", <-answers, mine[0].ID)
			} else {
				c.must(tx.Rollback(c.ctx))
				c.fresh("after the rollback", <-answers)
			}
		}
	})
	g.run("steps are written in the transaction, and gone with its rollback", func(c *kase) {
		held := c.take("a")
		tx := c.begin()
		c.must(tx.SetStepTx(c.ctx, held.Ref(), "charged", json.RawMessage(`{"n":1}`)))
		c.must(tx.Rollback(c.ctx))
		c.inTx(func(tx Txn) {
			c.must(tx.SetStepTx(c.ctx, held.Ref(), "charged", json.RawMessage(`{"n": 9007199254740993}`)))
			c.must(tx.SetStepTx(c.ctx, held.Ref(), "booked", nil))
			c.must(tx.SettleTx(c.ctx, pacht.Settlement{Ref: held.Ref(), Outcome: pacht.OutcomeCompleted}))
		})
		c.same("steps", c.steps(held.ID), `1 charged {"n": 9007199254740993}, 1 booked `)
	})
	g.run("R12, S045/a lease that another transaction has locked is busy and delays no other", lockedLease)
}

// steps is what a job has reached, in short.
func (c *kase) steps(id pacht.ID) string {
	c.Helper()
	list, err := c.Store.Steps(c.ctx, id)
	c.must(err)
	text := ""
	for i, s := range list {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%d %s %s", s.Token, s.Name, s.Data)
		c.near("at", s.At, c.now().Add(-10*time.Second))
	}
	return text
}
