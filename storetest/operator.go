package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pacht-queue/pacht"
)

// in makes a job with the given status, and answers it as it stands.
func (c *kase) in(status pacht.Status) pacht.JobInfo {
	c.Helper()
	id := c.one(pacht.MaxAttempts(5))
	end := map[pacht.Status]pacht.Settlement{
		pacht.Stuck:     {Outcome: pacht.OutcomeUnknown},
		pacht.Completed: {Outcome: pacht.OutcomeCompleted},
		pacht.Dead:      {Outcome: pacht.OutcomeFailed, Permanent: true},
		pacht.Cancelled: {Outcome: pacht.OutcomeCancelled},
	}
	if status != pacht.Pending {
		held := c.claimID("a", id)
		if s, ok := end[status]; ok {
			s.Ref = held.Ref()
			c.close(s.Ref, s.Outcome, func(to *pacht.Settlement) { *to = s })
		}
	}
	j := c.job(id)
	c.same("status", j.Status, status)
	return j
}

// acts are the verbs by hand, and where each applies.
var acts = []struct {
	name  string
	do    func(c *kase, j pacht.JobInfo, act pacht.Act) error
	from  []pacht.Status
	audit string
}{
	{"retry", func(c *kase, j pacht.JobInfo, act pacht.Act) error { return c.Store.Retry(c.ctx, j.ID, act) },
		[]pacht.Status{pacht.Stuck, pacht.Dead, pacht.Cancelled}, "retry"},
	{"cancel", func(c *kase, j pacht.JobInfo, act pacht.Act) error {
		_, err := c.Store.Cancel(c.ctx, j.ID, act)
		return err
	}, []pacht.Status{pacht.Pending, pacht.Stuck, pacht.Processing}, "cancel"},
	{"release", func(c *kase, j pacht.JobInfo, act pacht.Act) error {
		_, err := c.Store.Release(c.ctx, j.Ref(), act)
		return err
	}, []pacht.Status{pacht.Processing}, "release"},
	{"resolve", func(c *kase, j pacht.JobInfo, act pacht.Act) error {
		return c.Store.Resolve(c.ctx, j.Ref(), pacht.Resolution{Status: pacht.Dead, Error: "no"}, act)
	}, []pacht.Status{pacht.Pending, pacht.Stuck}, "resolve"},
}

