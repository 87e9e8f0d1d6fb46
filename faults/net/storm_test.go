package net_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/faults/crew"
	"github.com/pacht-queue/pacht/faults/lab"
	"github.com/pacht-queue/pacht/internal/pgserver"
	"github.com/pacht-queue/pacht/internal/pgtest"
	"github.com/pacht-queue/pacht/postgres"
)

// counted counts the claims that go out.
type counted struct {
	*postgres.Store
	claims atomic.Int64
}

// Claim implements pacht.Leaser.
func (c *counted) Claim(ctx context.Context, req pacht.ClaimRequest) (pacht.Claims, error) {
	c.claims.Add(1)
	return c.Store.Claim(ctx, req)
}

// S043, S044: two hundred idle workers, all of whose sessions are cut at once, that of their notices
// too, and then a job now and again. Each is done, and once the workers have learned how many they are,
// it costs a few claims and not one of everybody.
func TestManyIdleWorkersAreNoStampede(t *testing.T) { // alone: two hundred workers keep a machine busy
	url := pgtest.NewServer(t, "max_connections=250").Database(t) // each worker listens on a connection of its own
	base := crew.Migrated(t, url)
	store := &counted{Store: crew.Open(t, url, postgres.Config{})}
	const workers = 200
	var seen crew.Runs
	for range workers {
		cfg := crew.Config("storm", 1, seen.Handle)
		cfg.Poll, cfg.NoWatch, cfg.NoSweep = 2*time.Second, true, true
		crew.Start(t, store, cfg)
	}
	asleep := func() bool { return scalar(t, url, "SELECT count(*) FROM pacht.sleepers") >= workers }
	lab.Await(t, 60*time.Second, "all are asleep", asleep)
	round := func(what string, jobs, most int) {
		before := store.claims.Load()
		var ids []pacht.ID
		for range jobs {
			ids = append(ids, crew.Enqueue(t, base, 1, pacht.Queue("storm"))...)
			time.Sleep(50 * time.Millisecond) // the pace of the jobs
		}
		lab.Await(t, 30*time.Second, "all jobs are done", func() bool {
			counts, err := base.Counts(t.Context())
			if err != nil {
				return false
			}
			for _, c := range counts {
				if c.Status == pacht.Pending || c.Status == pacht.Processing {
					return false
				}
			}
			return true
		})
		seen.Once(t, ids)
		each := int(store.claims.Load()-before) / jobs
		lab.Report(t, "many idle workers, "+what, lab.F("workers", workers), lab.F("jobs", jobs), lab.F("claims_for_a_job", each))
		if each > most {
			t.Errorf("%s: %d claims for each job of %d workers", what, each, workers)
		}
	}
	// Whoever loses again and again claims less and less often: that takes some jobs.
	round("at first", 60, workers)
	round("afterwards", 20, workers/4)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	const cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
	if err := pgserver.Execute(ctx, url, cut); err != nil {
		t.Fatal(err)
	}
	// All come back at once, and each has a look: that counts too.
	round("all sessions cut", 40, workers/2)
}
