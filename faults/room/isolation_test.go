package room_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/faults/crew"
	"github.com/pacht-queue/pacht/faults/lab"
	"github.com/pacht-queue/pacht/postgres"
)

// S060: the database's default is SERIALIZABLE, or REPEATABLE READ, and 16 workers drain 5,000
// jobs, a tenth of them completed in transactions of the handler's own at that level. The
// store's own statements abort nowhere; what a handler's transaction meets is ErrSerialization,
// and repeating it is enough.
func TestStricterDefaultsOfIsolationAbortNothingOfTheStores(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"serializable", "repeatable read"}[:lab.Scale(1, 2)] {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			database, _ := crew.Database(t)
			// Whoever only looks on must not get into the way of those who write.
			base := crew.Open(t, database+"&default_transaction_isolation=read%20committed", postgres.Config{})
			execute(t, database, `CREATE TABLE booked (job bigint PRIMARY KEY)`)
			execute(t, adminOf(t, database), fmt.Sprintf(`ALTER DATABASE %q SET default_transaction_isolation = '%s'`, nameOf(t, database), level))
			const workers = 16
			jobs := lab.Scale(200, 5000)
			const queue = "strict"
			ids := crew.EnqueueTasks(t, base, make([]crew.Task, jobs), pacht.Queue(queue))
			var seen crew.Runs
			books := &bookkeeper{runs: &seen}
			var all []*crew.Running
			for range 4 {
				pool := crew.Pool(t, database, 4)
				s := crew.On(t, pool)
				for range workers / 4 {
					cfg := crew.Config(queue, 10, books.handler(pool, s))
					cfg.NoSweep, cfg.Poll, cfg.Watch.Poll = true, 100*time.Millisecond, 200*time.Millisecond
					all = append(all, crew.Start(t, s, cfg))
				}
			}
			crew.Finished(t, base, 90*time.Second, queue)
			if got := crew.Outcomes(t, base, ids); got[pacht.OutcomeCompleted] != jobs || len(got) > 1 {
				t.Errorf("leases ended as %v", got)
			}
			seen.Once(t, ids)
			crew.Checked(t, base)
			if n := scalar[int](t, database, "SELECT count(*) FROM booked"); n != books.want() {
				t.Errorf("%d business writes stand, want %d", n, books.want())
			}
			if got := scalar[string](t, database, "SHOW default_transaction_isolation"); got != level {
				t.Errorf("the default was %s: nothing was proved", got)
			}
			for _, w := range all {
				if n := w.Status().Errors; n > 0 {
					t.Errorf("%d calls of a worker failed", n)
				}
			}
			// Each abort of the store's own would be a rollback. What it only reads runs at the
			// session's level, and is repeated inside if SERIALIZABLE aborts it.
			own := scalar[int64](t, database, "SELECT xact_rollback FROM pg_stat_database WHERE datname = current_database()") - int64(books.aborted())
			if own > 0 && level != "serializable" {
				t.Errorf("%d transactions were rolled back beside %d of handlers", own, books.aborted())
			}
			lab.Report(t, "room/isolation "+level, lab.F("jobs", jobs), lab.F("workers", workers), lab.F("handlers' transactions aborted", books.aborted()))
		})
	}
}

// bookkeeper completes every tenth job in a transaction with a business write.
type bookkeeper struct {
	runs   *crew.Runs
	done   counter
	aborts counter
}

func (b *bookkeeper) want() int    { return b.done.value() }
func (b *bookkeeper) aborted() int { return b.aborts.value() }

func (b *bookkeeper) handler(pool *pgxpool.Pool, s *postgres.Store) crew.Handler {
	return func(ctx context.Context, job *pacht.Job[crew.Task]) error {
		if err := b.runs.Handle(ctx, job); err != nil || job.Args.N%10 != 0 {
			return err
		}
		for {
			err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, "INSERT INTO booked VALUES ($1)", int64(job.ID)); err != nil {
					return err
				}
				return job.CompleteTx(ctx, s.Tx(tx))
			})
			var aborted interface{ SQLState() string } // of the COMMIT, which the store does not see
			if errors.Is(err, pacht.ErrSerialization) || errors.As(err, &aborted) && aborted.SQLState() == "40001" {
				b.aborts.add()
				continue
			}
			if err == nil {
				b.done.add()
			}
			return err
		}
	}
}