func operatorCases(g *group) {
	for _, a := range acts {
		g.run("every act by hand applies only where the table says: "+a.name, func(c *kase) {
			for _, status := range pacht.Statuses {
				j := c.in(status)
				row, ledger := c.lease(j.ID), c.outcomes(j.ID)
				err := a.do(c, j, pacht.Act{By: "anna", Reason: "ticket 7"})
				audit, auditErr := c.Store.Audit(c.ctx, j.ID)
				c.must(auditErr)
				if slices.Contains(a.from, status) {
					c.must(err)
					want := a.audit
					if a.name == "cancel" && status == pacht.Processing {
						want = "cancel request"
					}
					if len(audit) != 1 || fmt.Sprint(audit[0].By, audit[0].Act, audit[0].Job, audit[0].Reason) != fmt.Sprint("anna", want, j.ID, "ticket 7") {
						c.Errorf("%s of a %s job: audit %+v", a.name, status, audit)
					}
					continue
				}
				// A release or resolve also bears a token, and may be refused for that.
				if !errors.Is(err, pacht.ErrWrongStatus) && !(errors.Is(err, pacht.ErrLeaseLost) && (a.name == "release" || a.name == "resolve")) {
					c.Errorf("%s of a %s job: %v, want a refusal", a.name, status, err)
				}
				var refusal *pacht.StatusError
				if errors.As(err, &refusal) && (refusal.Status != status || refusal.Job != j.ID || refusal.Act != a.name || refusal.Allow == "") {
					c.Errorf("%s of a %s job: %+v", a.name, status, refusal)
				}
				c.same("the row", c.lease(j.ID), row)
				c.same("the ledger", c.outcomes(j.ID), ledger)
				c.same("audit of a refused act", len(audit), 0)
			}
			missing := pacht.JobInfo{ID: 1 << 40, Token: 1}
			if err := a.do(c, missing, act); !errors.Is(err, pacht.ErrNotFound) && !errors.Is(err, pacht.ErrLeaseLost) {
				c.Errorf("%s of no job: %v", a.name, err)
			}
		})
		g.run("every act by hand bears a name and a reason: "+a.name, func(c *kase) {
			j := c.in(a.from[0])
			row, ledger := c.lease(j.ID), c.outcomes(j.ID)
			for _, bad := range []pacht.Act{{}, {By: "anna"}, {Reason: "r"}, {By: "a\x00", Reason: "r"}, {By: "anna", Reason: "\xff"},
				{By: strings.Repeat("a", 257), Reason: "r"}, {By: "anna", Reason: strings.Repeat("r", 1001)}} {
				var invalid *pacht.InvalidError
				if err := a.do(c, j, bad); !errors.As(err, &invalid) {
					c.Errorf("%.80v: %v", bad, err)
				}
			}
			c.same("the row", c.lease(j.ID), row)
			c.same("the ledger", c.outcomes(j.ID), ledger)
			c.same("audit", c.query("SELECT count(*) FROM {audit}")[0], "0")
			c.must(a.do(c, j, pacht.Act{By: strings.Repeat("a", 256), Reason: strings.Repeat("r", 1000)}))
		})
	}
	g.run("R2/a redriven job goes on from its last token and attempt, with as many attempts more", operatorRetry)
	g.run("of two that retry one job, one does it", func(c *kase) {
		for _, status := range []pacht.Status{pacht.Stuck, pacht.Dead} {
			j := c.in(status)
			stores := []Store{c.Store, c.Reopen(c.T)}
			var done atomic.Int32
			c.together(6, func(i int) {
				err := stores[i%2].Retry(c.ctx, j.ID, act)
				switch {
				case err == nil:
					done.Add(1)
				case !errors.Is(err, pacht.ErrWrongStatus) && !errors.Is(err, pacht.ErrBusy):
					c.Errorf("retry: %v", err)
				}
			})
			c.same("retried", done.Load(), int32(1))
			c.same("token", c.job(j.ID).Token, pacht.Token(1))
		}
	})
	g.run("R2/cancelling what nobody holds takes and closes the lease: one token more, attempt unchanged", func(c *kase) {
		for _, status := range []pacht.Status{pacht.Pending, pacht.Stuck} {
			j := c.in(status)
			got, err := c.Store.Cancel(c.ctx, j.ID, pacht.Act{By: "anna", Reason: "r"})
			c.must(err)
			c.same("answer", got, pacht.Cancelled)
			ledger := c.ledger(j.ID)
			last := ledger[len(ledger)-1]
			c.same("ledger", fmt.Sprint(last.Token, last.Attempt, last.Owner, last.Outcome, last.NextStatus), fmt.Sprint(j.Token+1, j.Attempt, "anna", pacht.OutcomeCancelled, pacht.Cancelled))
			c.same("the lease row", c.lease(j.ID), "")
			c.same("status", c.job(j.ID).Status, pacht.Cancelled)
		}
	})
	g.run("R9, S089/a cancel of a running job is a request, and asking twice is no error", func(c *kase) {
		held := c.take("a")
		c.requestCancel(held.ID)
		c.requestCancel(held.ID)
		j := c.job(held.ID)
		c.same("row", fmt.Sprint(j.Status, j.CancelRequested, j.Token, j.LeaseOwner), fmt.Sprint(pacht.Processing, true, held.Token, "a"))
		c.same("lease_until", j.LeaseUntil.Equal(held.LeaseUntil), true)
		c.same("an error is not retried", c.close(held.Ref(), pacht.OutcomeFailed).Status, pacht.Cancelled)
	})
	g.run("a retry forgets a requested cancel", func(c *kase) {
		held := c.take("a")
		c.requestCancel(held.ID)
		c.same("status", c.close(held.Ref(), pacht.OutcomeUnknown).Status, pacht.Stuck)
		c.must(c.Store.Retry(c.ctx, held.ID, act))
		again := c.claimID("a", held.ID)
		c.same("cancel requested", again.CancelRequested, false)
		c.same("status", c.close(again.Ref(), pacht.OutcomeFailed).Status, pacht.Pending)
	})
	g.run("R3/release by hand takes the lease from its holder, who learns of it, and gives the attempt back", func(c *kase) {
		held := c.take("a")
		status, err := c.Store.Release(c.ctx, held.Ref(), act)
		c.must(err)
		j := c.job(held.ID)
		c.same("job", fmt.Sprint(status, j.Status, j.Attempt, j.Token), fmt.Sprint(pacht.Pending, pacht.Pending, 0, held.Token))
		c.same("ledger", c.outcomes(held.ID), "1 Released Pending")
		c.same("owner in the ledger", c.ledger(held.ID)[0].Owner, "a")
		c.same("renewal", c.renew(held.Ref()).State, pacht.RenewLost)
		lost := c.lost(c.settle(held.Ref(), pacht.OutcomeCompleted).Err, held.Ref())
		c.same("how it was closed", lost.Outcome, pacht.OutcomeReleased)
		c.same("claimed again", c.claimID("b", held.ID).Token, held.Token+1)
	})
	g.run("R9/release by hand of a job whose cancel is requested cancels it", func(c *kase) {
		held := c.take("a")
		c.requestCancel(held.ID)
		status, err := c.Store.Release(c.ctx, held.Ref(), act)
		c.must(err)
		c.same("status", fmt.Sprint(status, c.job(held.ID).Status), fmt.Sprint(pacht.Cancelled, pacht.Cancelled))
	})
	g.run("R2, R10/resolve takes and closes a vacant or parked lease, fenced by the token it had", operatorResolve)
	g.run("settings of a queue are listed, and who set them is on record", func(c *kase) {
		s := pacht.QueueSettings{TTL: 3 * time.Second, MaxAttempts: 2, CrashPolicy: pacht.CrashHold}
		c.must(c.Store.SetQueue(c.ctx, c.queue, pacht.QueueSettings{TTL: time.Hour, MaxCrashes: 9}, pacht.Act{By: "anna", Reason: "first"}))
		c.must(c.Store.SetQueue(c.ctx, c.queue, s, pacht.Act{By: "ben", Reason: "second"}))
		list, err := c.Store.Queues(c.ctx)
		c.must(err)
		if len(list) != 1 || list[0].Name != c.queue || list[0].QueueSettings != s {
			c.Errorf("queues %+v", list)
		}
		audit, err := c.Store.Audit(c.ctx, 0)
		c.must(err)
		if len(audit) != 2 || fmt.Sprint(audit[1].By, audit[1].Act, audit[1].Queue, audit[1].Reason) != fmt.Sprint("ben", "set queue", c.queue, "second") {
			c.Errorf("audit %+v", audit)
		}
		for _, bad := range []pacht.QueueSettings{{TTL: 1}, {MaxAttempts: -1}, {MaxCrashes: 5000}, {CrashPolicy: "x"}} {
			if err := c.Store.SetQueue(c.ctx, c.queue, bad, act); err == nil {
				c.Errorf("accepted %+v", bad)
			}
		}
		if err := c.Store.SetQueue(c.ctx, "no name", s, act); err == nil {
			c.Error("accepted a queue with a blank")
		}
	})
}

