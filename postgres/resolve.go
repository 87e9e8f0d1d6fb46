package postgres

import (
	"context"
	"fmt"

	"github.com/pacht-queue/pacht"
)

// ResolveTx implements pacht.Tx. Whatever the error is, the transaction is broken (R4).
func (t *callerTx) ResolveTx(ctx context.Context, ref pacht.Ref, res pacht.Resolution, act pacht.Act) error {
	verb := fmt.Sprintf("resolve %s in a transaction", ref)
	if err := t.resolve(ctx, verb, ref, res, act); err != nil {
		return t.broken(ctx, verb, err)
	}
	return nil
}

func (t *callerTx) resolve(ctx context.Context, verb string, ref pacht.Ref, res pacht.Resolution, act pacht.Act) error {
	if t.store.closed.Load() {
		return fmt.Errorf("%s: %w", verb, pacht.ErrClosed)
	}
	if err := act.Validate(); err != nil {
		return err
	}
	if err := res.Validate(); err != nil {
		return err
	}
	if err := t.boundIdle(ctx, verb, pacht.DefaultTTL); err != nil {
		return err
	}
	found, resolved := false, false
	// Whoever acts on the job or prunes it has committed when this comes through.
	err := t.on.query(ctx, t.store.sql.LockJob, []any{int64(ref.Job)}, func(scanner) error { found = true; return nil })
	if err != nil {
		return t.failed(verb, err)
	}
	if !found {
		return fmt.Errorf("%s: %w", verb, pacht.ErrNotFound)
	}
	err = t.on.query(ctx, t.store.resolveTx, t.store.resolveArgs(ref, res, act), func(scan scanner) error {
		var status pacht.Status
		resolved = true
		return scan(&status)
	})
	if err != nil {
		return t.failed(verb, err)
	}
	if resolved {
		return nil
	}
	f, err := t.fate(ctx, []pacht.Settlement{{Ref: ref}})
	if err != nil {
		return t.failed(verb, err)
	}
	return f.unresolved(verb, ref)
}
