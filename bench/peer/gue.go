package peer

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	guequeue "github.com/vgarvardt/gue/v5"
	"github.com/vgarvardt/gue/v5/adapter/pgxv5"
)

// gue locks a row for the time of the job, in a transaction of the worker's own.
type gue struct{}

const gueWorkers = 10

func (gue) About() About {
	return About{
		Name: "gue", Title: "gue", Module: "github.com/vgarvardt/gue/v5",
		Settings:   "10 workers, each with a connection, poll 5 ms (default 5 s), ordered by run_at, which its index serves; bulk by EnqueueBatch, 1,000 at a time",
		Keeps:      "nothing",
		Acts:       []Act{Single, Bulk, Drain, Pickup},
		Share:      0.2,
		Snapshot:   true,
		Unfinished: "FROM gue_jobs",
	}
}

func (gue) Prepare(ctx context.Context, at Target) error {
	schema, err := moduleFile(ctx, "github.com/vgarvardt/gue/v5", "migrations/schema.sql")
	if err != nil {
		return err
	}
	pool, err := openPool(ctx, at, 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	_, err = pool.Exec(ctx, schema)
	return err
}

func (gue) Open(ctx context.Context, at Target) (Session, error) {
	pool, err := openPool(ctx, at, poolSize)
	if err != nil {
		return nil, err
	}
	client, err := guequeue.NewClient(pgxv5.NewConnPool(pool))
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &gueSession{pool: pool, client: client}, nil
}

type gueSession struct {
	pool   *pgxpool.Pool
	client *guequeue.Client
}

func (s *gueSession) Enqueue(ctx context.Context, p Payload) error {
	return s.client.Enqueue(ctx, &guequeue.Job{Type: "bench", Args: p.JSON()})
}

func (s *gueSession) EnqueueBulk(ctx context.Context, n, bytes int) error {
	return batches(n, bytes, 1000, func(batch []Payload) error {
		jobs := make([]*guequeue.Job, len(batch))
		for i, p := range batch {
			jobs[i] = &guequeue.Job{Type: "bench", Args: p.JSON()}
		}
		return s.client.EnqueueBatch(ctx, jobs)
	})
}

func (s *gueSession) Work(ctx context.Context, handle func(int)) error {
	work := func(_ context.Context, j *guequeue.Job) error {
		var p Payload
		if err := json.Unmarshal(j.Args, &p); err != nil {
			return err
		}
		handle(p.Number)
		return nil
	}
	// Graceful: else the end of ctx breaks the transaction of a job that has run.
	pool, err := guequeue.NewWorkerPool(s.client, guequeue.WorkMap{"bench": work}, gueWorkers,
		guequeue.WithPoolPollInterval(5*time.Millisecond), guequeue.WithPoolPollStrategy(guequeue.RunAtPollStrategy),
		guequeue.WithPoolGracefulShutdown(nil))
	if err != nil {
		return err
	}
	return pool.Run(ctx)
}

func (s *gueSession) Close(context.Context) error { s.pool.Close(); return nil }
