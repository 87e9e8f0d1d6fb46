package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pacht-queue/pacht"
)

func settleCases(g *group) {
	g.run("R9, R10/what follows every outcome on every kind of row is what pacht.Next says", settleMatrix)
	g.run("R4/a settle writes the ledger from the locked row", settleLedger)
	g.run("R4/a repeated settle is answered as it was the first time, and writes nothing", settleRepeated)
	g.run("R4/a repeat is answered from the ledger also when the job has gone on", settleRepeatedLater)
	g.run("R4/another outcome after the lease was closed is no repeat: lease lost, and kept in reports", settleOtherOutcome)
	g.run("R4/the same lease twice in one batch is closed once", func(c *kase) {
		held := c.take("a")
		s := pacht.Settlement{Ref: held.Ref(), Outcome: pacht.OutcomeCompleted}
		answers, err := c.Store.Settle(c.ctx, []pacht.Settlement{s, s})
		c.must(err)
		for _, a := range answers {
			if a.Err != nil || a.Status != pacht.Completed {
				c.Errorf("answer %+v", a)
			}
		}
		c.same("ledger", c.outcomes(held.ID), "1 Completed Completed")
	})
	g.run("R5/release and snooze give the attempt back, the token stays", func(c *kase) {
		for _, outcome := range []pacht.Outcome{pacht.OutcomeReleased, pacht.OutcomeSnoozed} {
			held := c.take("a", pacht.MaxAttempts(1))
			c.same("status", c.close(held.Ref(), outcome).Status, pacht.Pending)
			j := c.job(held.ID)
			c.same("attempt, token, status", [3]any{j.Attempt, j.Token, j.Status}, [3]any{0, pacht.Token(1), pacht.Pending})
			again := c.claimID("b", held.ID)
			c.same("attempt, token", [2]any{again.Attempt, again.Token}, [2]any{1, pacht.Token(2)})
		}
	})
	g.run("R5, S079/a job runs max_attempts times and not once more", func(c *kase) {
		for most := 1; most <= 3; most++ {
			id, runs := c.one(pacht.MaxAttempts(most)), 0
			for {
				job, ok, err := c.Store.ClaimID(c.ctx, "a", id)
				c.must(err)
				if !ok {
					break
				}
				runs++
				c.close(job.Ref(), pacht.OutcomeFailed, failure("no"))
			}
			c.same("runs", runs, most)
			c.same("status", c.job(id).Status, pacht.Dead)
		}
	})
	g.run("R7/a settle past lease_until is accepted and marked late, while nobody closed or took the lease", func(c *kase) {
		held := c.take("a")
		c.age(2 * pacht.DefaultTTL)
		got := c.close(held.Ref(), pacht.OutcomeCompleted)
		c.same("answer", [3]any{got.Status, got.Late, got.Repeated}, [3]any{pacht.Completed, true, false})
		c.same("late in the ledger", c.ledger(held.ID)[0].Late, true)
		again := c.close(held.Ref(), pacht.OutcomeCompleted)
		c.same("answer to a repeat", [3]any{again.Status, again.Late, again.Repeated}, [3]any{pacht.Completed, true, true})
	})
	g.run("R12/one bad row in a batch does not stop the others, and answers come in order", settleBatch)
	g.run("R12, S071, S072/errors and outputs of any size and encoding are made storable", settleHostileText)
	g.run("a settlement that makes no sense is refused", func(c *kase) {
		held := c.take("a")
		before := c.lease(held.ID)
		for _, bad := range []pacht.Settlement{
			{Ref: held.Ref(), Outcome: pacht.OutcomeExpired},
			{Ref: held.Ref(), Outcome: pacht.OutcomeResolved},
			{Ref: held.Ref(), Outcome: "completed"},
			{Ref: held.Ref(), Outcome: pacht.OutcomeFailed, Delay: -1},
			{Ref: held.Ref(), Outcome: pacht.OutcomeFailed, Delay: pacht.MaxDelay + time.Second},
		} {
			answers, err := c.Store.Settle(c.ctx, []pacht.Settlement{bad})
			if err == nil && len(answers) == 1 {
				err = answers[0].Err
			}
			var invalid *pacht.InvalidError
			if !errors.As(err, &invalid) {
				c.Errorf("%+v: %v", bad, err)
			}
		}
		c.same("the row", c.lease(held.ID), before)
	})
	g.run("an empty batch is answered with nothing", func(c *kase) {
		settled, err := c.Store.Settle(c.ctx, nil)
		renewed, err2 := c.Store.Renew(c.ctx, nil)
		if err != nil || err2 != nil || len(settled) != 0 || len(renewed.Rows) != 0 {
			c.Errorf("settle %v %v, renew %v %v", settled, err, renewed, err2)
		}
	})
	g.run("a settle of more leases than fit one statement is answered whole", func(c *kase) {
		c.many(1200)
		var batch []pacht.Settlement
		for _, j := range c.claim("a", 2000) {
			batch = append(batch, pacht.Settlement{Ref: j.Ref(), Outcome: pacht.OutcomeCompleted})
		}
		answers, err := c.Store.Settle(c.ctx, batch)
		c.must(err)
		done := 0
		for i, a := range answers {
			if a.Err == nil && a.Status == pacht.Completed && a.Ref == batch[i].Ref {
				done++
			}
		}
		c.same("completed", done, 1200)
		c.same("rows left", c.query("SELECT count(*) FROM {leases}")[0], "0")
	})
}

