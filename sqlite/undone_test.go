package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
)

// R4: when SQLite has undone the caller's transaction by itself, nothing of the store's is
// committed in its place, however little the caller cares for errors.
func TestNothingIsWrittenForATransactionThatSQLiteHasUndone(t *testing.T) {
	s := newStore(t)
	if _, err := s.DB().ExecContext(t.Context(), "CREATE TABLE books (n INTEGER)"); err != nil {
		t.Fatal(err)
	}
	mustEnqueue(t, s, 1)
	ref := mustClaim(t, s, "a", 1)[0].Ref()
	for name, verb := range map[string]func(pacht.Tx) error{
		"settle": func(tx pacht.Tx) error {
			return tx.SettleTx(t.Context(), pacht.Settlement{Ref: ref, Outcome: pacht.OutcomeCompleted})
		},
		"resolve": func(tx pacht.Tx) error {
			return tx.ResolveTx(t.Context(), ref, pacht.Resolution{Status: pacht.Dead}, pacht.Act{By: "me", Reason: "test"})
		},
		"decide": func(tx pacht.Tx) error {
			return tx.DecideTx(t.Context(), pacht.Decision{Reference: "p1", Class: "c", Status: pacht.BreakHealed, By: "me", Reason: "test"})
		},
		"step": func(tx pacht.Tx) error { return tx.SetStepTx(t.Context(), ref, "reached", nil) },
		"enqueue": func(tx pacht.Tx) error {
			_, err := tx.EnqueueTx(t.Context(), []pacht.NewJob{newJob(1)})
			return err
		},
	} {
		tx := mustBegin(t, s)
		undo(t, tx)
		if err := verb(s.Tx(tx)); !errors.Is(err, pacht.ErrSerialization) {
			t.Errorf("%s: %v, want pacht.ErrSerialization", name, err)
		}
		if err := tx.Commit(); err == nil {
			t.Errorf("%s: a transaction that is gone was committed", name)
		}
	}
	if j, err := s.Job(t.Context(), ref.Job); err != nil || j.Status != pacht.Processing {
		t.Errorf("the job is %s, %v", j.Status, err)
	}
	if steps, err := s.Steps(t.Context(), ref.Job); err != nil || len(steps) != 0 {
		t.Errorf("steps %+v, %v", steps, err)
	}
	if breaks, err := s.Breaks(t.Context(), pacht.BreakFilter{Ended: true}); err != nil || len(breaks) != 0 {
		t.Errorf("breaks %+v, %v", breaks, err)
	}
	if counts, err := s.Counts(t.Context()); err != nil || len(counts) != 1 || counts[0].Jobs != 1 {
		t.Errorf("counts %+v, %v", counts, err)
	}
	mustEnqueue(t, s, 1) // nobody holds the write lock
}

// undo has SQLite undo a transaction, by interrupting a write of it.
func undo(t *testing.T, tx *sql.Tx) {
	t.Helper()
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := tx.ExecContext(short, `WITH RECURSIVE c (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM c)
		INSERT INTO books SELECT n FROM c`)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a write without end: %v", err)
	}
}