func operatorRetry(c *kase) {
	for _, status := range []pacht.Status{pacht.Stuck, pacht.Dead, pacht.Cancelled} {
		early := c.in(status) // after one attempt of five
		c.must(c.Store.Retry(c.ctx, early.ID, act))
		c.same("max_attempts", c.job(early.ID).MaxAttempts, 1+5)
	}
	for outcome, counted := range map[pacht.Outcome]int{pacht.OutcomeFailed: 1, pacht.OutcomeSnoozed: 0, pacht.OutcomeReleased: 0} {
		j := c.claimID("a", c.one(pacht.MaxAttempts(5))) // what was given back stays given back (R5)
		_, err := c.Store.Cancel(c.ctx, j.ID, act)
		c.must(err)
		c.same("status", c.close(j.Ref(), outcome).Status, pacht.Cancelled)
		c.must(c.Store.Retry(c.ctx, j.ID, act))
		j = c.job(j.ID)
		c.same("attempts after a cancelled "+string(outcome), fmt.Sprint(j.Attempt, j.MaxAttempts), fmt.Sprint(counted, counted+5))
	}
	id := c.one(pacht.MaxAttempts(2), pacht.MaxCrashes(2))
	c.close(c.claimID("a", id).Ref(), pacht.OutcomeFailed)
	c.same("status", c.close(c.claimID("a", id).Ref(), pacht.OutcomeFailed).Status, pacht.Dead)
	for round := 1; round <= 2; round++ { // the second redrive is of a redriven job
		c.must(c.Store.Retry(c.ctx, id, act))
		j := c.job(id)
		c.same("job", fmt.Sprint(j.Status, j.Attempt, j.MaxAttempts, j.Crashes, j.Token, j.FinishedAt.IsZero()), fmt.Sprint(pacht.Pending, 2*round, 2*round+2, 0, pacht.Token(2*round), true))
		c.near("run_at", j.RunAt, c.now().Add(-5*time.Second))
		if err := c.Store.Retry(c.ctx, id, act); !errors.Is(err, pacht.ErrWrongStatus) {
			c.Errorf("retry of a pending job: %v", err)
		}
		c.crash(id)
		c.crash(id)
		j = c.job(id)
		c.same("crashed out", fmt.Sprint(j.Status, j.Attempt, j.Crashes, j.Token), fmt.Sprint(pacht.Stuck, 2*round+2, 2, pacht.Token(2*round+2)))
	}
	c.must(c.Store.Retry(c.ctx, id, act))
	c.same("completed at last", c.close(c.claimID("a", id).Ref(), pacht.OutcomeCompleted).Status, pacht.Completed)
	c.same("ledger", c.outcomes(id), "1 Failed Pending, 2 Failed Dead, 3 Expired Pending, 4 Expired Stuck, 5 Expired Pending, 6 Expired Stuck, 7 Completed Completed")
	if err := c.Store.Retry(c.ctx, id, act); !errors.Is(err, pacht.ErrWrongStatus) {
		c.Errorf("retry of a completed job: %v", err)
	}
}

