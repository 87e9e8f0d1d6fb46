package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/netfault"
	"github.com/pacht-queue/pacht/postgres"
	"github.com/pacht-queue/pacht/worker"
)

// R4, R9, S046: claims go unanswered, the worker asks what it holds, and then the network delivers
// them. They take nothing: a lease that nobody knows of would run out and count as a crash, which
// here sets the job aside. (SQLite has no network.)
func TestClaimsThatArriveLateSetNoJobAside(t *testing.T) {
	t.Parallel()
	db := newDatabase(t, "postgres")
	late := &netfault.Late{}
	cfg, err := pgxpool.ParseConfig(db.url)
	if err != nil {
		t.Fatal(err)
	}
	cfg.ConnConfig.DialFunc = late.Dial
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec // claims go out in full, to be known by their words
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	s, err := postgres.New(pool, postgres.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w := start(t, s, quick(2, func(context.Context, *pacht.Job[task]) error {
		time.Sleep(10 * time.Millisecond) // so that jobs are left for what is late
		return nil
	}))
	watch := db.open(t)
	var all []pacht.ID
	fragile := []pacht.Option{pacht.TTL(2 * time.Second), pacht.MaxCrashes(1), pacht.OnCrash(pacht.CrashHold)}
	const rounds = 5
	for round := 1; round <= rounds; round++ {
		late.Catch("SET status = 'Processing'", 1)
		all = append(all, enqueue(t, watch, 1, fragile...)...)
		eventually(t, 10*time.Second, "a claim is on its way, and the worker has asked what it holds", func() bool {
			lost := w.seen.count(worker.EventDegraded)
			return late.Caught() == 1 && lost == round && w.seen.count(worker.EventRestored) == lost
		})
		all = append(all, enqueue(t, watch, 20, fragile...)...)
		late.Deliver()
	}
	for _, id := range all {
		eventually(t, 20*time.Second, "the job is through", func() bool { return status(t, watch, id).Finished() || status(t, watch, id) == pacht.Stuck })
		if got := outcomes(t, watch, id); len(got) != 1 || got[0] != pacht.OutcomeCompleted {
			t.Errorf("job %d: %v", id, got)
		}
	}
	checked(t, watch)
}
