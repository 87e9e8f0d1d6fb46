package worker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
)

// A worker deletes what is past its retention, and nothing if it has none.
func TestWorkerDeletesFinishedJobsOnlyIfItHasARetention(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := db.open(t)
		do := func(context.Context, *pacht.Job[task]) error { return nil }
		id := enqueue(t, s, 1)[0]
		keeper := start(t, s, quick(1, do))
		eventually(t, 10*time.Second, "the job is done", func() bool {
			j, err := s.Job(t.Context(), id)
			return err == nil && j.Status == pacht.Completed
		})
		later := enqueue(t, s, 1, pacht.RunIn(time.Hour))[0]
		if err := keeper.end(); err != nil {
			t.Error(err)
		}
		cfg := quick(1, do)
		cfg.Retention.Completed = time.Second
		start(t, s, cfg)
		eventually(t, 20*time.Second, "the job goes", func() bool {
			_, err := s.Job(t.Context(), id)
			return errors.Is(err, pacht.ErrNotFound)
		})
		if j, err := s.Job(t.Context(), later); err != nil || j.Status != pacht.Pending {
			t.Errorf("the unfinished job: %v, %v", j.Status, err)
		}
	})
}
