package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/pgtest"
)

func TestEveryVerbWorksInTransactionsOfDatabaseSQL(t *testing.T) {
	s, pool := newStore(t)
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	everyVerb(t, s, func() (pacht.Tx, func() error) {
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return s.SQLTx(tx), tx.Commit
	})
}

func TestLostLeaseBreaksTransactionsOfDatabaseSQL(t *testing.T) { // R4
	s, pool := newStore(t)
	execute(t, pool, "CREATE TABLE business (note text)")
	job := held(t, s)
	complete(t, s, []pacht.JobInfo{job})
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), "INSERT INTO business VALUES ('twice')"); err != nil {
		t.Fatal(err)
	}
	if err := s.SQLTx(tx).SettleTx(t.Context(), pacht.Settlement{Ref: job.Ref(), Outcome: pacht.OutcomeCompleted}); !errors.Is(err, pacht.ErrAlreadySettled) {
		t.Errorf("settle: %v", err)
	}
	if err := tx.Commit(); err == nil {
		t.Error("the broken transaction was committed")
	}
	if n := value(t, pool, "SELECT count(*) FROM business"); n != "0" {
		t.Errorf("%s business rows", n)
	}
}

func TestLostLeaseBreaksTheTransactionAroundASavepoint(t *testing.T) { // R4
	s, pool := newStore(t)
	execute(t, pool, "CREATE TABLE business (note text)")
	settled, stolen := held(t, s), held(t, s)
	complete(t, s, []pacht.JobInfo{settled})
	if _, err := s.Release(t.Context(), stolen.Ref(), pacht.Act{By: "me", Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	lose := map[string]func(pacht.Tx) error{
		"already settled": func(tx pacht.Tx) error {
			return tx.SettleTx(t.Context(), pacht.Settlement{Ref: settled.Ref(), Outcome: pacht.OutcomeCompleted})
		},
		"lost": func(tx pacht.Tx) error {
			return tx.SettleTx(t.Context(), pacht.Settlement{Ref: stolen.Ref(), Outcome: pacht.OutcomeCompleted})
		},
		"lost at a step": func(tx pacht.Tx) error { return tx.SetStepTx(t.Context(), stolen.Ref(), "a", nil) },
	}
	for name, fn := range lose {
		t.Run(name, func(t *testing.T) {
			outer, err := pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer outer.Rollback(context.Background())
			if _, err := outer.Exec(t.Context(), "INSERT INTO business VALUES ('outside')"); err != nil {
				t.Fatal(err)
			}
			inner, err := outer.Begin(t.Context()) // a savepoint
			if err != nil {
				t.Fatal(err)
			}
			if err := fn(s.Tx(inner)); err == nil || (!errors.Is(err, pacht.ErrLeaseLost) && !errors.Is(err, pacht.ErrAlreadySettled)) {
				t.Errorf("answer %v", err)
			}
			_ = inner.Rollback(t.Context()) // the caller ignores the error and goes on
			if err := outer.Commit(t.Context()); err == nil {
				t.Error("the transaction around the savepoint was committed")
			}
			if n := value(t, pool, "SELECT count(*) FROM business"); n != "0" {
				t.Errorf("%s business rows", n)
			}
		})
	}
	reports, err := s.Reports(t.Context(), stolen.ID)
	if err != nil || len(reports) != 1 || reports[0].Owner != "owner" {
		t.Errorf("reports %+v, %v", reports, err)
	}
}

func TestSettleTxBoundsTheTransactionToTheLeaseTimeLeft(t *testing.T) { // R4
	s, pool := newStore(t)
	job := held(t, s, pacht.TTL(400*time.Millisecond))
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if err := s.Tx(tx).SettleTx(t.Context(), pacht.Settlement{Ref: job.Ref(), Outcome: pacht.OutcomeCompleted}); err != nil {
		t.Fatal(err)
	}
	// The client is stopped: it neither commits nor goes away. The server ends its session,
	// and the watcher can close the lease.
	until(t, "the row is free and the watcher closes the lease", func() bool {
		pass, err := s.Expire(t.Context(), pacht.ExpireRequest{By: "w", Limit: 10, Period: time.Minute, Force: true})
		return err == nil && len(pass.Expired) == 1
	})
	if err := tx.Commit(t.Context()); err == nil {
		t.Error("the transaction could still be committed")
	}
}

func TestSettleTxKeepsAStricterBoundOfTheCaller(t *testing.T) {
	s, pool := newStore(t)
	for set, want := range map[string]string{"0": "1min", "2s": "2s", "1h": "1min"} {
		job := held(t, s)
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), "SET LOCAL idle_in_transaction_session_timeout = '"+set+"'"); err != nil {
			t.Fatal(err)
		}
		if err := s.Tx(tx).SettleTx(t.Context(), pacht.Settlement{Ref: job.Ref(), Outcome: pacht.OutcomeCompleted}); err != nil {
			t.Fatal(err)
		}
		var got string
		if err := tx.QueryRow(t.Context(), "SELECT round(extract(epoch FROM current_setting('idle_in_transaction_session_timeout')::interval) / 2) * 2").Scan(&got); err != nil {
			t.Fatal(err)
		}
		if seconds := map[string]string{"1min": "60", "2s": "2"}[want]; got != seconds && got != "58" {
			t.Errorf("with %s set, bounded to %s s, want %s", set, got, want)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if v := value(t, pool, "SELECT current_setting('idle_in_transaction_session_timeout')"); v != "0" {
			t.Errorf("the bound outlived its transaction: %s", v)
		}
	}
}

func TestOpenStepTransactionDelaysNoRenewal(t *testing.T) { // R3, R8
	s, pool := newStore(t)
	job := held(t, s)
	tx, commit := pgxTx(t, s, pool)
	if err := tx.SetStepTx(t.Context(), job.Ref(), "sent", nil); err != nil {
		t.Fatal(err)
	}
	renewed, err := s.Renew(t.Context(), []pacht.Ref{job.Ref()})
	if err != nil || renewed.Rows[0].State != pacht.RenewExtended {
		t.Errorf("renewed %+v, %v", renewed, err)
	}
	// Nobody can close the lease before the step is there for all to see.
	answers, err := s.Settle(t.Context(), settlements([]pacht.JobInfo{job}, pacht.OutcomeCompleted))
	if err != nil || !errors.Is(answers[0].Err, pacht.ErrBusy) {
		t.Errorf("settled %+v, %v", answers, err)
	}
	if err := commit(); err != nil {
		t.Fatal(err)
	}
	complete(t, s, []pacht.JobInfo{job})
}

func TestSettleInARepeatableReadTransactionAsksToRepeatIt(t *testing.T) { // S060
	s, pool := newStore(t)
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		job := held(t, s)
		tx, err := pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: level})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), "SELECT count(*) FROM pacht.leases"); err != nil { // takes the snapshot
			t.Fatal(err)
		}
		if _, err := s.Renew(t.Context(), []pacht.Ref{job.Ref()}); err != nil {
			t.Fatal(err)
		}
		err = s.Tx(tx).SettleTx(t.Context(), pacht.Settlement{Ref: job.Ref(), Outcome: pacht.OutcomeCompleted})
		if !errors.Is(err, pacht.ErrSerialization) || errors.Is(err, pacht.ErrLeaseLost) {
			t.Errorf("%s: %v", level, err)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		complete(t, s, []pacht.JobInfo{job})
	}
}