func failure(text string) func(*pacht.Settlement) {
	return func(s *pacht.Settlement) { s.Error = text }
}

func settleLedger(c *kase) {
	held := c.take("owner-1")
	c.close(held.Ref(), pacht.OutcomeFailed, func(s *pacht.Settlement) {
		s.Error, s.Output = "connection refused", json.RawMessage(`{"big": 9007199254740993, "n": 1.0}`)
	})
	a := c.ledger(held.ID)[0]
	c.same("row", fmt.Sprint(a.Job, a.Token, a.Attempt, a.Owner, a.Late, a.Outcome, a.NextStatus, a.Error, string(a.Output)),
		fmt.Sprint(held.ID, pacht.Token(1), 1, "owner-1", false, pacht.OutcomeFailed, pacht.Pending, "connection refused", `{"big": 9007199254740993, "n": 1.0}`))
	if !a.ClaimedAt.Equal(held.ClaimedAt) {
		c.Errorf("claimed_at %s, the claim said %s", a.ClaimedAt, held.ClaimedAt)
	}
	c.near("ended_at", a.EndedAt, held.ClaimedAt)
	c.close(c.claimID("owner-2", held.ID).Ref(), pacht.OutcomeCompleted)
	c.same("ledger", c.outcomes(held.ID), "1 Failed Pending, 2 Completed Completed")
	j := c.job(held.ID)
	c.same("job", [4]any{j.Status, j.Attempt, j.Token, j.LeaseOwner}, [4]any{pacht.Completed, 2, pacht.Token(2), ""})
	c.near("finished_at", j.FinishedAt, held.ClaimedAt)
	c.same("lease row", c.lease(held.ID), "")
}

func settleRepeated(c *kase) {
	for _, outcome := range []pacht.Outcome{pacht.OutcomeCompleted, pacht.OutcomeFailed, pacht.OutcomeReleased, pacht.OutcomeSnoozed, pacht.OutcomeCancelled, pacht.OutcomeUnknown} {
		held := c.take("a")
		first := c.close(held.Ref(), outcome, failure("once"))
		row, ledger := c.lease(held.ID), fmt.Sprintf("%+v", c.ledger(held.ID))
		again := c.close(held.Ref(), outcome, failure("twice"))
		c.same("first answer", first.Repeated, false)
		c.same("second answer", [2]any{again.Repeated, again.Status}, [2]any{true, first.Status})
		c.same("the row", c.lease(held.ID), row)
		c.same("the ledger", fmt.Sprintf("%+v", c.ledger(held.ID)), ledger)
	}
	c.same("reports", c.query("SELECT count(*) FROM {reports}")[0], "0")
}

func settleRepeatedLater(c *kase) {
	held := c.take("a")
	c.close(held.Ref(), pacht.OutcomeFailed, failure("first"))
	c.claimID("b", held.ID)
	row := c.lease(held.ID)
	again := c.close(held.Ref(), pacht.OutcomeFailed, failure("first"))
	c.same("answer", [2]any{again.Repeated, again.Status}, [2]any{true, pacht.Pending})
	c.same("the row of the next holder", c.lease(held.ID), row)
}

