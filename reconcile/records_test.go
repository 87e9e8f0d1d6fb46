package reconcile_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/reconcile"
)

const columns = "SELECT reference, state, amount, currency, refunded, charged_back, at FROM payments "

// Find implements reconcile.Ours.
func (b *bank) Find(ctx context.Context, reference string) (reconcile.Record, error) {
	if f := b.find[reference]; f != nil {
		return f()
	}
	list, err := b.list(ctx, columns+"WHERE reference = $1", reference)
	if err != nil || len(list) == 0 {
		return reconcile.Record{State: reconcile.NotFound}, err
	}
	return list[0], nil
}

// Pending implements reconcile.Ours.
func (b *bank) Pending(ctx context.Context, longer time.Duration, after string, limit int) ([]reconcile.Record, error) {
	return b.list(ctx, columns+"WHERE state = 'pending' AND reference > $1 AND at < $2 ORDER BY reference LIMIT $3",
		after, time.Now().Add(-longer).UnixMilli(), limit)
}

// Reversible implements reconcile.Ours.
func (b *bank) Reversible(ctx context.Context, after string, limit int) ([]reconcile.Record, error) {
	return b.list(ctx, columns+"WHERE state IN ('succeeded', 'refunded', 'charged_back') AND reference > $1 ORDER BY reference LIMIT $2", after, limit)
}

func (b *bank) list(ctx context.Context, query string, args ...any) (all []reconcile.Record, err error) {
	rows, err := b.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var r reconcile.Record
		var at int64
		if err := rows.Scan(&r.Reference, &r.State, &r.Amount.Minor, &r.Amount.Currency, &r.Refunded, &r.ChargedBack, &at); err != nil {
			return nil, err
		}
		r.At = time.UnixMilli(at).UTC()
		all = append(all, r)
	}
	return all, rows.Err()
}

// Heal implements reconcile.Ours.
func (b *bank) Heal(ctx context.Context, f *reconcile.Finding) error {
	return b.transition(ctx, f.Theirs.Reference, f.Class, f.Theirs, f.CommitTx)
}

// transition is the only one that changes a payment: the webhook, the return page and the
// reconciler all use it. Whoever makes it credits the customer and enqueues the mail.
func (b *bank) transition(ctx context.Context, reference string, class reconcile.Class, theirs reconcile.Record, last func(context.Context, pacht.Tx) error) error {
	tx, err := b.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	var change sql.Result
	switch class {
	case reconcile.PaidThere, reconcile.PaidThereLate:
		change, err = tx.ExecContext(ctx, "UPDATE payments SET state = 'succeeded' WHERE reference = $1 AND state IN ('pending', 'failed')", reference)
	case reconcile.FailedThere:
		change, err = tx.ExecContext(ctx, "UPDATE payments SET state = 'failed' WHERE reference = $1 AND state = 'pending'", reference)
	case reconcile.ReversedThere:
		change, err = tx.ExecContext(ctx, "UPDATE payments SET state = $2, refunded = $3, charged_back = $4 WHERE reference = $1 AND state IN ('succeeded', 'refunded', 'charged_back') AND (refunded < $3 OR charged_back < $4)",
			reference, string(theirs.State), theirs.Refunded, theirs.ChargedBack)
	default:
		return fmt.Errorf("there is no transition for %s", class)
	}
	if err != nil {
		return err
	}
	made, err := change.RowsAffected()
	if err != nil {
		return err
	}
	if made == 1 {
		what := fmt.Sprintf("%s %d", class, theirs.Refunded+theirs.ChargedBack)
		if _, err := tx.ExecContext(ctx, "INSERT INTO credits (reference, what) VALUES ($1, $2)", reference, what); err != nil {
			return err
		}
		follow := pacht.New(mail{reference, what}, pacht.IdempotencyKey("mail:"+reference+":"+what))
		answers, err := b.tx(tx).EnqueueTx(ctx, []pacht.NewJob{follow})
		if err != nil {
			return err
		}
		if answers[0].Err != nil {
			return answers[0].Err
		}
	}
	if b.healing != nil {
		if err := b.healing(reference); err != nil {
			return err
		}
	}
	if err := last(ctx, b.tx(tx)); err != nil {
		return err
	}
	return tx.Commit()
}
