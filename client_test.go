package pacht_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacht-queue/pacht"
)

// counter is an Enqueuer that only counts what it is given: these tests are about batches.
type counter struct {
	pacht.Store
	batches []int
	fail    int // which batch, from 1
}

func (c *counter) Enqueue(_ context.Context, jobs []pacht.NewJob) ([]pacht.Enqueued, error) {
	c.batches = append(c.batches, len(jobs))
	if len(c.batches) == c.fail {
		return nil, pacht.ErrUnknown
	}
	answers := make([]pacht.Enqueued, len(jobs))
	for i, j := range jobs {
		if err := j.Validate(pacht.Limits{}, now); err != nil {
			answers[i].Err = err
			continue
		}
		answers[i] = pacht.Enqueued{ID: 1, Duplicate: j.Key != ""}
	}
	return answers, nil
}

func (c *counter) EnqueueInTurn(ctx context.Context, jobs []pacht.NewJob, _ *pacht.Turn) ([]pacht.Enqueued, error) {
	return c.Enqueue(ctx, jobs)
}

func (c *counter) BatchSize() int { return 1000 }

// stream yields n jobs; every seventh is refused, every tenth of the others is a duplicate.
func stream(n int) func(yield func(pacht.NewJob) bool) {
	return func(yield func(pacht.NewJob) bool) {
		for i := range n {
			opts := []pacht.Option{}
			switch {
			case i%7 == 6:
				opts = append(opts, pacht.Priority(9))
			case i%10 == 0:
				opts = append(opts, pacht.IdempotencyKey("k"))
			}
			if !yield(pacht.New(charge{}, opts...)) {
				return
			}
		}
	}
}

// R12: refused rows do not stop the others, and batches stay small however many there are.
func TestEnqueueManyStoresInBatchesAndReportsTheFirstRefusals(t *testing.T) {
	for n, want := range map[int][]int{0: nil, 1: {1}, 1000: {1000}, 1001: {1000, 1}, 3500: {1000, 1000, 1000, 500}} {
		c := &counter{}
		var stored, refusals int64
		for i := range n {
			switch {
			case i%7 == 6:
				refusals++
			case i%10 != 0:
				stored++
			}
		}
		got, err := pacht.NewClient(c).EnqueueMany(t.Context(), stream(n))
		if got != stored {
			t.Errorf("%d jobs: stored %d, want %d", n, got, stored)
		}
		if len(c.batches) != len(want) {
			t.Errorf("%d jobs: batches %v, want %v", n, c.batches, want)
		}
		for i := range c.batches {
			if c.batches[i] != want[i] {
				t.Errorf("%d jobs: batches %v, want %v", n, c.batches, want)
			}
		}
		if (err != nil) != (refusals > 0) {
			t.Errorf("%d jobs, %d refused: %v", n, refusals, err)
		}
		if err != nil {
			if named := strings.Count(err.Error(), "priority: 9"); int64(named) != min(refusals, 20) {
				t.Errorf("%d jobs: %d of %d refusals are named", n, named, refusals)
			}
			var invalid *pacht.InvalidError
			if !errors.As(err, &invalid) || !strings.HasPrefix(err.Error(), "job 7: priority: 9") {
				t.Errorf("%v", err)
			}
			if more := fmt.Sprintf("%d more jobs were refused", refusals-20); strings.HasSuffix(err.Error(), more) != (refusals > 20) {
				t.Errorf("%d refused: %v", refusals, err)
			}
		}
	}
}

// Memory stays constant however large the jobs are: what is drawn ahead is bounded in bytes too.
func TestEnqueueManyStoresFewerOfLargeJobs(t *testing.T) {
	c := &counter{}
	large := pacht.New(charge{})
	large.Args = append(append([]byte(`"`), bytes.Repeat([]byte("x"), 1<<20-2)...), '"')
	got, err := pacht.NewClient(c).EnqueueMany(t.Context(), func(yield func(pacht.NewJob) bool) {
		for i := 0; i < 10 && yield(large); i++ {
		}
	})
	if err != nil || got != 10 || !slices.Equal(c.batches, []int{4, 4, 2}) {
		t.Errorf("%d stored in batches %v, %v", got, c.batches, err)
	}
}

