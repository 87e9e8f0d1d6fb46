package payments

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/sqltext"
	"github.com/pacht-queue/pacht/postgres"
	"github.com/pacht-queue/pacht/sqlite"
)

//go:embed sql tables
var sqlFiles embed.FS

type statements struct {
	Create       string `sql:"create"`
	Payment      string `sql:"payment"`
	Lock         string `sql:"lock"`
	Payments     string `sql:"payments"`
	Pending      string `sql:"pending"`
	Reversible   string `sql:"reversible"`
	Settle       string `sql:"settle"`
	Transition   string `sql:"transition"`
	Transitions  string `sql:"transitions"`
	Book         string `sql:"book"`
	Balances     string `sql:"balances"`
	Unbalanced   string `sql:"unbalanced"`
	RefundCreate string `sql:"refund_create"`
	RefundThere  string `sql:"refund_there"`
	RefundSettle string `sql:"refund_settle"`
	Refund       string `sql:"refund"`
	Refunds      string `sql:"refunds"`

	RefundsPending string `sql:"refunds_pending"`

	EventAdd    string `sql:"event_add"`
	EventJudge  string `sql:"event_judge"`
	EventRefuse string `sql:"event_refuse"`
	Events      string `sql:"events"`
	RequestAdd  string `sql:"request_add"`
	Request     string `sql:"request"`
	Duplicates  string `sql:"duplicates"`
	DuplicateOf string `sql:"duplicate_of"`
	Tally       string `sql:"tally"`
}

// Book keeps payments in a database, in the same transactions as their jobs. Made by OnSQLite
// or OnPostgres.
type Book struct {
	// Queue is the queue of follow-up jobs; "" = pacht.DefaultQueue.
	Queue string
	// RefundLate gives the money of a late success back at once, instead of keeping it.
	RefundLate bool

	db      *sql.DB
	options *sql.TxOptions
	tx      func(*sql.Tx) pacht.Tx
	sql     statements
	tables  []string
}

// OnSQLite keeps payments in the store's own file.
func OnSQLite(store *sqlite.Store) (*Book, error) {
	b := &Book{db: store.DB(), tx: store.Tx}
	return b, b.load("sqlite", sqlite.DefaultPrefix, sqlite.DefaultPrefix)
}

// OnPostgres keeps payments in the database that db leads to, which is the store's too. The
// tables stand in the queue's schema, so that all go together; a real system would have its
// own.
func OnPostgres(db *sql.DB, store *postgres.Store, schema string) (*Book, error) {
	b := &Book{db: db, tx: store.SQLTx, options: &sql.TxOptions{Isolation: sql.LevelReadCommitted}}
	return b, b.load("postgres", "pacht.", pgx.Identifier{schema}.Sanitize()+".")
}

func (b *Book) load(dialect, from, to string) error {
	if err := sqltext.Fill(&b.sql, sqlFiles, "sql/"+dialect, from, to); err != nil {
		return fmt.Errorf("payments on %s: %w", dialect, err)
	}
	files, err := fs.ReadDir(sqlFiles, "tables/"+dialect)
	if err != nil {
		return fmt.Errorf("payments on %s: %w", dialect, err)
	}
	for _, f := range files {
		text, err := fs.ReadFile(sqlFiles, path.Join("tables", dialect, f.Name()))
		if err != nil {
			return fmt.Errorf("payments on %s: %w", dialect, err)
		}
		b.tables = append(b.tables, sqltext.Rename(sqltext.Strip(string(text)), from, to))
	}
	return nil
}

// CreateTables makes the business tables. The queue's own tables must be there.
func (b *Book) CreateTables(ctx context.Context) error {
	err := b.inTx(ctx, func(tx *sql.Tx) error {
		for _, statement := range b.tables {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("create the payments tables: %w", err)
	}
	return nil
}

// Create stores a payment and the job that charges it: both, or neither. The job's idempotency
// key is made of the payment's id, so it may be repeated when its answer was lost; the same id with
// other content, or after the key's life, is pacht.ErrKeyConflict.
func (b *Book) Create(ctx context.Context, p Payment, opts ...pacht.Option) (answer pacht.Enqueued, err error) {
	if err := p.check(); err != nil {
		return pacht.Enqueued{}, err
	}
	err = b.inTx(ctx, func(tx *sql.Tx) error {
		answer, err = b.create(ctx, tx, p, opts)
		return err
	})
	if err != nil {
		return pacht.Enqueued{}, fmt.Errorf("create payment %s: %w", p.ID, err)
	}
	return answer, nil
}

// CreateAll creates payments as Create does, all or none, in one transaction.
func (b *Book) CreateAll(ctx context.Context, all []Payment, opts ...pacht.Option) error {
	for _, p := range all {
		if err := p.check(); err != nil {
			return err
		}
	}
	err := b.inTx(ctx, func(tx *sql.Tx) error {
		for _, p := range all {
			if _, err := b.create(ctx, tx, p, opts); err != nil {
				return fmt.Errorf("payment %s: %w", p.ID, err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("create %d payments: %w", len(all), err)
	}
	return nil
}

func (b *Book) create(ctx context.Context, tx *sql.Tx, p Payment, opts []pacht.Option) (pacht.Enqueued, error) {
	var within any // null: for ever
	if p.ChargeWithin > 0 {
		within = p.ChargeWithin.Milliseconds()
	}
	res, err := tx.ExecContext(ctx, b.sql.Create, p.ID, p.Amount.Minor, string(p.Amount.Currency), p.Payer, within)
	if err != nil {
		return pacht.Enqueued{}, err
	}
	made, err := res.RowsAffected()
	if err != nil {
		return pacht.Enqueued{}, err
	}
	charge := Charge{PaymentID: p.ID, AmountMinor: p.Amount.Minor, Currency: string(p.Amount.Currency)}
	e, err := b.enqueue(ctx, tx, charge, append(slices.Clone(opts), pacht.IdempotencyKey("charge:"+p.ID))...)
	if err == nil && made == 0 && !e.Duplicate {
		// The key's life is over. A second job would have effects of its own, and charge again.
		err = fmt.Errorf("%w: the payment is there, and the key of its job has expired", pacht.ErrKeyConflict)
	}
	return e, err
}

// enqueue stores a job in the transaction; one that is refused is an error.
func (b *Book) enqueue(ctx context.Context, tx *sql.Tx, args pacht.Args, opts ...pacht.Option) (pacht.Enqueued, error) {
	if b.Queue != "" {
		opts = append([]pacht.Option{pacht.Queue(b.Queue)}, opts...)
	}
	answers, err := b.tx(tx).EnqueueTx(ctx, []pacht.NewJob{pacht.New(args, opts...)})
	if err != nil {
		return pacht.Enqueued{}, err
	}
	return answers[0], answers[0].Err
}

// inTx runs do in a transaction. It is the only place that begins one.
func (b *Book) inTx(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := b.db.BeginTx(ctx, b.options)
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

func fromMillis(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
