package net_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/faults/crew"
	"github.com/pacht-queue/pacht/faults/lab"
	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/postgres"
)

// R4, R5, R9: every second answer to a claim is lost, over and over, for jobs that are snoozed
// again and again. None is taken for a crash, so that none comes near its crash cap; no attempt
// is counted for a lease that nobody heard of; no lease runs out. With MaxCrashes 1 a single
// crash would park its job.
func TestLostAnswersOfClaimsPutNoHealthyJobAside(t *testing.T) {
	t.Parallel()
	url, base := crew.Database(t)
	cut := newCutter(t, url)
	parts := whole(base)
	parts.claims = crew.Open(t, cut.url, postgres.Config{})
	queues, perQueue, rounds := lab.Scale(4, 24), lab.Scale(4, 2), lab.Scale(2, 30)
	cfg := crew.Config("claims", 2, nil)
	delete(cfg.Queues, "claims")
	var ids []pacht.ID
	for q := range queues {
		name := fmt.Sprint("claims-", q)
		cfg.Queues[name] = 2
		ids = append(ids, crew.Enqueue(t, base, perQueue, pacht.Queue(name), pacht.MaxCrashes(1), pacht.MaxAttempts(1))...)
	}
	var mu sync.Mutex
	seen := map[pacht.ID]int{}
	cfg.Handlers = crew.Handlers(func(_ context.Context, job *pacht.Job[crew.Task]) error {
		mu.Lock()
		defer mu.Unlock()
		if seen[job.ID]++; seen[job.ID] < rounds {
			return pacht.Snooze(time.Millisecond)
		}
		return nil
	})
	chance := clock.Seeded(lab.Seed(t), "lost claims")
	cut.arm(false, func() bool { return chance.IntN(2) == 0 }) // asked with the cutter's lock held
	w := crew.Start(t, parts, cfg)
	lab.Await(t, 240*time.Second, "all jobs are finished", func() bool {
		counts, err := base.Counts(t.Context())
		return err == nil && (len(counts) == 0 || counts[0].Status == pacht.Stuck)
	})
	cut.arm(false, nil)
	got := crew.Outcomes(t, base, ids)
	if got[pacht.OutcomeExpired] > 0 || got[pacht.OutcomeFailed] > 0 || got[pacht.OutcomeCompleted] != len(ids) {
		t.Errorf("leases ended as %v", got)
	}
	for _, id := range ids {
		if seen[id] != rounds {
			t.Errorf("job %d ran %d times, want %d", id, seen[id], rounds)
		}
		if job, err := base.Job(t.Context(), id); err != nil || job.Attempt != 1 || job.Crashes != 0 {
			t.Errorf("job %d: attempt %d, crashes %d, %v", id, job.Attempt, job.Crashes, err)
		}
	}
	if want := lab.Scale(8, 1000); cut.count() < want {
		t.Errorf("%d answers were lost, want %d at least", cut.count(), want)
	}
	crew.Checked(t, base)
	lab.Report(t, "net/lost-claims", lab.F("answers lost", cut.count()), lab.F("leases", got[pacht.OutcomeSnoozed]+got[pacht.OutcomeCompleted]), lab.F("given back", got[pacht.OutcomeReleased]), lab.F("failed calls", w.Status().Errors))
}