func TestEnqueueManyEndsAtTheFirstBrokenBatchAndSaysHowFarItCame(t *testing.T) {
	for fail, want := range map[int]int64{1: 0, 2: 771, 4: 3 * 771} {
		c := &counter{fail: fail}
		got, err := pacht.NewClient(c).EnqueueMany(t.Context(), stream(3500))
		if !errors.Is(err, pacht.ErrUnknown) || len(c.batches) != fail || !strings.Contains(err.Error(), fmt.Sprintf("ended after job %d: ", 1000*(fail-1))) {
			t.Errorf("batch %d broke: %v after %d batches", fail, err, len(c.batches))
		}
		if d := got - want; d < -5 || d > 5 {
			t.Errorf("batch %d broke: stored %d, want about %d", fail, got, want)
		}
	}
}

// An iterator may never end, and draw slowly: a batch is not waited for.
func TestEnqueueManyDrawsNoMoreWhenItsContextHasEnded(t *testing.T) {
	c := &counter{}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("given up")
	drawn := 0
	got, err := pacht.NewClient(c).EnqueueMany(ctx, func(yield func(pacht.NewJob) bool) {
		for ; yield(pacht.New(charge{})); drawn++ {
			if drawn == 1500 {
				cancel(why)
			}
		}
	})
	if got != 1000 || !errors.Is(err, why) || !errors.Is(err, context.Canceled) || drawn != 1501 || !slices.Equal(c.batches, []int{1000}) {
		t.Errorf("%d stored in batches %v, %d drawn, %v", got, c.batches, drawn, err)
	}
}

func TestEnqueueManyWhoseIteratorWatchesTheContextSaysThatItWasCutOff(t *testing.T) {
	for _, n := range []int{0, 1000, 1001} {
		c := &counter{}
		ctx, cancel := context.WithCancel(t.Context())
		got, err := pacht.NewClient(c).EnqueueMany(ctx, func(yield func(pacht.NewJob) bool) {
			for range n {
				yield(pacht.New(charge{}))
			}
			cancel()
		})
		if got != int64(n/1000*1000) || !errors.Is(err, context.Canceled) {
			t.Errorf("%d of %d stored, %v", got, n, err)
		}
	}
}

func TestEnqueueAnswersTheRefusalOfItsOneJob(t *testing.T) {
	client := pacht.NewClient(&counter{})
	if got, err := client.Enqueue(t.Context(), charge{}); err != nil || got.ID != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	got, err := client.Enqueue(t.Context(), charge{}, pacht.Priority(5))
	refused(t, "priority 5", err, "priority", "1 (first) to 4")
	if got.ID != 0 {
		t.Errorf("a refused job has id %d", got.ID)
	}
	if _, err := pacht.NewClient(&counter{fail: 1}).Enqueue(t.Context(), charge{}); !errors.Is(err, pacht.ErrUnknown) {
		t.Errorf("%v", err)
	}
}

// ahead is an Enqueuer that begins batches ahead of their turn, and commits each when it is told how it ends.
type ahead struct {
	counter
	mu               sync.Mutex
	begun, committed []string // the args of their first jobs
	commit           chan error
}

func (a *ahead) EnqueueInTurn(ctx context.Context, jobs []pacht.NewJob, turn *pacht.Turn) ([]pacht.Enqueued, error) {
	first := string(jobs[0].Args)
	a.note(&a.begun, first)
	turn.Begun()
	if err := turn.Wait(ctx); err != nil {
		return nil, err
	}
	if err := <-a.commit; err != nil {
		return nil, err
	}
	a.note(&a.committed, first)
	return make([]pacht.Enqueued, len(jobs)), nil
}

func (a *ahead) note(where *[]string, first string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	*where = append(*where, first)
}

