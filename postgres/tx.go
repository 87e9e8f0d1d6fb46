package postgres

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/failpoint"
)

// Tx is a caller's transaction of pgx, for what belongs in one.
func (s *Store) Tx(tx pgx.Tx) pacht.Tx {
	mode := s.mode
	if conn := tx.Conn(); conn != nil {
		mode = poolerProof(conn.Config())
	}
	return &callerTx{store: s, on: pgxSession{on: tx, mode: mode}, end: func(ctx context.Context) error {
		conn := tx.Conn()
		if conn == nil {
			return errors.New("it has no connection to close")
		}
		return conn.Close(ctx)
	}}
}

// SQLTx is a caller's transaction of database/sql, by pgx's driver or any other that takes
// $1 for a parameter: so users of GORM, sqlx and ent are served.
func (s *Store) SQLTx(tx *sql.Tx) pacht.Tx {
	return &callerTx{store: s, on: sqlSession{tx}, end: func(context.Context) error { return tx.Rollback() }}
}

type callerTx struct {
	store *Store
	on    session
	end   func(context.Context) error // ends the transaction for good, without a statement
}

// EnqueueTx implements pacht.Tx. It takes no savepoint: what is refused is refused before it
// is sent, and a taken key is no error of the server.
func (t *callerTx) EnqueueTx(ctx context.Context, jobs []pacht.NewJob) ([]pacht.Enqueued, error) {
	if t.store.closed.Load() {
		return nil, fmt.Errorf("enqueue in a transaction: %w", pacht.ErrClosed)
	}
	answers, todo := t.store.vet(jobs)
	e := enqueuer{of: t.store, on: t.on, jobs: jobs, answers: answers}
	if err := e.store(ctx, todo); err != nil {
		return nil, t.failed("enqueue in a transaction", err)
	}
	return answers, nil
}

// SettleTx implements pacht.Tx. Whatever the error is, the transaction is broken (R4): often
// nothing was sent at all, because the handler's context is cancelled with its lost lease.
func (t *callerTx) SettleTx(ctx context.Context, one pacht.Settlement) error {
	verb := fmt.Sprintf("settle %s in a transaction", one.Ref)
	err := t.settle(ctx, verb, one)
	if err == nil {
		return nil
	}
	err = t.broken(ctx, verb, err)
	if lost := (*pacht.LeaseLostError)(nil); errors.As(err, &lost) {
		// The report cannot stand in a transaction that is broken.
		if _, reportErr := t.store.fates(ctx, []pacht.Settlement{one}); reportErr != nil {
			return errors.Join(err, fmt.Errorf("keep the report of %s: %w", one.Ref, reportErr))
		}
	}
	return err
}

func (t *callerTx) settle(ctx context.Context, verb string, one pacht.Settlement) error {
	if t.store.closed.Load() {
		return fmt.Errorf("%s: %w", verb, pacht.ErrClosed)
	}
	if err := one.Validate(); err != nil {
		return err
	}
	if err := t.boundLease(ctx, verb, one.Ref, false); err != nil {
		return err
	}
	list := []pacht.Settlement{one}
	var closed bool
	err := t.on.query(ctx, t.store.settleTx, t.store.settleArgs(list), func(scanner) error {
		closed = true
		return nil
	})
	if err != nil {
		return t.failed(verb, err)
	}
	if closed {
		failpoint.Here("postgres.tx.closed")
		return nil
	}
	f, err := t.fate(ctx, list)
	if err != nil {
		return t.failed(verb, err)
	}
	if f.outcome == one.Outcome {
		return fmt.Errorf("%s: %w as %s, late: %t; the job became %s", verb, pacht.ErrAlreadySettled, f.outcome, f.late, f.nextStatus)
	}
	return f.lost(one.Ref)
}

// SetStepTx implements pacht.Tx. Whatever the error is, the transaction is broken (R4).
func (t *callerTx) SetStepTx(ctx context.Context, ref pacht.Ref, name string, data json.RawMessage) error {
	verb := fmt.Sprintf("set step %q of %s in a transaction", name, ref)
	if err := t.setStep(ctx, verb, ref, name, data); err != nil {
		return t.broken(ctx, verb, err)
	}
	return nil
}

func (t *callerTx) setStep(ctx context.Context, verb string, ref pacht.Ref, name string, data json.RawMessage) error {
	if t.store.closed.Load() {
		return fmt.Errorf("%s: %w", verb, pacht.ErrClosed)
	}
	if err := t.store.validStep(name, data); err != nil {
		return err
	}
	if err := t.boundLease(ctx, verb, ref, true); err != nil {
		return err
	}
	var set bool
	err := t.on.query(ctx, t.store.sql.SetStep, stepArgs(ref, name, data), func(scanner) error {
		set = true
		return nil
	})
	if err != nil {
		return t.failed(verb, err)
	}
	if set {
		return nil
	}
	f, err := t.fate(ctx, []pacht.Settlement{{Ref: ref}})
	if err != nil {
		return t.failed(verb, err)
	}
	return f.lost(ref)
}

// boundLease lets the server end the session if the client stops: once the row is locked nobody
// else can close the lease. Asked before that, so that there is no moment in between.
func (t *callerTx) boundLease(ctx context.Context, verb string, ref pacht.Ref, renewed bool) error {
	if err := t.on.query(ctx, t.store.sql.BoundLease, []any{int64(ref.Job), int64(ref.Token), renewed}, nil); err != nil {
		return t.failed(verb, err)
	}
	return nil
}

// boundIdle is boundLease for what is locked and is no held lease.
func (t *callerTx) boundIdle(ctx context.Context, verb string, d time.Duration) error {
	if err := t.on.query(ctx, t.store.sql.BoundIdle, []any{d.Milliseconds()}, nil); err != nil {
		return t.failed(verb, err)
	}
	return nil
}

// fate looks in the caller's transaction, which may have closed the lease itself.
func (t *callerTx) fate(ctx context.Context, list []pacht.Settlement) (fate, error) {
	fates, each := fateReader(1)
	err := t.on.query(ctx, t.store.sql.Settled, fateArgs(list, false), each)
	return fates[0], err
}

// broken makes it impossible to commit what the caller wrote (R4), also around a savepoint,
// and whatever became of the caller's context. It answers why, and more if that fails.
func (t *callerTx) broken(ctx context.Context, verb string, why error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err := t.on.query(ctx, t.store.sql.BreakAround, nil, nil)
	if err == nil {
		err = t.on.query(ctx, t.store.sql.Break, nil, nil)
		if code(err) == "22P02" { // what it fails with
			return why
		}
	}
	if errors.Is(err, pgx.ErrTxClosed) || errors.Is(err, sql.ErrTxDone) {
		return why // it had ended before, and its connection may serve somebody else by now
	}
	// No statement gets through: the connection is gone, and with it the transaction, or it is
	// busy with rows that the caller has left open.
	if endErr := t.end(ctx); endErr != nil {
		return errors.Join(why, fmt.Errorf("%s: break the transaction: %v; end it: %w", verb, err, endErr))
	}
	return why
}

// failed says which errors mean that the caller should repeat the whole transaction.
func (t *callerTx) failed(verb string, err error) error {
	if serialization(err) {
		return fmt.Errorf("%s: %w: %w", verb, pacht.ErrSerialization, err)
	}
	switch code(err) {
	case "42P01", "3F000":
		return fmt.Errorf("%s: %w", verb, &pacht.SchemaError{Wanted: len(t.store.steps)})
	}
	return fmt.Errorf("%s: %w", verb, err)
}
