package payments

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/sqltext"
	"github.com/pacht-queue/pacht/postgres"
	"github.com/pacht-queue/pacht/sqlite"
)

//go:embed sql
var sqlFiles embed.FS

type statements struct {
	CreateTables string `sql:"create_tables"`
	Create       string `sql:"create"`
	Pay          string `sql:"pay"`
	Decline      string `sql:"decline"`
	Payment      string `sql:"payment"`
	Payments     string `sql:"payments"`
	Tally        string `sql:"tally"`
}

// Book keeps payments in a database, in the same transactions as their jobs. Made by OnSQLite
// or OnPostgres.
type Book struct {
	db  *sql.DB
	tx  func(*sql.Tx) pacht.Tx
	sql statements
}

// OnSQLite keeps payments in the store's own file.
func OnSQLite(store *sqlite.Store) (*Book, error) {
	b := &Book{db: store.DB(), tx: store.Tx}
	return b, b.load("sqlite", sqlite.DefaultPrefix, sqlite.DefaultPrefix)
}

// OnPostgres keeps payments in the database that db leads to, which is the store's too. The
// table stands in the queue's schema, so that both go together; a real system would have its
// own.
func OnPostgres(db *sql.DB, store *postgres.Store, schema string) (*Book, error) {
	b := &Book{db: db, tx: store.SQLTx}
	return b, b.load("postgres", "pacht.", pgx.Identifier{schema}.Sanitize()+".")
}

func (b *Book) load(dialect, from, to string) error {
	if err := sqltext.Fill(&b.sql, sqlFiles, "sql/"+dialect, from, to); err != nil {
		return fmt.Errorf("payments on %s: %w", dialect, err)
	}
	return nil
}

// CreateTables makes the business table. The queue's own tables must be there.
func (b *Book) CreateTables(ctx context.Context) error {
	if _, err := b.db.ExecContext(ctx, b.sql.CreateTables); err != nil {
		return fmt.Errorf("create the payments table: %w", err)
	}
	return nil
}

// Create stores a payment and the job that charges it: both, or neither. The payment's id is
// the job's idempotency key, so it may be repeated when its answer was lost; the same id with
// other content is pacht.ErrKeyConflict.
func (b *Book) Create(ctx context.Context, p Payment, opts ...pacht.Option) (pacht.Enqueued, error) {
	if err := p.check(); err != nil {
		return pacht.Enqueued{}, err
	}
	charge := Charge{PaymentID: p.ID, AmountMinor: p.AmountMinor, Currency: p.Currency}
	job := pacht.New(charge, append(opts, pacht.IdempotencyKey(p.ID))...)
	var answer pacht.Enqueued
	err := b.inTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, b.sql.Create, p.ID, p.AmountMinor, p.Currency); err != nil {
			return err
		}
		answers, err := b.tx(tx).EnqueueTx(ctx, []pacht.NewJob{job})
		if err != nil {
			return err
		}
		answer = answers[0]
		return answer.Err
	})
	if err != nil {
		return pacht.Enqueued{}, fmt.Errorf("create payment %s: %w", p.ID, err)
	}
	return answer, nil
}

// Payment is one payment; pacht.ErrNotFound if there is none.
func (b *Book) Payment(ctx context.Context, id string) (Payment, error) {
	p, err := scan(b.db.QueryRowContext(ctx, b.sql.Payment, id))
	if errors.Is(err, sql.ErrNoRows) {
		return Payment{}, fmt.Errorf("payment %s: %w", id, pacht.ErrNotFound)
	}
	if err != nil {
		return Payment{}, fmt.Errorf("payment %s: %w", id, err)
	}
	return p, nil
}

// Payments lists payments by id, after the one given ("" = from the first), at most limit.
func (b *Book) Payments(ctx context.Context, after string, limit int) (page []Payment, err error) {
	rows, err := b.db.QueryContext(ctx, b.sql.Payments, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list payments: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		p, err := scan(rows)
		if err != nil {
			return nil, fmt.Errorf("list payments: %w", err)
		}
		page = append(page, p)
	}
	return page, rows.Err()
}

func scan(row interface{ Scan(...any) error }) (p Payment, err error) {
	return p, row.Scan(&p.ID, &p.AmountMinor, &p.Currency, &p.Status, &p.ChargeRef)
}

// Tally is how far a run has come, in one snapshot.
type Tally struct {
	Payments, Paid             int64
	Pending, Processing, Stuck int64 // jobs, by the status of their lease
	Attempts                   int64 // closed leases: the ledger
	Completed, EndedBadly      int64 // finished jobs, as Completed or otherwise
	Expired                    int64 // leases that ended with nobody closing them
	RefusedLate                int64 // outcomes that came after their lease was closed
}

// Unfinished is how many jobs still have a lease.
func (t Tally) Unfinished() int64 { return t.Pending + t.Processing + t.Stuck }

// Tally counts everything in the database.
func (b *Book) Tally(ctx context.Context) (t Tally, err error) {
	err = b.db.QueryRowContext(ctx, b.sql.Tally).Scan(&t.Payments, &t.Paid, &t.Pending, &t.Processing, &t.Stuck,
		&t.Attempts, &t.Completed, &t.EndedBadly, &t.Expired, &t.RefusedLate)
	if err != nil {
		return Tally{}, fmt.Errorf("count: %w", err)
	}
	return t, nil
}

// inTx runs do in a transaction. It is the only place that begins one.
func (b *Book) inTx(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := b.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		// A broken transaction says that it is broken; the first error is the one to tell.
		_ = tx.Rollback()
		return err
	}
	return tx.Commit()
}