func operatorResolve(c *kase) {
	for _, from := range []pacht.Status{pacht.Pending, pacht.Stuck} {
		for _, to := range []pacht.Status{pacht.Completed, pacht.Dead} {
			j := c.in(from)
			res := pacht.Resolution{Status: to, Output: []byte(`{"psp": 9007199254740993}`), Error: "a\x00b"}
			stores := []Store{c.Store, c.Reopen(c.T)}
			var done atomic.Int32
			c.together(4, func(i int) {
				err := stores[i%2].Resolve(c.ctx, j.Ref(), res, pacht.Act{By: "anna", Reason: "asked the provider"})
				switch {
				case err == nil:
					done.Add(1)
				case !errors.Is(err, pacht.ErrWrongStatus) && !errors.Is(err, pacht.ErrLeaseLost) && !errors.Is(err, pacht.ErrBusy):
					c.Errorf("resolve: %v", err)
				}
			})
			c.same("resolved", done.Load(), int32(1))
			ledger := c.ledger(j.ID)
			last := ledger[len(ledger)-1]
			c.same("ledger", fmt.Sprint(last.Token, last.Attempt, last.Owner, last.Outcome, last.NextStatus, last.Error, string(last.Output)),
				fmt.Sprint(j.Token+1, j.Attempt, "anna", pacht.OutcomeResolved, to, "a\uFFFDb", `{"psp": 9007199254740993}`))
			after := c.job(j.ID)
			c.same("job", fmt.Sprint(after.Status, after.Token), fmt.Sprint(to, j.Token+1))
		}
	}
	j := c.in(pacht.Stuck)
	for _, bad := range []pacht.Status{pacht.Pending, pacht.Processing, pacht.Stuck, pacht.Cancelled, ""} {
		var invalid *pacht.InvalidError
		if err := c.Store.Resolve(c.ctx, j.Ref(), pacht.Resolution{Status: bad}, act); !errors.As(err, &invalid) {
			c.Errorf("resolve to %q: %v", bad, err)
		}
	}
}
