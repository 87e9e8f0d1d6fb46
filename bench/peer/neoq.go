package peer

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/acaloiaro/neoq"
	"github.com/acaloiaro/neoq/backends/postgres"
	"github.com/acaloiaro/neoq/handler"
	"github.com/acaloiaro/neoq/jobs"
	"github.com/acaloiaro/neoq/logging"
)

// neoqPeer is neoq: a notification names each job, and a handler locks its row. A backlog that
// was there before the worker is announced 100 jobs at a time, once a minute by default.
type neoqPeer struct{}

func (neoqPeer) About() About {
	return About{
		Name: "neoq", Title: "neoq", Module: "github.com/acaloiaro/neoq",
		Settings:   "synchronous commit on (its default is off), 16 connections, 50 handlers (default); no bulk insert, and no way to run a backlog but 100 jobs a minute",
		Keeps:      "the job's row, updated",
		Acts:       []Act{Single, Pickup},
		Unfinished: "FROM neoq_jobs WHERE status <> 'processed'",
	}
}

func (neoqPeer) Prepare(ctx context.Context, at Target) error {
	s, err := openNeoq(ctx, at)
	if err != nil {
		return err
	}
	return s.Close(ctx)
}

func (neoqPeer) Open(ctx context.Context, at Target) (Session, error) { return openNeoq(ctx, at) }

func openNeoq(ctx context.Context, at Target) (*neoqSession, error) {
	q, err := neoq.New(ctx, neoq.WithBackend(postgres.Backend),
		postgres.WithConnectionString(fmt.Sprintf("%s&pool_max_conns=%d", at.URL, poolSize)),
		postgres.WithSynchronousCommit(true), neoq.WithLogLevel(logging.LogLevelError))
	if err != nil {
		return nil, err
	}
	q.SetLogger(slog.Default())
	return &neoqSession{queue: q}, nil
}

type neoqSession struct{ queue neoq.Neoq }

func (s *neoqSession) Enqueue(ctx context.Context, p Payload) error {
	_, err := s.queue.Enqueue(ctx, &jobs.Job{Queue: "bench", Payload: map[string]any{"number": p.Number, "pad": p.Pad}})
	return err
}

func (s *neoqSession) Work(ctx context.Context, handle func(int)) error {
	err := s.queue.Start(ctx, handler.New("bench", func(ctx context.Context) error {
		j, err := jobs.FromContext(ctx)
		if err != nil {
			return err
		}
		number, ok := j.Payload["number"].(float64)
		if !ok {
			return fmt.Errorf("job %d has no number", j.ID)
		}
		handle(int(number))
		return nil
	}))
	if err != nil {
		return err
	}
	<-ctx.Done()
	time.Sleep(100 * time.Millisecond) // nothing of it can be waited for
	return nil
}

func (s *neoqSession) Close(ctx context.Context) error { s.queue.Shutdown(ctx); return nil }
