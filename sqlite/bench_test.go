package sqlite

import (
	"encoding/json"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pacht-queue/pacht"
)

func benchStore(b testing.TB) *Store {
	s, err := Open(filepath.Join(b.TempDir(), "pacht.db"), Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	if _, err := s.MigrateUp(b.Context()); err != nil {
		b.Fatal(err)
	}
	return s
}

// BenchmarkEnqueueFrom8 stores jobs one by one from eight goroutines: the group commit.
func BenchmarkEnqueueFrom8(b *testing.B) {
	s := benchStore(b)
	var left atomic.Int64
	left.Store(int64(b.N))
	var running sync.WaitGroup
	b.ResetTimer()
	for range 8 {
		running.Go(func() {
			for left.Add(-1) >= 0 {
				if _, err := s.Enqueue(b.Context(), []pacht.NewJob{newJob(1)}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}

// BenchmarkDrain claims and settles in batches, from two loops.
func BenchmarkDrain(b *testing.B) {
	for _, batch := range []struct {
		name string
		size int
	}{{"1", 1}, {"10", 10}, {"100", 100}, {"500", 500}} {
		b.Run(batch.name, func(b *testing.B) {
			s := benchStore(b)
			jobs := make([]pacht.NewJob, b.N)
			for i := range jobs {
				jobs[i] = pacht.NewJob{Kind: "charge", Args: json.RawMessage(`{"n":1}`)}
			}
			for len(jobs) > 0 {
				n := min(len(jobs), 1000)
				if _, err := s.Enqueue(b.Context(), jobs[:n]); err != nil {
					b.Fatal(err)
				}
				jobs = jobs[n:]
			}
			var done atomic.Int64
			var running sync.WaitGroup
			b.ResetTimer()
			for range 2 {
				running.Go(func() {
					for done.Load() < int64(b.N) {
						n, err := drainOnce(b, s, batch.size)
						if err != nil {
							b.Error(err)
							return
						}
						done.Add(int64(n))
					}
				})
			}
			running.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

func drainOnce(b *testing.B, s *Store, size int) (int, error) {
	claims, err := s.Claim(b.Context(), claimRequest("bench", size))
	if err != nil || len(claims.Jobs) == 0 {
		return 0, err
	}
	batch := make([]pacht.Settlement, len(claims.Jobs))
	for i, j := range claims.Jobs {
		batch[i] = pacht.Settlement{Ref: j.Ref(), Outcome: pacht.OutcomeCompleted}
	}
	answers, err := s.Settle(b.Context(), batch)
	return len(answers), err
}
