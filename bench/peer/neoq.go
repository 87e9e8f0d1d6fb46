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
	"golang.org/x/sync/errgroup"
)

// neoqPeer is neoq: a notification names each job, and a handler locks its row. A backlog that
// was there before the worker is announced 100 jobs at a time, by default once a minute.
type neoqPeer struct {
	backlog bool // looks for a backlog each 10 ms, which makes its pickup slow
}

func (n neoqPeer) About() About {
	a := About{
		Name: "neoq", Title: "neoq", Module: "github.com/acaloiaro/neoq",
		Settings:   "synchronous commit on (its default is off), 16 connections, 50 handlers (default); no bulk insert",
		Keeps:      "the job's row, updated",
		Acts:       []Act{Single, Pickup},
		Unfinished: "FROM neoq_jobs WHERE status <> 'processed'",
	}
	if n.backlog {
		a.Name, a.Title, a.Acts, a.Share = "neoq-backlog", "neoq, looking for a backlog", []Act{Drain}, 0.05
		a.Settings = "as neoq, and a look at the backlog each 10 ms (default 60 s), 100 jobs at a time"
	}
	return a
}

func (n neoqPeer) Prepare(ctx context.Context, at Target) error {
	s, err := n.open(ctx, at)
	if err != nil {
		return err
	}
	return s.Close(ctx)
}

func (n neoqPeer) Open(ctx context.Context, at Target) (Session, error) { return n.open(ctx, at) }

func (n neoqPeer) open(ctx context.Context, at Target) (*neoqSession, error) {
	interval := neoq.DefaultPendingJobFetchInterval
	if n.backlog {
		interval = 10 * time.Millisecond
	}
	q, err := neoq.New(ctx, neoq.WithBackend(postgres.Backend),
		postgres.WithConnectionString(fmt.Sprintf("%s&pool_max_conns=%d", at.URL, poolSize)),
		postgres.WithSynchronousCommit(true), neoq.WithPendingJobCheckInterval(interval), neoq.WithLogLevel(logging.LogLevelError))
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

// EnqueueBulk fills the queue for a drain, one by one. It is not measured, because the package
// has nothing for it.
func (s *neoqSession) EnqueueBulk(ctx context.Context, n, bytes int) error {
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(8)
	for i := range n {
		all.Go(func() error { return s.Enqueue(ctx, NewPayload(i, bytes)) })
	}
	return all.Wait()
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
