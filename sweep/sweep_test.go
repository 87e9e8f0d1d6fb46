package sweep_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/sqlite"
	"github.com/pacht-queue/pacht/sweep"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "test.db"), sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if _, err := s.MigrateUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// ended makes jobs that ended so, an hour ago.
func ended(t *testing.T, s *sqlite.Store, outcome pacht.Outcome, n int) {
	t.Helper()
	jobs := make([]pacht.NewJob, n)
	for i := range jobs {
		jobs[i] = pacht.NewJob{Kind: "task", Args: []byte(`{}`)}
	}
	if _, err := s.Enqueue(t.Context(), jobs); err != nil {
		t.Fatal(err)
	}
	claims, err := s.Claim(t.Context(), pacht.ClaimRequest{Owner: "a", Queue: pacht.DefaultQueue, Kinds: []string{"task"}, Limit: n})
	if err != nil || len(claims.Jobs) != n {
		t.Fatalf("claimed %d of %d: %v", len(claims.Jobs), n, err)
	}
	settle := make([]pacht.Settlement, n)
	for i, j := range claims.Jobs {
		settle[i] = pacht.Settlement{Ref: j.Ref(), Outcome: outcome, Permanent: true}
	}
	if _, err := s.Settle(t.Context(), settle); err != nil {
		t.Fatal(err)
	}
	if err := s.Age(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
}

func left(t *testing.T, s *sqlite.Store, status pacht.Status) int {
	t.Helper()
	jobs, err := s.Jobs(t.Context(), pacht.Filter{Status: status, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return len(jobs)
}

func TestZeroConfigKeepsFinishedJobsForEver(t *testing.T) {
	s := open(t)
	ended(t, s, pacht.OutcomeCompleted, 3)
	ended(t, s, pacht.OutcomeFailed, 3)
	if err := s.Beat(t.Context(), pacht.WorkerInfo{Owner: "gone", BeatEvery: time.Second}); err != nil {
		t.Fatal(err)
	}
	if err := s.Age(t.Context(), 10*365*24*time.Hour); err != nil {
		t.Fatal(err)
	}
	sweeper, err := sweep.New(s, sweep.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := sweeper.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left(t, s, pacht.Completed) != 3 || left(t, s, pacht.Dead) != 3 {
		t.Error("jobs are gone though nobody said how long to keep them")
	}
	if workers, err := s.Workers(t.Context()); err != nil || len(workers) != 0 {
		t.Errorf("a worker that is gone for ten years is still listed: %v, %v", workers, err)
	}
}

func TestRunDeletesByStatusAndSaysSo(t *testing.T) {
	s := open(t)
	ended(t, s, pacht.OutcomeCompleted, 25)
	ended(t, s, pacht.OutcomeFailed, 3)
	ended(t, s, pacht.OutcomeCancelled, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var log bytes.Buffer
	removed := map[pacht.Target]int{}
	sweeper, err := sweep.New(s, sweep.Config{
		Retention: pacht.Retention{Completed: time.Minute, Cancelled: 24 * time.Hour},
		Period:    100 * time.Millisecond, Limit: 10, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		OnSweep: func(r sweep.Removed) {
			for target, n := range r.Rows {
				removed[target] += n
			}
			if removed[pacht.SweepCompleted] == 25 {
				cancel()
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := sweeper.Run(ctx); err != nil {
		t.Error(err)
	}
	if !errors.Is(ctx.Err(), context.Canceled) {
		t.Errorf("not done: %v", removed)
	}
	if left(t, s, pacht.Completed) != 0 || left(t, s, pacht.Dead) != 3 || left(t, s, pacht.Cancelled) != 3 {
		t.Error("more or less went than was old enough")
	}
	if !strings.Contains(log.String(), "deleted what is past its retention") || !strings.Contains(log.String(), "completed=") {
		t.Errorf("log:\n%s", log.String())
	}
}

func TestSweeperGoesOnAfterErrorsAndEndsWithItsStore(t *testing.T) {
	s := open(t)
	ended(t, s, pacht.OutcomeCompleted, 3)
	broken := &failing{Sweeper: s, left: 2}
	var log bytes.Buffer
	sweeper, err := sweep.New(broken, sweep.Config{
		Retention: pacht.Retention{Completed: time.Second}, Period: 100 * time.Millisecond,
		Logger:  slog.New(slog.NewTextHandler(&log, nil)),
		OnSweep: func(sweep.Removed) { _ = s.Close() },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := sweeper.Run(t.Context()); !errors.Is(err, pacht.ErrClosed) {
		t.Errorf("after the store was closed: %v", err)
	}
	if n := strings.Count(log.String(), "sweeping failed"); n != 1 {
		t.Errorf("the first of a row of errors was logged %d times:\n%s", n, log.String())
	}
}

// failing answers an error some times, to every target.
type failing struct {
	pacht.Sweeper
	left int
}

func (f *failing) Sweep(ctx context.Context, req pacht.SweepRequest) (pacht.Swept, error) {
	if f.left > 0 {
		if req.Target == pacht.SweepWorkers {
			f.left--
		}
		return pacht.Swept{}, errors.New("no connection")
	}
	return f.Sweeper.Sweep(ctx, req)
}

func TestConfigIsRefusedWithTheBound(t *testing.T) {
	for _, cfg := range []sweep.Config{
		{Retention: pacht.Retention{Completed: time.Millisecond}},
		{Retention: pacht.Retention{Dead: -1}},
		{Retention: pacht.Retention{Cancelled: 101 * 365 * 24 * time.Hour}},
		{Workers: time.Second},
		{Period: time.Millisecond},
		{Period: 25 * time.Hour},
		{Limit: -1},
		{By: strings.Repeat("x", 300)},
	} {
		var invalid *pacht.InvalidError
		if _, err := sweep.New(open(t), cfg); !errors.As(err, &invalid) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	if _, err := sweep.New(nil, sweep.Config{}); err == nil {
		t.Error("no store was accepted")
	}
}
