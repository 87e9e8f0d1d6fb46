package worker_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/postgres"
	"github.com/pacht-queue/pacht/sqlite"
	"github.com/pacht-queue/pacht/worker"
)

// business is a table of the user's, in the same database.
type business struct {
	t     *testing.T
	begin func(ctx context.Context) (businessTx, error)
}

type businessTx interface {
	pacht.Tx
	book(ctx context.Context) error
	commit(ctx context.Context) error
	rollback(ctx context.Context) error
}

type sqliteTx struct {
	pacht.Tx
	tx *sql.Tx
}

func (b sqliteTx) book(ctx context.Context) error {
	_, err := b.tx.ExecContext(ctx, "INSERT INTO books (id) VALUES (NULL)")
	return err
}
func (b sqliteTx) commit(context.Context) error   { return b.tx.Commit() }
func (b sqliteTx) rollback(context.Context) error { return b.tx.Rollback() }

type postgresTx struct {
	pacht.Tx
	tx pgx.Tx
}

func (b postgresTx) book(ctx context.Context) error {
	_, err := b.tx.Exec(ctx, "INSERT INTO books DEFAULT VALUES")
	return err
}
func (b postgresTx) commit(ctx context.Context) error   { return b.tx.Commit(ctx) }
func (b postgresTx) rollback(ctx context.Context) error { return b.tx.Rollback(ctx) }

// newBusiness makes the table, and answers how to open a transaction and how many were booked.
func newBusiness(t *testing.T, db database, s store) (business, func() int) {
	t.Helper()
	ctx := context.Background()
	if lite, ok := s.(*sqlite.Store); ok {
		if _, err := lite.DB().ExecContext(ctx, "CREATE TABLE books (id INTEGER PRIMARY KEY)"); err != nil {
			t.Fatal(err)
		}
		begin := func(ctx context.Context) (businessTx, error) {
			tx, err := lite.DB().BeginTx(ctx, nil)
			return sqliteTx{lite.Tx(tx), tx}, err
		}
		return business{t, begin}, func() (n int) {
			if err := lite.DB().QueryRowContext(ctx, "SELECT count(*) FROM books").Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	pool, err := pgxpool.New(ctx, db.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if _, err := pool.Exec(ctx, "CREATE TABLE books (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	begin := func(ctx context.Context) (businessTx, error) {
		tx, err := pool.Begin(ctx)
		return postgresTx{s.(*postgres.Store).Tx(tx), tx}, err
	}
	return business{t, begin}, func() (n int) {
		if err := pool.QueryRow(ctx, "SELECT count(*) FROM books").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
}

// S077, R4: completing in the handler's transaction books exactly once, and whatever goes
// wrong between the call and the commit is a failure, never a completion.
func TestCompleteInTheHandlersTransaction(t *testing.T) {
	boom := errors.New("boom")
	cases := []struct {
		name     string
		first    func(ctx context.Context, b business, job *pacht.Job[task]) error
		outcomes []pacht.Outcome
		says     string
	}{
		{"committed", func(ctx context.Context, b business, job *pacht.Job[task]) error {
			return b.complete(ctx, job, func(tx businessTx) error { return tx.commit(ctx) })
		}, []pacht.Outcome{pacht.OutcomeCompleted}, ""},
		{"committed, then an error", func(ctx context.Context, b business, job *pacht.Job[task]) error {
			return errors.Join(b.complete(ctx, job, func(tx businessTx) error { return tx.commit(ctx) }), boom)
		}, []pacht.Outcome{pacht.OutcomeCompleted}, ""},
		{"rolled back, then nil", func(ctx context.Context, b business, job *pacht.Job[task]) error {
			return b.complete(ctx, job, func(tx businessTx) error { return tx.rollback(ctx) })
		}, []pacht.Outcome{pacht.OutcomeFailed, pacht.OutcomeCompleted}, pacht.ErrNotCommitted.Error()},
		{"panic before the commit", func(ctx context.Context, b business, job *pacht.Job[task]) error {
			return b.complete(ctx, job, func(tx businessTx) error {
				defer func() { _ = tx.rollback(ctx) }()
				panic("kaboom")
			})
		}, []pacht.Outcome{pacht.OutcomeFailed, pacht.OutcomeCompleted}, "kaboom"},
	}
	onBoth(t, func(t *testing.T, db database) {
		s := db.open(t)
		b, booked := newBusiness(t, db, s)
		for _, c := range cases {
			before := booked()
			cfg := quick(1, func(ctx context.Context, job *pacht.Job[task]) error {
				if job.Attempt == 1 {
					return c.first(ctx, b, job)
				}
				return b.complete(ctx, job, func(tx businessTx) error { return tx.commit(ctx) })
			})
			cfg.Retry = pacht.Fixed(time.Millisecond)
			w := start(t, s, cfg)
			id := enqueue(t, s, 1)[0]
			becomes(t, s, id, pacht.Completed)
			eventually(t, 10*time.Second, c.name+": told of each settle", func() bool { return w.seen.count(worker.EventSettled) == len(c.outcomes) })
			if got := outcomes(t, s, id); !slices.Equal(got, c.outcomes) || !strings.Contains(ledger(t, s, id)[0].Error, c.says) {
				t.Errorf("%s: ledger %+v", c.name, ledger(t, s, id))
			}
			if n := booked() - before; n != 1 {
				t.Errorf("%s: booked %d times", c.name, n)
			}
			if err := w.end(); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		checked(t, s)
	})
}

func (b business) complete(ctx context.Context, job *pacht.Job[task], end func(businessTx) error) error {
	tx, err := b.begin(ctx)
	if err != nil {
		return err
	}
	if err := tx.book(ctx); err != nil {
		return errors.Join(err, tx.rollback(ctx))
	}
	if err := job.CompleteTx(ctx, tx); err != nil {
		return errors.Join(err, tx.rollback(ctx))
	}
	return end(tx)
}

// S014, S018, R4: a holder who lost its lease cannot commit its business write, not even by
// ignoring the error.
func TestLostLeaseCannotCommitTheBusinessWrite(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := db.open(t)
		b, booked := newBusiness(t, db, s)
		var id pacht.ID
		results := make(chan [2]error, 1)
		start(t, s, quick(1, func(ctx context.Context, job *pacht.Job[task]) error {
			if job.Attempt == 0 || job.Token > 1 {
				return nil
			}
			if _, err := s.Release(ctx, job.Ref(), pacht.Act{By: "test", Reason: "take it away"}); err != nil {
				t.Error(err)
			}
			tx, err := b.begin(context.WithoutCancel(ctx))
			if err != nil {
				return err
			}
			if err := tx.book(context.WithoutCancel(ctx)); err != nil {
				return errors.Join(err, tx.rollback(ctx))
			}
			lost := job.CompleteTx(context.WithoutCancel(ctx), tx)
			results <- [2]error{lost, tx.commit(context.WithoutCancel(ctx))}
			_ = tx.rollback(context.WithoutCancel(ctx)) // after a refused commit
			return nil
		}))
		id = enqueue(t, s, 1)[0]
		got := <-results
		if !errors.Is(got[0], pacht.ErrLeaseLost) || got[1] == nil {
			t.Errorf("CompleteTx said %v, commit said %v", got[0], got[1])
		}
		if n := booked(); n != 0 {
			t.Errorf("booked %d times", n)
		}
		becomes(t, s, id, pacht.Completed)
		checked(t, s)
	})
}
