package storetest

import (
	"errors"
	"fmt"

	"github.com/pacht-queue/pacht"
)

// lockedLease: on a database that locks rows, only that row is busy; on one that locks the
// file, the whole call is refused. Either way nothing is written, lost or waited for.
func lockedLease(c *kase) {
	c.many(3)
	held := c.claim("a", 3)
	later := c.one()
	tx := c.begin()
	c.must(tx.SettleTx(c.ctx, pacht.Settlement{Ref: held[1].Ref(), Outcome: pacht.OutcomeCompleted}))
	refs := []pacht.Ref{held[0].Ref(), held[1].Ref(), held[2].Ref()}

	renewed, err := c.Store.Renew(c.ctx, refs)
	if !c.wholeFileLocked(err) {
		c.must(err)
		for i, want := range []pacht.RenewState{pacht.RenewExtended, pacht.RenewBusy, pacht.RenewExtended} {
			c.same("renewal", fmt.Sprint(renewed.Rows[i].State), want.String())
		}
	}
	settled, err := c.Store.Settle(c.ctx, []pacht.Settlement{
		{Ref: refs[1], Outcome: pacht.OutcomeFailed}, {Ref: refs[2], Outcome: pacht.OutcomeCompleted}})
	if !c.wholeFileLocked(err) {
		c.must(err)
		if !errors.Is(settled[0].Err, pacht.ErrBusy) || settled[1].Err != nil || settled[1].Status != pacht.Completed {
			c.Errorf("settled %+v", settled)
		}
	}
	if _, err := c.Store.Release(c.ctx, refs[1], act); !errors.Is(err, pacht.ErrBusy) && !c.wholeFileLocked(err) {
		c.Errorf("release by hand: %v, want busy", err)
	}
	if _, err := c.Store.Cancel(c.ctx, refs[1].Job, act); !errors.Is(err, pacht.ErrBusy) && !c.wholeFileLocked(err) {
		c.Errorf("cancel by hand: %v, want busy", err)
	}
	if _, ok, err := c.Store.ClaimID(c.ctx, "b", refs[1].Job); ok || (err != nil && !c.wholeFileLocked(err)) {
		c.Errorf("claim by id: %v, %v", ok, err)
	}
	claims, err := c.Store.Claim(c.ctx, c.request("b", 10))
	if !c.wholeFileLocked(err) {
		c.must(err)
		if len(claims.Jobs) != 1 || claims.Jobs[0].ID != later {
			c.Errorf("claimed %+v", claims.Jobs)
		}
	}
	// Reading waits for nobody, and sees what is committed.
	c.same("status", c.job(refs[1].Job).Status, pacht.Processing)
	c.must(tx.Rollback(c.ctx))
	c.same("renewal", c.renew(refs[1]).State, pacht.RenewExtended)
	c.close(refs[1], pacht.OutcomeCompleted)
}
