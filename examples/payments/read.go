package payments

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"math/big"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/money"
)

type scanner interface{ Scan(...any) error }

func scanPayment(row scanner) (p Payment, err error) {
	var created int64
	var currency string
	err = row.Scan(&p.ID, &p.Amount.Minor, &currency, &p.Payer, &p.Status, &p.ChargeID, &p.Why, &p.Rev,
		&created, &p.Expired, &p.ChargedBack, &p.Refunded, &p.Refunding)
	p.Amount.Currency, p.CreatedAt = money.Currency(currency), fromMillis(created)
	return p, err
}

func scanRefund(row scanner) (r Refund, err error) {
	var currency string
	var provider sql.NullString
	err = row.Scan(&r.ID, &r.PaymentID, &r.Amount.Minor, &currency, &r.Status, &provider, &r.Origin, &r.Why)
	r.Amount.Currency, r.ProviderID = money.Currency(currency), provider.String
	return r, err
}

// Payment is one payment; pacht.ErrNotFound if there is none.
func (b *Book) Payment(ctx context.Context, id string) (Payment, error) {
	if !isID(id) {
		return Payment{}, fmt.Errorf("payment %.100q: %w", id, pacht.ErrNotFound)
	}
	p, err := scanPayment(b.db.QueryRowContext(ctx, b.sql.Payment, id))
	if errors.Is(err, sql.ErrNoRows) {
		err = pacht.ErrNotFound
	}
	if err != nil {
		return Payment{}, fmt.Errorf("payment %s: %w", id, err)
	}
	return p, nil
}

// Payments lists payments by id, after the one given ("" = from the first), at most limit.
func (b *Book) Payments(ctx context.Context, after string, limit int) ([]Payment, error) {
	return list(ctx, b.db, "payments", scanPayment, b.sql.Payments, after, limit)
}

// PendingLonger lists payments that have been pending for longer than the given time.
func (b *Book) PendingLonger(ctx context.Context, longer time.Duration, after string, limit int) ([]Payment, error) {
	return list(ctx, b.db, "pending payments", scanPayment, b.sql.Pending, after, limit, longer.Milliseconds())
}

// Reversible lists payments whose money may still be given back or taken back.
func (b *Book) Reversible(ctx context.Context, after string, limit int) ([]Payment, error) {
	return list(ctx, b.db, "reversible payments", scanPayment, b.sql.Reversible, after, limit)
}

// Refund is one refund; pacht.ErrNotFound if there is none.
func (b *Book) Refund(ctx context.Context, id string) (Refund, error) {
	r, err := scanRefund(b.db.QueryRowContext(ctx, b.sql.Refund, id))
	if errors.Is(err, sql.ErrNoRows) {
		err = pacht.ErrNotFound
	}
	if err != nil {
		return Refund{}, fmt.Errorf("refund %s: %w", id, err)
	}
	return r, nil
}

// Refunds lists the refunds of one payment, by id.
func (b *Book) Refunds(ctx context.Context, payment string) ([]Refund, error) {
	return list(ctx, b.db, "refunds", scanRefund, b.sql.Refunds, payment)
}

// PendingRefunds lists refunds that have been pending for longer than the given time, by id.
func (b *Book) PendingRefunds(ctx context.Context, longer time.Duration, after string, limit int) ([]Refund, error) {
	return list(ctx, b.db, "pending refunds", scanRefund, b.sql.RefundsPending, after, limit, longer.Milliseconds())
}

// Transition is one change of a payment.
type Transition struct {
	Rev      int64     `json:"rev"`
	From     string    `json:"from"`
	To       string    `json:"to"`
	ChargeID string    `json:"charge_id,omitempty"`
	By       string    `json:"by"`
	Why      string    `json:"why,omitempty"`
	Evidence string    `json:"evidence,omitempty"` // what the provider had said
	At       time.Time `json:"at"`
}

// Transitions lists what became of a payment, oldest first.
func (b *Book) Transitions(ctx context.Context, payment string) ([]Transition, error) {
	return list(ctx, b.db, "transitions", func(row scanner) (t Transition, err error) {
		var at int64
		err = row.Scan(&t.Rev, &t.From, &t.To, &t.ChargeID, &t.By, &t.Why, &t.Evidence, &at)
		t.At = fromMillis(at)
		return t, err
	}, b.sql.Transitions, payment)
}

