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

// R8: a transaction that closed the lease and was rolled back protects nothing any more: the
// lease is renewed again, and a handler that cannot renew is cancelled before its end.
func TestRolledBackCompletionIsALeaseLikeAnyOther(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := &faulty{store: db.open(t)}
		b, _ := newBusiness(t, db, s.store)
		rolledBack, causes := make(chan struct{}), make(chan error, 1)
		cfg := quick(1, func(ctx context.Context, job *pacht.Job[task]) error {
			if job.Token > 1 {
				return nil
			}
			if err := b.complete(ctx, job, func(tx businessTx) error { return tx.rollback(ctx) }); err != nil {
				return err
			}
			close(rolledBack)
			<-ctx.Done()
			if left := job.Remaining(); left <= 0 {
				t.Errorf("cancelled %s after the end of the lease", -left)
			}
			causes <- context.Cause(ctx)
			return ctx.Err()
		})
		start(t, s, cfg)
		id := enqueue(t, s, 1, pacht.TTL(time.Second))[0]
		<-rolledBack
		first := job(t, s, id).LeaseUntil
		eventually(t, 10*time.Second, "the lease is renewed", func() bool { return job(t, s, id).LeaseUntil.After(first) })
		s.failRenew.Store(true)
		select {
		case cause := <-causes:
			if !errors.Is(cause, pacht.ErrLeaseLost) {
				t.Errorf("cause: %v", cause)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("the handler was not cancelled")
		}
		s.failRenew.Store(false)
		becomes(t, s, id, pacht.Completed)
	})
}

// R8: while the transaction stands open it protects the job by its row lock, and the handler
// is not cancelled though nothing can be renewed; after its commit neither.
func TestOpenCompletionProtectsItsJob(t *testing.T) {
	t.Parallel()
	db := newDatabase(t, "postgres") // on SQLite an open transaction locks the whole file
	s := db.open(t)
	b, booked := newBusiness(t, db, s)
	cfg := quick(1, func(ctx context.Context, job *pacht.Job[task]) error {
		err := b.complete(ctx, job, func(tx businessTx) error {
			time.Sleep(600 * time.Millisecond) // less than the lease: idling longer ends the session
			return tx.commit(ctx)
		})
		if err == nil {
			select { // what a handler does after its commit is not cut off either
			case <-ctx.Done():
				err = context.Cause(ctx)
			case <-time.After(2500 * time.Millisecond):
			}
		}
		if err != nil {
			t.Errorf("cancelled: %v", err)
		}
		return err
	})
	w := start(t, s, cfg)
	id := enqueue(t, s, 1, pacht.TTL(2*time.Second))[0]
	becomes(t, s, id, pacht.Completed)
	eventually(t, 10*time.Second, "told of one completion", func() bool { return w.seen.count(worker.EventSettled) == 1 })
	if booked() != 1 || w.seen.count(worker.EventLost) != 0 {
		t.Errorf("booked %d times, %d lost", booked(), w.seen.count(worker.EventLost))
	}
}

// A handler whose CompleteTx failed, and who says nil all the same, has not completed.
func TestCompletionThatFailedIsNotCommitted(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := db.open(t)
		b, booked := newBusiness(t, db, s)
		cfg := quick(1, func(ctx context.Context, job *pacht.Job[task]) error {
			if job.Attempt > 1 {
				return b.complete(ctx, job, func(tx businessTx) error { return tx.commit(ctx) })
			}
			tx, err := b.begin(ctx)
			if err != nil {
				return err
			}
			if err := tx.rollback(ctx); err != nil {
				return err
			}
			if err := job.CompleteTx(ctx, tx); err == nil {
				t.Error("completed in a transaction that is over")
			}
			return nil
		})
		cfg.Retry = pacht.Fixed(time.Millisecond)
		start(t, s, cfg)
		id := enqueue(t, s, 1)[0]
		becomes(t, s, id, pacht.Completed)
		if got := outcomes(t, s, id); !slices.Equal(got, []pacht.Outcome{pacht.OutcomeFailed, pacht.OutcomeCompleted}) || booked() != 1 {
			t.Errorf("ledger %v, booked %d times", got, booked())
		}
		if got := ledger(t, s, id)[0].Error; !strings.Contains(got, pacht.ErrNotCommitted.Error()) {
			t.Errorf("error: %s", got)
		}
	})
}
