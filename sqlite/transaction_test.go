package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
)

func mustBegin(t *testing.T, s *Store) *sql.Tx {
	t.Helper()
	tx, err := s.DB().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

func TestAStoreCallInsideOnesOwnTransactionIsRefusedAtOnce(t *testing.T) {
	s := newStore(t)
	mustEnqueue(t, s, 2)
	ref := mustClaim(t, s, "a", 1)[0].Ref()
	tx := mustBegin(t, s)
	start := time.Now()
	calls := map[string]func() error{
		"enqueue": func() error { _, err := s.Enqueue(t.Context(), []pacht.NewJob{newJob(1)}); return err },
		"renew":   func() error { _, err := s.Renew(t.Context(), []pacht.Ref{ref}); return err },
		"step":    func() error { return s.SetStep(t.Context(), ref, "reached", nil) },
		"begin":   func() error { _, err := s.DB().BeginTx(t.Context(), nil); return err },
		"exec":    func() error { _, err := s.DB().ExecContext(t.Context(), "CREATE TABLE other (a)"); return err },
		"migrate": func() error { _, err := s.MigrateUp(t.Context()); return err },
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, pacht.ErrInTransaction) {
			t.Errorf("%s: %v, want pacht.ErrInTransaction", name, err)
		}
	}
	if took := time.Since(start); took > DefaultLockWait/2 {
		t.Errorf("refusing took %s", took)
	}
	// Reads wait for nobody, and what belongs in the transaction works in it.
	if _, err := s.Job(t.Context(), ref.Job); err != nil {
		t.Error(err)
	}
	if err := s.Tx(tx).SettleTx(t.Context(), pacht.Settlement{Ref: ref, Outcome: pacht.OutcomeCompleted}); err != nil {
		t.Error(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"enqueue", "exec"} {
		if err := calls[name](); err != nil {
			t.Errorf("%s after the commit: %v", name, err)
		}
	}
	mustCheck(t, s)
}

func TestARenewalWaitsForAShortTransactionAndSucceeds(t *testing.T) {
	s := newStore(t)
	mustEnqueue(t, s, 1)
	ref := mustClaim(t, s, "a", 1)[0].Ref()
	tx := mustBegin(t, s)
	renewed := make(chan error, 1)
	go func() {
		answer, err := s.Renew(context.Background(), []pacht.Ref{ref})
		if err == nil && answer.Rows[0].State != pacht.RenewExtended {
			err = errors.New("lost")
		}
		renewed <- err
	}()
	eventually(t, "the renewal waits", s.writer.waiting)
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-renewed; err != nil {
		t.Errorf("renewal: %v", err)
	}
}

func TestAWriteThatWaitsTooLongSaysWhoHoldsTheLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pacht.db")
	s := openStore(t, path, Config{LockWait: 60 * time.Millisecond}, true)
	enqueue := func(ctx context.Context) error {
		failed := make(chan error, 1)
		go func() {
			_, err := s.Enqueue(ctx, []pacht.NewJob{newJob(1)})
			failed <- err
		}()
		return <-failed
	}
	tx := mustBegin(t, s)
	if err := enqueue(t.Context()); !errors.Is(err, pacht.ErrInTransaction) || !strings.Contains(err.Error(), "begun on DB()") {
		t.Errorf("a transaction of this process holds the lock: %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}

	c := startChild(t, "hold the lock", path)
	if err := enqueue(t.Context()); !errors.Is(err, pacht.ErrBusy) || !strings.Contains(err.Error(), "another process") {
		t.Errorf("another process holds the lock: %v", err)
	}
	if _, err := s.DB().BeginTx(t.Context(), nil); !errors.Is(err, pacht.ErrBusy) {
		t.Errorf("begin: %v", err)
	}
	if _, err := s.Counts(t.Context()); err != nil {
		t.Errorf("a read waited for the writer: %v", err)
	}
	short, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	if err := enqueue(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a caller whose ctx ends: %v", err)
	}
	c.kill() // as kill -9 does: the lock goes with the process
	if err := enqueue(t.Context()); err != nil {
		t.Errorf("after its end: %v", err)
	}
	rows, err := texts(t.Context(), s.DB(), "SELECT count(*) FROM pacht_jobs")
	if err != nil || rows[0][0] != "1" {
		t.Errorf("stored %v (%v), want the one that was answered without an error", rows, err)
	}
}

// R4: whoever ignores the error cannot commit.
func TestSettleTxOnALostLeaseBreaksTheTransaction(t *testing.T) {
	s := newStore(t)
	if _, err := s.DB().ExecContext(t.Context(), "CREATE TABLE payments (id INTEGER PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	mustEnqueue(t, s, 1)
	ref := mustClaim(t, s, "a", 1)[0].Ref()
	complete := pacht.Settlement{Ref: ref, Outcome: pacht.OutcomeCompleted}
	for _, c := range []struct {
		first pacht.Outcome
		want  error
	}{{pacht.OutcomeReleased, pacht.ErrLeaseLost}, {pacht.OutcomeCompleted, pacht.ErrAlreadySettled}} {
		if c.first == pacht.OutcomeCompleted {
			ref = mustClaim(t, s, "b", 1)[0].Ref()
			complete.Ref = ref
		}
		if _, err := s.Settle(t.Context(), []pacht.Settlement{{Ref: ref, Outcome: c.first}}); err != nil {
			t.Fatal(err)
		}
		tx := mustBegin(t, s)
		if _, err := tx.ExecContext(t.Context(), "INSERT INTO payments DEFAULT VALUES"); err != nil {
			t.Fatal(err)
		}
		if err := s.Tx(tx).SettleTx(t.Context(), complete); !errors.Is(err, c.want) {
			t.Errorf("after %s: %v, want %v", c.first, err, c.want)
		}
		if _, err := tx.ExecContext(t.Context(), "INSERT INTO payments DEFAULT VALUES"); !errors.Is(err, sql.ErrTxDone) {
			t.Errorf("a later statement: %v", err)
		}
		if err := tx.Commit(); !errors.Is(err, sql.ErrTxDone) {
			t.Errorf("commit: %v", err)
		}
	}
	rows, err := texts(t.Context(), s.DB(), "SELECT count(*) FROM payments")
	if err != nil || rows[0][0] != "0" {
		t.Errorf("%v payments (%v), want none", rows, err)
	}
	// What came too late is kept (R7).
	reports, err := s.Reports(t.Context(), ref.Job)
	if err != nil || len(reports) != 1 || reports[0].Outcome != pacht.OutcomeCompleted || reports[0].Owner != "a" {
		t.Errorf("reports: %+v, %v", reports, err)
	}
	mustCheck(t, s)
}

func TestARefusedJobLeavesTheTransactionUsable(t *testing.T) {
	s := newStore(t)
	tx := mustBegin(t, s)
	bad := newJob(1)
	bad.Args = json.RawMessage("{")
	answers, err := s.Tx(tx).EnqueueTx(t.Context(), []pacht.NewJob{bad, newJob(2)})
	if err != nil || answers[0].Err == nil || answers[1].Err != nil {
		t.Fatalf("%+v, %v", answers, err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if jobs := mustClaim(t, s, "a", 10); len(jobs) != 1 || jobs[0].ID != answers[1].ID {
		t.Errorf("claimed %+v", jobs)
	}
}

// A transaction of a pool of the caller's own that did not begin IMMEDIATE.
func TestADeferredTransactionWithAnOldSnapshotIsToldToBeginAgain(t *testing.T) {
	s := newStore(t)
	own, err := sql.Open("sqlite", "file:"+s.path)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	tx, err := own.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := texts(t.Context(), tx, "SELECT count(*) FROM pacht_jobs"); err != nil {
		t.Fatal(err)
	}
	mustEnqueue(t, s, 1)
	if _, err := s.Tx(tx).EnqueueTx(t.Context(), []pacht.NewJob{newJob(1)}); !errors.Is(err, pacht.ErrSerialization) {
		t.Errorf("%v, want pacht.ErrSerialization", err)
	}
}

// A worker with nothing to do never asks for the write lock: it neither waits for a process
// that has it, frozen perhaps, nor takes it from one that works.
func TestAnIdleClaimAsksForNoLock(t *testing.T) {
	s := newStore(t)
	tx, err := s.DB().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	claims, err := s.Claim(ctx, pacht.ClaimRequest{Owner: "idle", Queue: "default", Kinds: []string{"charge"}, Limit: 10})
	if err != nil || len(claims.Jobs) != 0 || claims.Now.IsZero() {
		t.Errorf("claim beside an open transaction: %+v, %v", claims, err)
	}
}

// R4: whatever a verb of the lease refuses breaks the transaction, so that nobody commits the
// business row without it: also when the handler's context has ended before the call, as it
// has after every lost lease.
func TestWhateverAFencedVerbRefusesBreaksTheTransaction(t *testing.T) {
	s := newStore(t)
	if _, err := s.DB().ExecContext(t.Context(), "CREATE TABLE books (id INTEGER PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	ref := pacht.Ref{Job: 1, Token: 1}
	for name, do := range map[string]func(pacht.Tx) error{
		"settle, ended context": func(tx pacht.Tx) error {
			return tx.SettleTx(ended, pacht.Settlement{Ref: ref, Outcome: pacht.OutcomeCompleted})
		},
		"settle, no outcome":  func(tx pacht.Tx) error { return tx.SettleTx(t.Context(), pacht.Settlement{Ref: ref}) },
		"step, ended context": func(tx pacht.Tx) error { return tx.SetStepTx(ended, ref, "charged", nil) },
		"step, no name":       func(tx pacht.Tx) error { return tx.SetStepTx(t.Context(), ref, "", nil) },
		"step, lost lease":    func(tx pacht.Tx) error { return tx.SetStepTx(t.Context(), ref, "charged", nil) },
		"decide, ended context": func(tx pacht.Tx) error {
			return tx.DecideTx(ended, pacht.Decision{Reference: "p1", Class: "c", Status: pacht.BreakHealed, By: "me", Reason: "test"})
		},
		"decide, nothing": func(tx pacht.Tx) error { return tx.DecideTx(t.Context(), pacht.Decision{}) },
		"decide, refused": func(tx pacht.Tx) error {
			return tx.DecideTx(t.Context(), pacht.Decision{Reference: "p1", Class: "c", Rev: 3, Status: pacht.BreakHealed, By: "me", Reason: "test"})
		},
		"resolve, ended context": func(tx pacht.Tx) error {
			return tx.ResolveTx(ended, ref, pacht.Resolution{Status: pacht.Dead}, pacht.Act{By: "me", Reason: "test"})
		},
		"resolve, nobody": func(tx pacht.Tx) error {
			return tx.ResolveTx(t.Context(), ref, pacht.Resolution{Status: pacht.Dead}, pacht.Act{})
		},
	} {
		tx, err := s.DB().Begin()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec("INSERT INTO books (id) VALUES (NULL)"); err != nil {
			t.Fatal(err)
		}
		if err := do(s.Tx(tx)); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if err := tx.Commit(); err == nil {
			t.Errorf("%s: the transaction was committed", name)
		}
	}
	var n int
	if err := s.DB().QueryRowContext(t.Context(), "SELECT count(*) FROM books").Scan(&n); err != nil || n != 0 {
		t.Errorf("%d rows booked, %v", n, err)
	}
}
