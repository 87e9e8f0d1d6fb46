package postgres

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
)

var byHand = pacht.Act{By: "me", Reason: "test"}

// dead is a job that ended badly.
func dead(t *testing.T, s *Store) pacht.JobInfo {
	t.Helper()
	job := held(t, s)
	answers, err := s.Settle(t.Context(), []pacht.Settlement{{Ref: job.Ref(), Outcome: pacht.OutcomeFailed, Permanent: true}})
	if err != nil || answers[0].Status != pacht.Dead {
		t.Fatalf("settled %+v, %v", answers, err)
	}
	return job
}

// retaken is a job that ended badly, was retried by hand and is held again.
func retaken(t *testing.T, s *Store) pacht.JobInfo {
	t.Helper()
	id := dead(t, s).ID
	if err := s.Retry(t.Context(), id, byHand); err != nil {
		t.Fatal(err)
	}
	job, ok, err := s.ClaimID(t.Context(), "owner", id)
	if err != nil || !ok {
		t.Fatalf("claim: %t, %v", ok, err)
	}
	return job
}

func TestSecondRetryBesideAnOpenSettleRevivesNothing(t *testing.T) { // R2, R4
	s, pool := newStore(t)
	job := retaken(t, s)
	tx, commit := pgxTx(t, s, pool)
	if err := tx.SettleTx(t.Context(), pacht.Settlement{Ref: job.Ref(), Outcome: pacht.OutcomeCompleted}); err != nil {
		t.Fatal(err)
	}
	retried := make(chan error, 1)
	go func() { retried <- s.Retry(t.Context(), job.ID, byHand) }()
	var err error
	answered := false
	until(t, "the retry answers or waits for the settle", func() bool {
		select {
		case err = <-retried:
			answered = true
		default:
		}
		return answered || value(t, pool, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") == "1"
	})
	if err := commit(); err != nil {
		t.Fatal(err)
	}
	if !answered {
		err = <-retried
	}
	if !errors.Is(err, pacht.ErrWrongStatus) {
		t.Errorf("retry: %v", err)
	}
	if now, err := s.Job(t.Context(), job.ID); err != nil || now.Status != pacht.Completed || now.Token != job.Token {
		t.Errorf("the job is %s with token %d, %v", now.Status, now.Token, err)
	}
}

// Check looks at the end whether a lease came back with a token that is used up.
func TestRetriesThatRaceSettlesReviveNothing(t *testing.T) { // R2, R4
	s, _ := newStore(t)
	for range 150 {
		job := retaken(t, s)
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if err := s.Retry(t.Context(), job.ID, byHand); err != nil && !errors.Is(err, pacht.ErrWrongStatus) {
					t.Error(err)
				}
			})
		}
		complete(t, s, []pacht.JobInfo{job})
		both.Wait()
		if now, err := s.Job(t.Context(), job.ID); err != nil || now.Status != pacht.Completed {
			t.Fatalf("the job is %s, %v", now.Status, err)
		}
	}
}

func TestRenewalThatArrivesLateShortensNoLease(t *testing.T) { // R7
	s, pool := newStore(t)
	job := held(t, s)
	// What a renewal of the same lease with a later clock has written.
	execute(t, pool, "UPDATE pacht.leases SET lease_until = lease_until + interval '30 seconds'")
	renewed, err := s.Renew(t.Context(), []pacht.Ref{job.Ref()})
	if err != nil || renewed.Rows[0].State != pacht.RenewExtended || renewed.Rows[0].LeaseUntil.Before(job.LeaseUntil.Add(30*time.Second)) {
		t.Errorf("renewed %+v, %v, before until %s", renewed, err, job.LeaseUntil)
	}
	complete(t, s, []pacht.JobInfo{job})
}

func TestLateSettleStillHasASecondToReachItsCommit(t *testing.T) { // R4
	s, pool := newStore(t)
	job := held(t, s, pacht.TTL(200*time.Millisecond))
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if err := s.Tx(tx).SettleTx(t.Context(), pacht.Settlement{Ref: job.Ref(), Outcome: pacht.OutcomeCompleted}); err != nil {
		t.Fatal(err)
	}
	var bound string
	if err := tx.QueryRow(t.Context(), "SELECT current_setting('idle_in_transaction_session_timeout')").Scan(&bound); err != nil || bound != "1s" {
		t.Errorf("bounded to %s, %v", bound, err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Error(err)
	}
}
