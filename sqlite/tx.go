package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/failpoint"
)

// Tx binds the store's verbs to an open transaction of the caller's on the same file, best
// one begun on DB(). A transaction begun on another pool must have begun IMMEDIATE: one that
// upgrades from reading to writing may fail with pacht.ErrSerialization.
func (s *Store) Tx(tx *sql.Tx) pacht.Tx { return &txVerbs{store: s, tx: tx} }

type txVerbs struct {
	store *Store
	tx    *sql.Tx
}

// EnqueueTx implements pacht.Tx. It stands in a savepoint, so that an error leaves neither
// half a job nor a broken transaction behind.
func (t *txVerbs) EnqueueTx(ctx context.Context, jobs []pacht.NewJob) ([]pacht.Enqueued, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	if err := t.store.fits(ctx); err != nil {
		return nil, fmt.Errorf("enqueue: %w", err)
	}
	if err := t.open(ctx); err != nil {
		return nil, fmt.Errorf("enqueue: %w", err)
	}
	if _, err := t.tx.ExecContext(ctx, t.store.sql.Savepoint); err != nil {
		return nil, txError("enqueue", err)
	}
	var answers []pacht.Enqueued
	now, err := t.now(ctx)
	if err == nil {
		answers, err = t.store.enqueue(ctx, t.tx, now, jobs)
	}
	if err != nil {
		// The undoing must not fail because ctx has ended.
		clean := context.WithoutCancel(ctx)
		if _, undo := t.tx.ExecContext(clean, t.store.sql.SavepointUndo); undo != nil {
			return nil, errors.Join(txError("enqueue", err), t.breakTx())
		}
		if _, undo := t.tx.ExecContext(clean, t.store.sql.SavepointRelease); undo != nil {
			return nil, errors.Join(txError("enqueue", err), t.breakTx())
		}
		return nil, txError("enqueue", err)
	}
	if _, err := t.tx.ExecContext(ctx, t.store.sql.SavepointRelease); err != nil {
		return nil, errors.Join(txError("enqueue", err), t.breakTx())
	}
	return answers, nil
}

// SettleTx implements pacht.Tx. It is never answered from the ledger (R4). Whatever it
// refuses breaks the transaction: Exec and Commit return sql.ErrTxDone from then on.
func (t *txVerbs) SettleTx(ctx context.Context, b pacht.Settlement) error {
	err := t.settle(ctx, b)
	if err == nil {
		return nil
	}
	if broken := t.breakTx(); broken != nil {
		return errors.Join(err, broken)
	}
	if errors.Is(err, pacht.ErrLeaseLost) {
		// What the holder wanted to say came too late; it is kept, outside the transaction (R7).
		if late := t.store.report(ctx, b); late != nil {
			return errors.Join(err, late)
		}
	}
	return err
}

func (t *txVerbs) settle(ctx context.Context, b pacht.Settlement) error {
	verb := "settle " + b.Ref.String()
	if err := b.Validate(); err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	if err := t.store.fits(ctx); err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	if err := t.open(ctx); err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	now, err := t.now(ctx)
	if err != nil {
		return txError(verb, err)
	}
	closed, err := t.store.close(ctx, t.tx, now, b)
	if err != nil {
		return txError(verb, err)
	}
	if closed != nil {
		failpoint.Here("sqlite.tx.closed")
		t.store.putBack(b)
		return nil
	}
	f, err := t.store.fate(ctx, t.tx, b.Ref)
	switch {
	case err != nil:
		return txError(verb, err)
	case f.outcome == b.Outcome:
		return fmt.Errorf("%s: %w as %s; the job is %s", verb, pacht.ErrAlreadySettled, f.outcome, f.lost.Status)
	}
	return &f.lost
}

// SetStepTx implements pacht.Tx. Whatever it refuses breaks the transaction, as SettleTx does.
func (t *txVerbs) SetStepTx(ctx context.Context, ref pacht.Ref, name string, data json.RawMessage) error {
	err := t.setStep(ctx, ref, name, data)
	if err == nil {
		return nil
	}
	return errors.Join(err, t.breakTx())
}

func (t *txVerbs) setStep(ctx context.Context, ref pacht.Ref, name string, data json.RawMessage) error {
	if err := t.store.validStep(name, data); err != nil {
		return fmt.Errorf("step of %s: %w", ref, err)
	}
	if err := t.store.fits(ctx); err != nil {
		return fmt.Errorf("step %s of %s: %w", name, ref, err)
	}
	if err := t.open(ctx); err != nil {
		return fmt.Errorf("step %s of %s: %w", name, ref, err)
	}
	now, err := t.now(ctx)
	if err == nil {
		err = t.store.setStep(ctx, t.tx, now, ref, name, data)
	}
	if err != nil && !errors.Is(err, pacht.ErrLeaseLost) {
		return txError("set step", err)
	}
	return err
}

// ResolveTx implements pacht.Tx. Whatever it refuses breaks the transaction, as SettleTx does.
func (t *txVerbs) ResolveTx(ctx context.Context, ref pacht.Ref, res pacht.Resolution, act pacht.Act) error {
	err := t.resolve(ctx, "resolve "+ref.String(), ref, res, act)
	if err == nil {
		return nil
	}
	return errors.Join(err, t.breakTx())
}

func (t *txVerbs) resolve(ctx context.Context, verb string, ref pacht.Ref, res pacht.Resolution, act pacht.Act) error {
	if err := act.Validate(); err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	if err := res.Validate(); err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	if err := t.store.fits(ctx); err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	if err := t.open(ctx); err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	now, err := t.now(ctx)
	if err == nil {
		err = t.store.resolve(ctx, &work{runner: t.tx, now: now}, ref, res, act)
	}
	if err != nil && !errors.Is(err, pacht.ErrLeaseLost) {
		return txError(verb, err)
	}
	return err
}

// open refuses a transaction that SQLite has undone by itself, as it does when the caller's
// write is interrupted or the disk is full. database/sql does not know, and what followed would
// be committed statement by statement, without the business rows (R4). Within a transaction
// another cannot begin: that it can is the sign.
func (t *txVerbs) open(ctx context.Context) error {
	_, err := t.tx.ExecContext(ctx, t.store.sql.Begin)
	if err != nil && !isBusy(err) {
		return nil
	}
	_ = t.tx.Rollback() // of what has just begun, if it has; the caller's own is gone
	return fmt.Errorf("%w: SQLite has undone it when one of its statements failed", pacht.ErrSerialization)
}

func (t *txVerbs) now(ctx context.Context) (now int64, err error) {
	_, err = one(ctx, t.tx, t.store.sql.Now, nil, &now)
	return now, err
}

// breakTx makes sure that no later commit of the transaction can succeed (R4).
func (t *txVerbs) breakTx() error {
	if err := t.tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
		return fmt.Errorf("roll back: %w", err)
	}
	return nil
}

// report keeps what came too late.
func (s *Store) report(ctx context.Context, b pacht.Settlement) error {
	return s.write(ctx, "report", false, func(ctx context.Context, w *work) error {
		_, err := w.ExecContext(ctx, s.sql.Report, b.Ref.Job, b.Ref.Token, w.now, string(b.Outcome),
			text(pacht.SafeText(b.Error, pacht.MaxErrorBytes)))
		return err
	})
}

// txError is an error inside a caller's transaction. Busy means that the transaction began
// without the write lock and cannot get it any more: it must be repeated as a whole.
func txError(verb string, err error) error {
	if isBusy(err) {
		return fmt.Errorf("%s: %w; begin it IMMEDIATE: %w", verb, pacht.ErrSerialization, err)
	}
	return writeError(verb, err, false)
}
