package postgres

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
)

// PostgreSQL checks an UPDATE's constraints on the row as the statement's snapshot has it,
// before it finds that another version has been committed and that this is the one to change.
// A cancel that meets a claim at that moment is a request, and no error.
func TestCancelThatMeetsAClaimIsAnswered(t *testing.T) { // R3, S017
	s, pool := newStore(t)
	other, err := New(pool, Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	id := enqueue(t, s, 1)[0]
	var over atomic.Bool
	ended := make(chan error, 1)
	go func() {
		ended <- func() error {
			for ctx := context.Background(); !over.Load(); {
				job, ok, err := other.ClaimID(ctx, "owner", id)
				if err != nil {
					return err
				}
				if !ok {
					continue
				}
				answers, err := other.Settle(ctx, []pacht.Settlement{{Ref: job.Ref(), Outcome: pacht.OutcomeReleased}})
				if err != nil {
					return err
				}
				if err := answers[0].Err; err != nil && !errors.Is(err, pacht.ErrBusy) {
					return err
				}
				for errors.Is(answers[0].Err, pacht.ErrBusy) {
					if answers, err = other.Settle(ctx, []pacht.Settlement{{Ref: job.Ref(), Outcome: pacht.OutcomeReleased}}); err != nil {
						return err
					}
				}
			}
			return nil
		}()
	}()
	answers := map[pacht.Status]int{}
	for begun := time.Now(); answers[pacht.Processing] < 300 && (time.Since(begun) < 4*time.Second || len(answers) < 2); {
		if err := s.Retry(t.Context(), id, byHand); err != nil && !errors.Is(err, pacht.ErrWrongStatus) && !errors.Is(err, pacht.ErrBusy) {
			t.Error(err)
		}
		status, err := s.Cancel(t.Context(), id, byHand)
		if err != nil && !errors.Is(err, pacht.ErrWrongStatus) && !errors.Is(err, pacht.ErrBusy) {
			t.Error(err)
		}
		answers[status]++
	}
	over.Store(true)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	t.Logf("answers: %v", answers)
}
