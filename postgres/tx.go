package postgres

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pacht-queue/pacht"
)

// Tx is a caller's transaction of pgx, for what belongs in one.
func (s *Store) Tx(tx pgx.Tx) pacht.Tx {
	mode := s.mode
	if conn := tx.Conn(); conn != nil {
		mode = poolerProof(conn.Config())
	}
	return &callerTx{store: s, on: pgxSession{on: tx, mode: mode}}
}

// SQLTx is a caller's transaction of database/sql, by pgx's driver or any other that takes
// $1 for a parameter: so users of GORM, sqlx and ent are served.
func (s *Store) SQLTx(tx *sql.Tx) pacht.Tx { return &callerTx{store: s, on: sqlSession{tx}} }

type callerTx struct {
	store *Store
	on    session
}

// EnqueueTx implements pacht.Tx. It takes no savepoint: what is refused is refused before it
// is sent, and a taken key is no error of the server.
func (t *callerTx) EnqueueTx(ctx context.Context, jobs []pacht.NewJob) ([]pacht.Enqueued, error) {
	answers, todo := t.store.vet(jobs)
	e := enqueuer{of: t.store, on: t.on, jobs: jobs, answers: answers}
	if err := e.store(ctx, todo); err != nil {
		return nil, t.failed("enqueue in a transaction", err)
	}
	return answers, nil
}

// SettleTx implements pacht.Tx.
func (t *callerTx) SettleTx(ctx context.Context, one pacht.Settlement) error {
	if err := one.Validate(); err != nil {
		return err
	}
	verb := fmt.Sprintf("settle %s in a transaction", one.Ref)
	list := []pacht.Settlement{one}
	var closed bool
	var left int64 // of the lease, in milliseconds
	err := t.on.query(ctx, t.store.settleTx, t.store.settleArgs(list), func(scan scanner) error {
		var place int
		var status pacht.Status
		var late bool
		closed = true
		return scan(&place, &status, &late, &left)
	})
	if err != nil {
		return t.failed(verb, err)
	}
	if closed {
		return t.boundIdle(ctx, verb, left)
	}
	f, err := t.fate(ctx, list)
	if err != nil {
		return t.failed(verb, err)
	}
	if err := t.breakTx(ctx, one.Ref); err != nil {
		return fmt.Errorf("%s: break the transaction: %w", verb, err)
	}
	if f.outcome == one.Outcome {
		return fmt.Errorf("%s: %w as %s, late: %t; the job became %s", verb, pacht.ErrAlreadySettled, f.outcome, f.late, f.nextStatus)
	}
	// The report cannot stand in a transaction that is broken.
	lost := f.lost(one.Ref)
	if _, err := t.store.fates(ctx, list); err != nil {
		return errors.Join(lost, fmt.Errorf("keep the report of %s: %w", one.Ref, err))
	}
	return lost
}

// SetStepTx implements pacht.Tx.
func (t *callerTx) SetStepTx(ctx context.Context, ref pacht.Ref, name string, data json.RawMessage) error {
	if err := t.store.validStep(name, data); err != nil {
		return err
	}
	verb := fmt.Sprintf("set step %q of %s in a transaction", name, ref)
	var set bool
	var ttl int64
	err := t.on.query(ctx, t.store.sql.SetStep, stepArgs(ref, name, data), func(scan scanner) error {
		set = true
		return scan(&ttl)
	})
	if err != nil {
		return t.failed(verb, err)
	}
	if set {
		return t.boundIdle(ctx, verb, ttl)
	}
	f, err := t.fate(ctx, []pacht.Settlement{{Ref: ref}})
	if err != nil {
		return t.failed(verb, err)
	}
	if err := t.breakTx(ctx, ref); err != nil {
		return fmt.Errorf("%s: break the transaction: %w", verb, err)
	}
	return f.lost(ref)
}

// boundIdle lets the server end the session if the client stops: from here on the row is
// locked, and nobody else can close the lease.
func (t *callerTx) boundIdle(ctx context.Context, verb string, ms int64) error {
	const least = 1000 // a late settle has no time left, and still has to reach its commit
	if ms <= 0 {
		ms = least
	}
	if err := t.on.query(ctx, t.store.sql.BoundIdle, []any{ms}, nil); err != nil {
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

// breakTx makes it impossible to commit what the caller wrote (R4): by a statement that
// fails, or, inside a savepoint, which could be rolled back alone, by ending the session.
func (t *callerTx) breakTx(ctx context.Context, ref pacht.Ref) error {
	var inSavepoint bool
	err := t.on.query(ctx, t.store.sql.InSavepoint, []any{int64(ref.Job), int64(ref.Token)}, func(scan scanner) error {
		return scan(&inSavepoint)
	})
	if err != nil {
		return err // which has broken it as well
	}
	sql := t.store.sql.Break
	if inSavepoint {
		sql = t.store.sql.BreakSession
	}
	if err := t.on.query(ctx, sql, nil, nil); err == nil {
		return errors.New("the statement that must fail did not")
	}
	return nil
}

// failed says which errors mean that the caller should repeat the whole transaction.
func (t *callerTx) failed(verb string, err error) error {
	switch code(err) {
	case "40001":
		return fmt.Errorf("%s: %w: %w", verb, pacht.ErrSerialization, err)
	case "42P01", "3F000":
		return fmt.Errorf("%s: %w", verb, &pacht.SchemaError{Wanted: len(t.store.steps)})
	}
	return fmt.Errorf("%s: %w", verb, err)
}