func settleOtherOutcome(c *kase) {
	held := c.take("a")
	c.close(held.Ref(), pacht.OutcomeFailed, failure("timeout"))
	row := c.lease(held.ID)
	got := c.settle(held.Ref(), pacht.OutcomeCompleted)
	lost := c.lost(got.Err, held.Ref())
	c.same("what the error says", [3]any{lost.Status, lost.Token, lost.Outcome}, [3]any{pacht.Pending, pacht.Token(1), pacht.OutcomeFailed})
	c.same("the row", c.lease(held.ID), row)
	reports, err := c.Store.Reports(c.ctx, held.ID)
	c.must(err)
	if len(reports) != 1 || reports[0].Outcome != pacht.OutcomeCompleted || reports[0].Token != 1 || reports[0].Job != held.ID {
		c.Errorf("reports: %+v", reports)
	}
}

// lost asserts that err is a lost lease, and answers what it says.
func (c *kase) lost(err error, ref pacht.Ref) pacht.LeaseLostError {
	c.Helper()
	var lost *pacht.LeaseLostError
	if !errors.Is(err, pacht.ErrLeaseLost) || !errors.As(err, &lost) {
		c.Errorf("got %v, want a lost lease", err)
		return pacht.LeaseLostError{}
	}
	c.same("ref in the error", lost.Ref, ref)
	return *lost
}

func settleBatch(c *kase) {
	c.many(5)
	held := c.claim("a", 5)
	gone := pacht.Ref{Job: 1 << 40, Token: 1}
	stale := pacht.Ref{Job: held[1].ID, Token: 77}
	batch := []pacht.Settlement{
		{Ref: held[4].Ref(), Outcome: pacht.OutcomeCompleted},
		{Ref: gone, Outcome: pacht.OutcomeCompleted},
		{Ref: held[0].Ref(), Outcome: pacht.OutcomeFailed, Error: "a\x00b\xff"},
		{Ref: stale, Outcome: pacht.OutcomeFailed},
		{Ref: held[2].Ref(), Outcome: pacht.OutcomeCompleted, Output: json.RawMessage(`{"bad": "\u0000"`)},
		{Ref: held[3].Ref(), Outcome: pacht.OutcomeUnknown},
	}
	answers, err := c.Store.Settle(c.ctx, batch)
	c.must(err)
	if len(answers) != len(batch) {
		c.Fatalf("%d answers to %d settlements", len(answers), len(batch))
	}
	want := []pacht.Status{pacht.Completed, "", pacht.Pending, "", pacht.Completed, pacht.Stuck}
	for i, a := range answers {
		if a.Ref != batch[i].Ref {
			c.Errorf("answer %d is for %s", i, a.Ref)
		}
		if want[i] == "" {
			c.lost(a.Err, batch[i].Ref)
		} else if a.Err != nil || a.Status != want[i] {
			c.Errorf("answer %d: %+v, want %s", i, a, want[i])
		}
	}
	c.same("the row behind the stale token", c.job(held[1].ID).Status, pacht.Processing)
}

func settleHostileText(c *kase) {
	texts := map[string]string{
		"20 MB":               strings.Repeat("błąd ", 3<<20),
		"NUL":                 "a\x00b",
		"invalid UTF-8":       "a\xc3\x28\xff",
		"half a rune":         "\xe2\x82",
		"surrogate":           "\xed\xa0\x80",
		"quotes":              `'; DROP TABLE x; -- "\`,
		"emoji and direction": "💥\u202eabc\u2028",
	}
	for name, text := range texts {
		held := c.take("a")
		c.close(held.Ref(), pacht.OutcomeFailed, func(s *pacht.Settlement) {
			s.Error, s.Output = text, json.RawMessage(text)
		})
		a := c.ledger(held.ID)[0]
		if len(a.Error) > pacht.MaxErrorBytes || !utf8.ValidString(a.Error) || a.Error == "" {
			c.Errorf("%s: stored error of %d bytes", name, len(a.Error))
		}
		c.same(name+": error", a.Error, pacht.SafeText(text, pacht.MaxErrorBytes))
		if !json.Valid(a.Output) {
			c.Errorf("%s: stored output %.80q", name, a.Output)
		}
	}
}