func TestConcurrentTransactionsWithOneKeyStoreOneJob(t *testing.T) { // R11
	s, pool := newStore(t)
	first, commit := pgxTx(t, s, pool)
	a, err := first.EnqueueTx(t.Context(), []pacht.NewJob{pacht.New(charge{1}, pacht.IdempotencyKey("k"))})
	if err != nil {
		t.Fatal(err)
	}
	second := make(chan error, 1)
	var b []pacht.Enqueued
	go func() {
		var err error
		b, err = s.Enqueue(t.Context(), []pacht.NewJob{
			pacht.New(charge{1}, pacht.IdempotencyKey("k")), pacht.New(charge{2}, pacht.IdempotencyKey("k")), pacht.New(charge{3}),
		})
		second <- err
	}()
	until(t, "the second waits for the first", func() bool {
		return value(t, pool, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") == "1"
	})
	if err := commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-second; err != nil {
		t.Fatal(err)
	}
	if !b[0].Duplicate || b[0].ID != a[0].ID || !errors.Is(b[1].Err, pacht.ErrKeyConflict) || b[2].ID == 0 {
		t.Errorf("second: %+v, first: %+v", b, a)
	}
}

func TestRefusedJobsLeaveTheTransactionUsable(t *testing.T) { // R11
	s, pool := newStore(t)
	enqueue(t, s, 1, pacht.IdempotencyKey("k"))
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		t.Fatal(err)
	}
	answers, err := s.SQLTx(tx).EnqueueTx(t.Context(), []pacht.NewJob{
		pacht.New(charge{9}, pacht.IdempotencyKey("k")), {Kind: "-"}, pacht.New(charge{1}), {Kind: "charge", Args: []byte(`{"a":"\u0000"}`)},
	})
	if err != nil || answers[0].Err == nil || answers[1].Err == nil || answers[2].ID == 0 || answers[3].Err == nil {
		t.Fatalf("answers %+v, %v", answers, err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Job(t.Context(), answers[2].ID); err != nil {
		t.Error(err)
	}
}

// The server's default must not reach the store's own statements.
func TestStrictDefaultIsolationAbortsNothing(t *testing.T) { // S060
	database := pgtest.Database(t)
	for _, level := range []string{"serializable", "repeatable\\ read"} {
		t.Run(level, func(t *testing.T) {
			s, _ := storeAt(t, setting(t, database, "default_transaction_isolation="+level), Config{Schema: level})
			enqueue(t, s, 600)
			done := make(chan error, 8)
			for w := range cap(done) {
				go func() { done <- drain(t, s, fmt.Sprint("w", w)) }()
			}
			for range cap(done) {
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
			if left, err := s.Counts(t.Context()); err != nil || len(left) != 0 {
				t.Errorf("left %+v, %v", left, err)
			}
		})
	}
}

// drain works until the queue gives nothing any more, and fails on the first error.
func drain(t *testing.T, s *Store, owner string) error {
	for {
		got, err := s.Claim(t.Context(), request(owner, 7))
		if err != nil || len(got.Jobs) == 0 {
			return err
		}
		// A claim beside this one may have the row locked for the moment in which it sees that it
		// is taken: that is busy, and asked again (R12).
		for todo := settlements(got.Jobs, pacht.OutcomeCompleted); len(todo) > 0; {
			answers, err := s.Settle(t.Context(), todo)
			if err != nil {
				return err
			}
			var busy []pacht.Settlement
			for i, a := range answers {
				switch {
				case errors.Is(a.Err, pacht.ErrBusy):
					busy = append(busy, todo[i])
				case a.Err != nil:
					return a.Err
				}
			}
			todo = busy
		}
	}
}
