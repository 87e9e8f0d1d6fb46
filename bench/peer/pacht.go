package peer

import (
	"context"
	"log/slog"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/postgres"
	"github.com/pacht-queue/pacht/sqlite"
	"github.com/pacht-queue/pacht/worker"
)

// pachtPeer is this project, as a user gets it: every option at its default but the
// concurrency, which has none.
type pachtPeer struct{ sqlite bool }

const pachtConcurrency = 1000

func (p pachtPeer) About() About {
	a := About{
		Name: "pacht", Title: "Pacht", Module: "github.com/pacht-queue/pacht", Version: "this commit",
		Settings:  "concurrency 1,000; all else default (TTL 60 s, watcher on)",
		Keeps:     "the job, and a ledger row for each attempt",
		Acts:      []Act{Single, Bulk, Drain, Pickup},
		Snapshot:  true,
		Processes: true, Kilobyte: true,
		Unfinished: "FROM pacht.leases",
	}
	if p.sqlite {
		a.Name, a.Title, a.SQLite = "pacht-sqlite", "Pacht", true
		a.Acts, a.Unfinished = []Act{Single, Bulk, Drain}, "FROM pacht_leases"
	}
	return a
}

func (p pachtPeer) open(ctx context.Context, at Target) (interface {
	pacht.Store
	pacht.Migrator
}, error) {
	if p.sqlite {
		return sqlite.Open(at.URL, sqlite.Config{})
	}
	return postgres.Open(ctx, at.URL, postgres.Config{})
}

func (p pachtPeer) Prepare(ctx context.Context, at Target) error {
	store, err := p.open(ctx, at)
	if err != nil {
		return err
	}
	defer store.Close()
	_, err = store.MigrateUp(ctx)
	return err
}

func (p pachtPeer) Open(ctx context.Context, at Target) (Session, error) {
	store, err := p.open(ctx, at)
	if err != nil {
		return nil, err
	}
	return &pachtSession{store: store, client: pacht.NewClient(store)}, nil
}

type pachtSession struct {
	store  pacht.Store
	client *pacht.Client
}

type pachtArgs Payload

func (pachtArgs) Kind() string { return "bench" }

func (s *pachtSession) Enqueue(ctx context.Context, p Payload) error {
	_, err := s.client.Enqueue(ctx, pachtArgs(p))
	return err
}

func (s *pachtSession) EnqueueBulk(ctx context.Context, n, bytes int) error {
	_, err := s.client.EnqueueMany(ctx, func(yield func(pacht.NewJob) bool) {
		for i := range n {
			if !yield(pacht.New(pachtArgs(NewPayload(i, bytes)))) {
				return
			}
		}
	})
	return err
}

func (s *pachtSession) Work(ctx context.Context, handle func(int)) error {
	w, err := worker.New(s.store, worker.Config{
		Queues: map[string]int{pacht.DefaultQueue: pachtConcurrency},
		Handlers: []worker.Handler{worker.Handle(func(_ context.Context, job *pacht.Job[pachtArgs]) error {
			handle(job.Args.Number)
			return nil
		})},
		Logger: slog.Default(),
	})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

func (s *pachtSession) Close(context.Context) error { return s.store.Close() }
