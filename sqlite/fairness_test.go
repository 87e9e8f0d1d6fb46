package sqlite

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
)

// S056: a process whose writer always has work waiting lets another one at the file. SQLite's
// own waiting, and waiting without a pause of the busy one, leave the other outside.
func TestABusyProcessLetsAnotherWriteWithinABound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pacht.db")
	busy := openStore(t, path, Config{}, true)
	other := openStore(t, path, Config{}, false)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	batch := make([]pacht.NewJob, 40)
	for i := range batch {
		batch[i] = newJob(i)
	}
	var groups atomic.Int64 // transactions of the busy one
	var last clock.Instant  // of its goroutine alone
	part := func(ctx context.Context, w *work) error {
		if busy.writer.committed != last {
			last = busy.writer.committed
			groups.Add(1)
		}
		_, err := busy.enqueue(ctx, w, w.now, batch)
		return err
	}
	for range 40 {
		running.Go(func() {
			for ctx.Err() == nil {
				if err := busy.write(ctx, "enqueue", false, part); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	eventually(t, "the busy one is busy", func() bool { return groups.Load() > 3 })
	const calls = 30
	before := groups.Load()
	for i := range calls {
		if _, err := other.Enqueue(t.Context(), []pacht.NewJob{newJob(i)}); err != nil {
			t.Fatal(err)
		}
	}
	mean := float64(groups.Load()-before) / calls
	t.Logf("%.1f transactions of the busy one for each of the other's", mean)
	if mean > 2.5 {
		t.Errorf("the busy one wrote %.1f transactions for each of the other's, want about one", mean)
	}
}
