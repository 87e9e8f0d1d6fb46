package peer

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	riverqueue "github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
)

// river is River with the settings of its introduction, or tuned as its own "river bench" is.
type river struct{ tuned bool }

// A fifth: with its default pause of 100 ms between fetches of 100 jobs it runs 1,000 a second.
const riverDefaultShare = 0.2

const riverUnfinished = "FROM river_job WHERE state IN ('available', 'pending', 'retryable', 'running', 'scheduled')"

func (r river) About() About {
	a := About{
		Name: "river", Title: "River, default", Module: "github.com/riverqueue/river",
		Settings:   "100 workers, as in its introduction; all else default; bulk by InsertMany, 1,000 at a time",
		Keeps:      "the job's row, updated, for 24 hours",
		Acts:       []Act{Single, Bulk, Drain, Pickup},
		Share:      riverDefaultShare,
		Unfinished: riverUnfinished,
	}
	if r.tuned {
		a.Name, a.Title, a.Share = "river-tuned", "River, tuned", 0
		a.Settings = "as its own benchmark: 2,000 workers, fetch cool-down 2 ms, poll 20 ms; bulk by InsertManyFast (COPY), 5,000 at a time"
		a.Snapshot, a.Processes, a.Kilobyte = true, true, true
	}
	return a
}

func (r river) Prepare(ctx context.Context, at Target) error {
	pool, err := openPool(ctx, at, 4)
	if err != nil {
		return err
	}
	defer pool.Close()
	return riverMigrate(ctx, riverpgxv5.New(pool))
}

func riverMigrate[T any](ctx context.Context, driver riverdriver.Driver[T]) error {
	m, err := rivermigrate.New(driver, nil)
	if err != nil {
		return err
	}
	_, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

func (r river) Open(ctx context.Context, at Target) (Session, error) {
	pool, err := openPool(ctx, at, poolSize)
	if err != nil {
		return nil, err
	}
	s := &riverSession[pgx.Tx]{driver: riverpgxv5.New(pool), tuned: r.tuned, close: pool.Close}
	return s, s.openInserter()
}

// riverSQLite is River on a file, tuned as on PostgreSQL.
type riverSQLite struct{}

func (riverSQLite) About() About {
	return About{
		Name: "river-sqlite", Title: "River", Module: "github.com/riverqueue/river/riverdriver/riversqlite", SQLite: true,
		Settings:   "as its own benchmark: 2,000 workers, fetch cool-down 2 ms, poll 20 ms; one connection, as its driver asks for; bulk by InsertMany, 1,000 at a time",
		Keeps:      "the job's row, updated, for 24 hours",
		Acts:       []Act{Single, Bulk, Drain},
		Unfinished: riverUnfinished,
	}
}

func (riverSQLite) Prepare(ctx context.Context, at Target) error {
	db, err := openFile(at)
	if err != nil {
		return err
	}
	defer db.Close()
	return riverMigrate(ctx, riversqlite.New(db))
}

func (riverSQLite) Open(_ context.Context, at Target) (Session, error) {
	db, err := openFile(at)
	if err != nil {
		return nil, err
	}
	s := &riverSession[*sql.Tx]{driver: riversqlite.New(db), tuned: true, slowCopy: true, close: func() { db.Close() }}
	return s, s.openInserter()
}

type riverSession[T any] struct {
	driver   riverdriver.Driver[T]
	inserter *riverqueue.Client[T]
	tuned    bool
	slowCopy bool // the driver has no COPY
	close    func()
}

type riverArgs Payload

func (riverArgs) Kind() string { return "bench" }

type riverWorker struct {
	riverqueue.WorkerDefaults[riverArgs]
	handle func(int)
}

func (w *riverWorker) Work(_ context.Context, job *riverqueue.Job[riverArgs]) error {
	w.handle(job.Args.Number)
	return nil
}

func (s *riverSession[T]) openInserter() (err error) {
	s.inserter, err = riverqueue.NewClient(s.driver, &riverqueue.Config{Logger: slog.Default()})
	return err
}

func (s *riverSession[T]) Enqueue(ctx context.Context, p Payload) error {
	_, err := s.inserter.Insert(ctx, riverArgs(p), nil)
	return err
}

func (s *riverSession[T]) EnqueueBulk(ctx context.Context, n, bytes int) error {
	fast := s.tuned && !s.slowCopy
	size := 1000
	if fast {
		size = 5000
	}
	return batches(n, bytes, size, func(batch []Payload) error {
		params := make([]riverqueue.InsertManyParams, len(batch))
		for i, p := range batch {
			params[i].Args = riverArgs(p)
		}
		if fast {
			_, err := s.inserter.InsertManyFast(ctx, params)
			return err
		}
		_, err := s.inserter.InsertMany(ctx, params)
		return err
	})
}

func (s *riverSession[T]) Work(ctx context.Context, handle func(int)) error {
	workers := riverqueue.NewWorkers()
	riverqueue.AddWorker(workers, &riverWorker{handle: handle})
	cfg := &riverqueue.Config{
		Queues:  map[string]riverqueue.QueueConfig{riverqueue.QueueDefault: {MaxWorkers: 100}},
		Workers: workers, Logger: slog.Default(),
	}
	if s.tuned {
		cfg.Queues[riverqueue.QueueDefault] = riverqueue.QueueConfig{MaxWorkers: 2000}
		cfg.FetchCooldown, cfg.FetchPollInterval = 2*time.Millisecond, 20*time.Millisecond
	}
	client, err := riverqueue.NewClient(s.driver, cfg)
	if err != nil {
		return err
	}
	// Its context would end running jobs; Stop lets them end.
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	<-ctx.Done()
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	if err := client.Stop(limit); err != nil {
		return fmt.Errorf("stop River: %w", err)
	}
	return nil
}

func (s *riverSession[T]) Close(context.Context) error { s.close(); return nil }