func TestEnqueueManyHasTwoBatchesOnTheirWayAndCommitsThemInOrder(t *testing.T) {
	for _, ends := range [][]error{{nil, nil, nil, nil}, {nil, pacht.ErrUnknown}} {
		synctest.Test(t, func(t *testing.T) {
			a := &ahead{commit: make(chan error)}
			var stored int64
			var err error
			done := make(chan struct{})
			go func() {
				defer close(done)
				stored, err = pacht.NewClient(a).EnqueueMany(t.Context(), func(yield func(pacht.NewJob) bool) {
					for i := 0; i < 3500; i++ {
						if j := pacht.New(charge{}); !yield(pacht.NewJob{Kind: j.Kind, Args: fmt.Append(nil, i/1000)}) {
							return
						}
					}
				})
			}()
			all := []string{"0", "1", "2", "3"}
			for n, end := range ends {
				synctest.Wait()
				if !slices.Equal(a.begun, all[:min(n+2, 4)]) || !slices.Equal(a.committed, all[:n]) {
					t.Errorf("begun %v, committed %v after %d", a.begun, a.committed, n)
				}
				a.commit <- end
			}
			<-done
			failed := ends[len(ends)-1]
			if want := min(int64(1000*len(a.committed)), 3500); stored != want || !errors.Is(err, failed) {
				t.Errorf("%d stored, want %d; %v", stored, want, err)
			}
			if failed != nil && (len(a.committed) != 1 || len(a.begun) != 3) {
				t.Errorf("begun %v, committed %v after a failure", a.begun, a.committed)
			}
		})
	}
}

// starved is an Enqueuer whose first batch fails while the second waits for a connection.
type starved struct {
	counter
	begun atomic.Int32
}

func (s *starved) EnqueueInTurn(ctx context.Context, _ []pacht.NewJob, turn *pacht.Turn) ([]pacht.Enqueued, error) {
	first := s.begun.Add(1) == 1
	turn.Begun()
	if first {
		time.Sleep(time.Second)
		return nil, pacht.ErrUnknown
	}
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func TestEnqueueManyEndsWhatWaitsBehindABrokenBatchAndDrawsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &starved{}
		drawn := 0
		stored, err := pacht.NewClient(s).EnqueueMany(t.Context(), func(yield func(pacht.NewJob) bool) {
			for yield(pacht.New(charge{})) {
				if drawn++; drawn > 2000 { // a slow source: the third batch would take an hour
					time.Sleep(4 * time.Second)
				}
			}
		})
		if stored != 0 || !errors.Is(err, pacht.ErrUnknown) || s.begun.Load() != 2 || drawn != 2001 {
			t.Errorf("%d stored, %d begun, %d drawn, %v", stored, s.begun.Load(), drawn, err)
		}
	})
}

// hasty is an Enqueuer whose second batch fails while the first is being committed.
type hasty struct {
	counter
	begun atomic.Int32
}

func (h *hasty) EnqueueInTurn(ctx context.Context, jobs []pacht.NewJob, turn *pacht.Turn) ([]pacht.Enqueued, error) {
	first := h.begun.Add(1) == 1
	turn.Begun()
	if !first {
		return nil, pacht.ErrBusy
	}
	select {
	case <-ctx.Done():
		return nil, pacht.ErrUnknown // cut off at its commit
	case <-time.After(time.Second):
		return make([]pacht.Enqueued, len(jobs)), nil
	}
}

func TestEnqueueManyDoesNotCutOffABatchBecauseTheOneAfterItHasFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stored, err := pacht.NewClient(&hasty{}).EnqueueMany(t.Context(), func(yield func(pacht.NewJob) bool) {
			for yield(pacht.New(charge{})) {
			}
		})
		if stored != 1000 || !errors.Is(err, pacht.ErrBusy) || errors.Is(err, pacht.ErrUnknown) {
			t.Errorf("%d stored, %v", stored, err)
		}
	})
}