// EventEntry is an event that was received.
type EventEntry struct {
	ID        string    `json:"id"`
	Kind      string    `json:"kind"`
	PaymentID string    `json:"payment_id,omitempty"`
	ChargeID  string    `json:"charge_id,omitempty"`
	Verdict   string    `json:"verdict"`
	Why       string    `json:"why,omitempty"`
	Seen      int64     `json:"seen"` // how often it came
	At        time.Time `json:"at"`
}

// Events lists the events on one payment, or all if it is empty, at most limit.
func (b *Book) Events(ctx context.Context, payment string, limit int) ([]EventEntry, error) {
	return list(ctx, b.db, "events", func(row scanner) (e EventEntry, err error) {
		var at int64
		err = row.Scan(&e.ID, &e.Kind, &e.PaymentID, &e.ChargeID, &e.Verdict, &e.Why, &e.Seen, &at)
		e.At = fromMillis(at)
		return e, err
	}, b.sql.Events, payment, limit)
}

// Balance is what stands on one account.
type Balance struct {
	Account  string `json:"account"`
	Currency string `json:"currency"`
	Minor    int64  `json:"minor"`
	// Exact is the sum if it does not fit into Minor, which is then as near to it as it can be.
	Exact string `json:"exact,omitempty"`
}

// Balances lists what stands on each account of the ledger.
func (b *Book) Balances(ctx context.Context) ([]Balance, error) {
	return list(ctx, b.db, "balances", func(row scanner) (a Balance, err error) {
		var high, low int64
		if err := row.Scan(&a.Account, &a.Currency, &high, &low); err != nil {
			return a, err
		}
		sum := new(big.Int).Mul(big.NewInt(high), big.NewInt(balanceUnit))
		switch sum.Add(sum, big.NewInt(low)); {
		case sum.IsInt64():
			a.Minor = sum.Int64()
		case sum.Sign() < 0:
			a.Minor, a.Exact = math.MinInt64, sum.String()
		default:
			a.Minor, a.Exact = math.MaxInt64, sum.String()
		}
		return a, nil
	}, b.sql.Balances)
}

// balanceUnit is what balances.sql counts the high part of a sum in: neither part overflows.
const balanceUnit = 1_000_000_000

// Unbalanced is how many movements do not sum up to zero: none, ever.
func (b *Book) Unbalanced(ctx context.Context) (n int64, err error) {
	if err := b.db.QueryRowContext(ctx, b.sql.Unbalanced).Scan(&n); err != nil {
		return 0, fmt.Errorf("check the ledger: %w", err)
	}
	return n, nil
}

// Duplicate is a payment that may be the same purchase as an earlier one.
type Duplicate struct {
	PaymentID string       `json:"payment_id"`
	Earlier   string       `json:"earlier"`
	Amount    money.Amount `json:"amount"`
}

// Duplicates lists payments of one payer over one amount that both took money within the given
// time. Whether the payer pressed twice or bought twice is for a person to find out: they are
// never merged.
func (b *Book) Duplicates(ctx context.Context, within time.Duration) ([]Duplicate, error) {
	return list(ctx, b.db, "likely duplicates", scanDuplicate, b.sql.Duplicates, within.Milliseconds())
}

// duplicatesOf lists those pairs of which the given payment is one.
func (b *Book) duplicatesOf(ctx context.Context, id string, within time.Duration) ([]Duplicate, error) {
	return list(ctx, b.db, "likely duplicates of "+id, scanDuplicate, b.sql.DuplicateOf, id, within.Milliseconds())
}

func scanDuplicate(row scanner) (d Duplicate, err error) {
	var currency string
	err = row.Scan(&d.PaymentID, &d.Earlier, &d.Amount.Minor, &currency)
	d.Amount.Currency = money.Currency(currency)
	return d, err
}

func list[T any](ctx context.Context, db *sql.DB, what string, scan func(scanner) (T, error), statement string, args ...any) (page []T, err error) {
	rows, err := db.QueryContext(ctx, statement, args...)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", what, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		each, err := scan(rows)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", what, err)
		}
		page = append(page, each)
	}
	return page, rows.Err()
}
