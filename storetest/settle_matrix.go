package storetest

import (
	"fmt"
	"time"

	"github.com/pacht-queue/pacht"
)

// settleMatrix walks the product of facts and outcomes, each on a row of its own.
func settleMatrix(c *kase) {
	const delay = 90 * time.Second
	endings := []pacht.Settlement{
		{Outcome: pacht.OutcomeCompleted},
		{Outcome: pacht.OutcomeCompleted, Delay: delay, GiveBack: true, Permanent: true},
		{Outcome: pacht.OutcomeFailed},
		{Outcome: pacht.OutcomeFailed, Delay: delay},
		{Outcome: pacht.OutcomeFailed, Delay: delay, GiveBack: true},
		{Outcome: pacht.OutcomeFailed, Delay: delay, Permanent: true},
		{Outcome: pacht.OutcomeFailed, GiveBack: true, Permanent: true},
		{Outcome: pacht.OutcomeReleased},
		{Outcome: pacht.OutcomeReleased, Delay: delay},
		{Outcome: pacht.OutcomeSnoozed, Delay: delay},
		{Outcome: pacht.OutcomeCancelled},
		{Outcome: pacht.OutcomeUnknown, Delay: delay},
		{Outcome: pacht.OutcomeExpired},
	}
	type row struct {
		facts  pacht.Facts
		ending pacht.Settlement
		runAt  time.Time
	}
	var plan []row
	for attempt := 1; attempt <= 3; attempt++ {
		for crashes := range 3 {
			for _, policy := range []pacht.CrashPolicy{pacht.CrashRetry, pacht.CrashHold} {
				for _, cancel := range []bool{false, true} {
					for _, ending := range endings {
						plan = append(plan, row{ending: ending, facts: pacht.Facts{
							Attempt: attempt, MaxAttempts: 3, Crashes: crashes, MaxCrashes: 3,
							TTL: 40 * time.Second, CrashPolicy: policy, CancelRequested: cancel}})
					}
				}
			}
		}
	}
	jobs := make([]pacht.NewJob, len(plan))
	for i, p := range plan {
		jobs[i] = c.new(pacht.MaxAttempts(3), pacht.MaxCrashes(3), pacht.TTL(p.facts.TTL), pacht.OnCrash(p.facts.CrashPolicy))
	}
	ids := c.enqueue(jobs...)
	c.same("claimed", len(c.claim("a", len(ids))), len(ids))
	// The rows as they would be after earlier attempts, crashes and requests.
	for i := 0; i < len(plan); i += len(endings) {
		f := plan[i].facts
		c.sql("UPDATE {leases} SET attempt = %d, token = 5, crashes = %d, cancel_requested = %v WHERE job_id BETWEEN %d AND %d",
			f.Attempt, f.Crashes, f.CancelRequested, ids[i], ids[i+len(endings)-1])
	}
	var batch []pacht.Settlement
	for i, p := range plan {
		if p.ending.Outcome == pacht.OutcomeReleased {
			plan[i].runAt = c.job(ids[i]).RunAt
		}
		if p.ending.Outcome != pacht.OutcomeExpired {
			p.ending.Ref = pacht.Ref{Job: ids[i], Token: 5}
			batch = append(batch, p.ending)
		}
	}
	answers, err := c.Store.Settle(c.ctx, batch)
	c.must(err)
	status := map[pacht.ID]pacht.Status{}
	for _, a := range answers {
		c.must(a.Err)
		status[a.Ref.Job] = a.Status
	}
	before := c.now()
	aged := 2 * time.Minute
	c.age(aged)
	for _, e := range c.watch().Expired {
		status[e.Ref.Job] = e.Next
	}
	for i, p := range plan {
		next := pacht.Next(p.facts, p.ending)
		what := fmt.Sprintf("%+v, %s delay %s give back %v permanent %v", p.facts, p.ending.Outcome, p.ending.Delay, p.ending.GiveBack, p.ending.Permanent)
		j, ledger := c.job(ids[i]), c.ledger(ids[i])
		if j.Status != next.Status || status[ids[i]] != next.Status {
			c.Errorf("%s: status %s, answered %s, want %s", what, j.Status, status[ids[i]], next.Status)
			continue
		}
		if len(ledger) != 1 {
			c.Errorf("%s: ledger %+v", what, ledger)
			continue
		}
		a := ledger[0]
		c.same(what+": ledger", [6]any{a.Token, a.Attempt, a.Owner, a.Outcome, a.NextStatus, a.NextRunAt.IsZero()},
			[6]any{pacht.Token(5), p.facts.Attempt, "a", p.ending.Outcome, next.Status, next.Status != pacht.Pending})
		c.same(what+": token", j.Token, pacht.Token(5))
		if next.Status.Finished() {
			c.near(what+": finished_at", j.FinishedAt, a.EndedAt)
			continue
		}
		c.same(what+": row", [6]any{j.Attempt, j.Crashes, j.CancelRequested, j.LeaseOwner, j.LeaseUntil.IsZero(), j.ClaimedAt.IsZero()},
			[6]any{next.Attempt, next.Crashes, false, "", true, true})
		if next.Status == pacht.Stuck {
			c.same(what+": run_at of a parked job is not shown", j.RunAt.IsZero(), true)
			continue
		}
		want := a.EndedAt.Add(next.Delay)
		if p.ending.Outcome == pacht.OutcomeReleased && p.ending.Delay == 0 {
			want = plan[i].runAt.Add(-aged)
		}
		if d := j.RunAt.Sub(want); d < -2*time.Millisecond || d > 2*time.Millisecond {
			c.Errorf("%s: run_at is off by %s", what, d)
		}
		if !a.NextRunAt.Equal(j.RunAt) {
			c.Errorf("%s: next_run_at %s, run_at %s", what, a.NextRunAt, j.RunAt)
		}
		if p.ending.Outcome == pacht.OutcomeExpired && a.EndedAt.Before(before) {
			c.Errorf("%s: ended_at %s is not the database's now", what, a.EndedAt)
		}
	}
}
