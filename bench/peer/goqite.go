package peer

import (
	"context"
	"database/sql"
	"encoding/json"
	"log/slog"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // its driver for PostgreSQL
	queue "maragu.dev/goqite"
	"maragu.dev/goqite/jobs"
)

// goqite is a queue of messages with a job runner on top.
type goqite struct{ sqlite bool }

// limit is how many jobs the runner may have under way before it pauses for a poll interval.
// On PostgreSQL its transactions are serializable: two at a time abort each other, it waits a
// second after each, and a job whose deletion was aborted runs again.
func (g goqite) limit() int {
	if g.sqlite {
		return 10
	}
	return 1
}

func (g goqite) About() About {
	a := About{
		Name: "goqite", Title: "goqite", Module: "maragu.dev/goqite",
		Settings:   "job runner with limit 1, as in its introduction (more abort each other's transactions), poll 1 ms (default 100 ms); no bulk insert",
		Keeps:      "nothing",
		Acts:       []Act{Single, Drain, Pickup},
		Share:      0.05,
		Unfinished: "FROM goqite",
	}
	if g.sqlite {
		a.Name, a.SQLite = "goqite-sqlite", true
		a.Share, a.Acts = 0, []Act{Single, Drain}
		a.Settings = "job runner with limit 10 (default: as many as cores), poll 1 ms (default 100 ms), one connection, as in its introduction; no bulk insert"
	}
	return a
}

func (g goqite) open(at Target) (*sql.DB, error) {
	if g.sqlite {
		return openFile(at)
	}
	db, err := sql.Open("pgx", at.URL)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(poolSize)
	db.SetMaxIdleConns(poolSize)
	return db, nil
}

func (g goqite) Prepare(ctx context.Context, at Target) error {
	name := "schema_postgres.sql"
	if g.sqlite {
		name = "schema_sqlite.sql"
	}
	schema, err := moduleFile(ctx, "maragu.dev/goqite", name)
	if err != nil {
		return err
	}
	db, err := g.open(at)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, schema)
	return err
}

func (g goqite) Open(_ context.Context, at Target) (Session, error) {
	db, err := g.open(at)
	if err != nil {
		return nil, err
	}
	opts := queue.NewOpts{DB: db, Name: "bench"}
	if !g.sqlite {
		opts.SQLFlavor = queue.SQLFlavorPostgreSQL
	}
	return &goqiteSession{db: db, queue: queue.New(opts), limit: g.limit()}, nil
}

type goqiteSession struct {
	db    *sql.DB
	queue *queue.Queue
	limit int
}

func (s *goqiteSession) Enqueue(ctx context.Context, p Payload) error {
	_, err := jobs.Create(ctx, s.queue, "bench", queue.Message{Body: p.JSON()})
	return err
}

// EnqueueBulk fills the queue for a drain: many messages in one transaction. It is not
// measured, because the package has nothing for it.
func (s *goqiteSession) EnqueueBulk(ctx context.Context, n, bytes int) error {
	return batches(n, bytes, 1000, func(batch []Payload) error {
		tx, err := s.db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // answers that it is done after the commit
		for _, p := range batch {
			if _, err := jobs.CreateTx(ctx, tx, s.queue, "bench", queue.Message{Body: p.JSON()}); err != nil {
				return err
			}
		}
		return tx.Commit()
	})
}

// failures lets through what the runner logs when something failed, and not its two lines for
// each job.
type failures struct{}

func (failures) Info(msg string, args ...any) {
	switch msg {
	case "Running job", "Ran job", "Starting job runner", "Stopping job runner", "Stopped job runner", "Extending message timeout":
		return
	}
	slog.Warn(msg, args...)
}

func (s *goqiteSession) Work(ctx context.Context, handle func(int)) error {
	runner := jobs.NewRunner(jobs.NewRunnerOpts{
		Limit: s.limit, PollInterval: time.Millisecond, Queue: s.queue, Log: failures{},
	})
	runner.Register("bench", func(_ context.Context, m []byte) error {
		var p Payload
		if err := json.Unmarshal(m, &p); err != nil {
			return err
		}
		handle(p.Number)
		return nil
	})
	runner.Start(ctx)
	return nil
}

func (s *goqiteSession) Close(context.Context) error { return s.db.Close() }
