package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/pacht-queue/pacht"
)

// R3, R4, R12: completions that are closed together are answered row by row as those that are
// closed alone: repeats, lost leases, what is said of a job twice, and what must be kept.
func TestCompletionsInOneStatementAreAnsweredRowByRow(t *testing.T) {
	s := newStore(t)
	mustEnqueue(t, s, 8)
	jobs := mustClaim(t, s, "a", 8)
	mustSettle(t, s, jobs[0].Ref(), pacht.OutcomeCompleted)
	mustSettle(t, s, jobs[1].Ref(), pacht.OutcomeReleased)
	done := func(i int) pacht.Settlement {
		return pacht.Settlement{Ref: jobs[i].Ref(), Outcome: pacht.OutcomeCompleted}
	}
	batch := []pacht.Settlement{done(0), done(1), done(2), done(3), done(4), done(5), done(6), done(7), done(6)}
	batch[2].Ref.Token++
	batch[3].Output = json.RawMessage(`{"kept":1}`)
	batch[6].Outcome, batch[6].Error = pacht.OutcomeFailed, "first"
	answers, err := s.Settle(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"Completed repeated", "lost", "lost", "Completed", "Completed", "Completed", "Pending", "Completed", "lost"}
	for i, a := range answers {
		got := string(a.Status)
		switch {
		case errors.Is(a.Err, pacht.ErrLeaseLost):
			got = "lost"
		case a.Err != nil:
			got = a.Err.Error()
		case a.Repeated:
			got += " repeated"
		}
		if got != want[i] || a.Ref != batch[i].Ref {
			t.Errorf("%s: %s, want %s", batch[i].Ref, got, want[i])
		}
	}
	if a, err := s.Attempts(t.Context(), jobs[3].ID); err != nil || len(a) != 1 || string(a[0].Output) != `{"kept":1}` {
		t.Errorf("ledger %+v, %v", a, err)
	}
	if j := mustJob(t, s, jobs[2].ID); j.Status != pacht.Processing || j.Token != 1 {
		t.Errorf("the job of a wrong token is %s, token %d", j.Status, j.Token)
	}
	mustCheck(t, s)
}

// R7, R12: one row that no rule allows stops none of the others, and late is said of each.
func TestOneBadRowStopsNoOtherCompletion(t *testing.T) {
	s := newStore(t)
	mustEnqueue(t, s, 4)
	jobs := mustClaim(t, s, "a", 4)
	tamper(t, s,
		fmt.Sprintf("UPDATE pacht_leases SET claimed_at = NULL WHERE job_id = %d", jobs[1].ID),
		fmt.Sprintf("UPDATE pacht_leases SET lease_until = 1 WHERE job_id = %d", jobs[2].ID))
	var batch []pacht.Settlement
	for _, j := range jobs {
		batch = append(batch, pacht.Settlement{Ref: j.Ref(), Outcome: pacht.OutcomeCompleted})
	}
	answers, err := s.Settle(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range answers {
		if (a.Err != nil) != (i == 1) || a.Late != (i == 2) {
			t.Errorf("row %d: %+v", i, a)
		}
	}
	tamper(t, s, fmt.Sprintf("UPDATE pacht_leases SET claimed_at = 1 WHERE job_id = %d", jobs[1].ID))
	mustCheck(t, s)
}

// R12: verbs that ran in a transaction which a refusal undid run again, and answer what is so.
func TestVerbsThatRunAgainAnswerWhatIsSo(t *testing.T) {
	s := newStore(t)
	ids := mustEnqueue(t, s, 4)
	held := mustClaim(t, s, "a", 2)
	var running sync.WaitGroup
	ctx := context.Background()
	var added []pacht.Enqueued
	var byID pacht.JobInfo
	var settled []pacht.Settled
	var renewed pacht.Renewals
	errs := make([]error, 6)
	gather(t, s, 6, func() {
		running.Go(func() { added, errs[0] = s.Enqueue(ctx, []pacht.NewJob{newJob(9)}) })
		running.Go(func() { byID, _, errs[1] = s.ClaimID(ctx, "b", ids[3]) })
		running.Go(func() {
			settled, errs[2] = s.Settle(ctx, []pacht.Settlement{{Ref: held[0].Ref(), Outcome: pacht.OutcomeCompleted}})
		})
		running.Go(func() { renewed, errs[3] = s.Renew(ctx, []pacht.Ref{held[1].Ref()}) })
		running.Go(func() { _, errs[4] = s.Cancel(ctx, 999, pacht.Act{By: "me", Reason: "test"}) })
		running.Go(func() { errs[5] = s.SetStep(ctx, pacht.Ref{Job: ids[2], Token: 5}, "reached", nil) })
	})
	running.Wait()
	if !errors.Is(errs[4], pacht.ErrNotFound) || !errors.Is(errs[5], pacht.ErrLeaseLost) || errors.Join(errs[:4]...) != nil {
		t.Fatalf("errors %v", errs)
	}
	if mustJob(t, s, added[0].ID).Status != pacht.Pending || settled[0].Status != pacht.Completed || settled[0].Repeated {
		t.Errorf("enqueued %+v, settled %+v", added, settled)
	}
	if j := mustJob(t, s, ids[3]); byID.Token != 1 || j.Token != 1 || j.Attempt != 1 || j.LeaseOwner != "b" {
		t.Errorf("claimed %+v, the row is %+v", byID, j)
	}
	if renewed.Rows[0].State != pacht.RenewExtended || !mustJob(t, s, held[1].ID).LeaseUntil.Equal(renewed.Rows[0].LeaseUntil) {
		t.Errorf("renewed %+v", renewed.Rows)
	}
	mustCheck(t, s)
}
