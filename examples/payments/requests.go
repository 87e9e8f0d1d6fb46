package payments

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/pacht-queue/pacht"
)

// Once is a request of the API that is carried out once, however often it comes.
type Once struct {
	Scope, Key  string
	Fingerprint string // of what was asked for
	Answer      string // what every one of them is answered with
}

// CreateOnce creates a payment, its job and the answer to the request: all, or none. A request
// whose key is taken gets the first one's answer, and changes nothing; with another fingerprint
// it is pacht.ErrKeyConflict.
func (b *Book) CreateOnce(ctx context.Context, p Payment, o Once) (answer string, err error) {
	if err := p.check(); err != nil {
		return "", err
	}
	answer, err = b.once(ctx, o, func(tx *sql.Tx) error {
		_, err := b.create(ctx, tx, p, nil)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("create a payment: %w", err)
	}
	return answer, nil
}

// RefundOnce asks for a refund, as CreateOnce creates a payment.
func (b *Book) RefundOnce(ctx context.Context, r Refund, o Once) (answer string, err error) {
	if !isID(r.PaymentID) { // it would be in the scope of the key too
		return "", fmt.Errorf("refund payment %.100q: %w", r.PaymentID, pacht.ErrNotFound)
	}
	answer, err = b.once(ctx, o, func(tx *sql.Tx) error { return b.lockAndAskRefund(ctx, tx, r) })
	if err != nil {
		return "", fmt.Errorf("refund payment %s: %w", r.PaymentID, err)
	}
	return answer, nil
}

func (b *Book) once(ctx context.Context, o Once, do func(*sql.Tx) error) (answer string, err error) {
	err = b.inTx(ctx, func(tx *sql.Tx) error {
		// Of two at once the second waits here until the first has committed or not.
		res, err := tx.ExecContext(ctx, b.sql.RequestAdd, o.Scope, o.Key, o.Fingerprint, o.Answer)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 1 {
			answer = o.Answer
			if err != nil {
				return err
			}
			return do(tx)
		}
		var fingerprint string
		if err := tx.QueryRowContext(ctx, b.sql.Request, o.Scope, o.Key).Scan(&fingerprint, &answer); err != nil {
			return err
		}
		if fingerprint != o.Fingerprint {
			return fmt.Errorf("%w: %.100q", pacht.ErrKeyConflict, o.Key)
		}
		return nil
	})
	return answer, err
}
