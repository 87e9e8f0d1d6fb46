package sqlite

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/worker"
)

// cpu is what this process has used of the processors so far.
func cpu(tb testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// measured runs what is measured, and reports jobs per second and CPU seconds per 100,000 jobs.
func measured(b *testing.B, run func()) {
	before := cpu(b)
	b.ResetTimer()
	run()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
	b.ReportMetric((cpu(b)-before).Seconds()*100_000/float64(b.N), "cpu-s/100k")
}

func fill(b *testing.B, s *Store, n int) {
	args := json.RawMessage(`{"text":"` + strings.Repeat("x", 189) + `"}`)
	jobs := make([]pacht.NewJob, 1000)
	for i := range jobs {
		jobs[i] = pacht.NewJob{Kind: "charge", Args: args}
	}
	for n > 0 {
		k := min(n, len(jobs))
		if _, err := s.Enqueue(b.Context(), jobs[:k]); err != nil {
			b.Fatal(err)
		}
		n -= k
	}
}

// BenchmarkWorkerDrain is the whole of the product: a worker of 1,000 slots with its watcher
// and its renewals, and a handler that does nothing.
func BenchmarkWorkerDrain(b *testing.B) {
	s := benchStore(b)
	fill(b, s, b.N)
	var left atomic.Int64
	left.Store(int64(b.N))
	ctx, end := context.WithCancel(b.Context())
	defer end()
	w, err := worker.New(s, worker.Config{
		Queues: map[string]int{"default": 1000},
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Handlers: []worker.Handler{worker.HandleKind("charge", worker.HandlerOptions{}, func(context.Context, *pacht.Held) error {
			if left.Add(-1) == 0 {
				end()
			}
			return nil
		})},
	})
	if err != nil {
		b.Fatal(err)
	}
	measured(b, func() {
		if err := w.Run(ctx); err != nil {
			b.Error(err)
		}
	})
}
