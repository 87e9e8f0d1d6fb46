package worker

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
)

// dozing is a waker that nobody runs, with one queue.
func dozing(poll time.Duration) (*waker, *nap) {
	k := newWaker(&Worker{cfg: Config{Poll: poll}, queues: []*queue{newQueue("a", 10)}})
	return k, k.naps["a"]
}

func (k *waker) wanted(n *nap) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return n.wants
}

// claims runs a loop of claims that bring nothing, and answers when each was sent.
func claims(ctx context.Context, n *nap) chan time.Duration {
	at, start := make(chan time.Duration, 10000), time.Now()
	go func() {
		defer close(at)
		for {
			n.sent()
			at <- time.Since(start)
			n.claimed(0)
			if !n.wait(ctx) {
				return
			}
		}
	}()
	return at
}

func times(at chan time.Duration) (list []time.Duration) {
	synctest.Wait()
	for len(at) > 0 {
		list = append(list, (<-at).Round(time.Millisecond))
	}
	return list
}

func ms(n ...int) (list []time.Duration) {
	for _, n := range n {
		list = append(list, time.Duration(n)*time.Millisecond)
	}
	return list
}

func same(t *testing.T, what string, got, want []time.Duration) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: claims at %v, want %v", what, got, want)
	}
}

// A wake-up that was lost while a worker lay down is found by polls that begin when its row
// stands, and end. A notice then leads to one claim, and begins none of them anew.
func TestFastPollsBeginWhenTheRowStandsAndNoNoticeBeginsThemAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		k, n := dozing(time.Second)
		k.works = true
		at := claims(ctx, n)
		time.Sleep(5 * time.Millisecond) // the row takes so long to write
		lie, rise, _ := k.todo()
		if fmt.Sprint(lie, rise) != "[a] []" {
			t.Errorf("to lie down %v, to rise %v", lie, rise)
		}
		k.lain(lie, true)
		time.Sleep(time.Minute)
		same(t, "no notice", times(at), ms(0, 2, 7, 17, 67, 317))

		k.heard("a")
		k.heard("somebody else's")
		time.Sleep(time.Minute)
		if got := times(at); len(got) != 1 {
			t.Errorf("a notice led to claims at %v, want one", got)
		}
		k.found(pacht.Due{Queues: []string{"a"}})
		if got := times(at); len(got) != 1 {
			t.Errorf("a look that found something led to claims at %v, want one", got)
		}
		if lie, rise, next := k.todo(); fmt.Sprint(lie, rise) != "[a] []" {
			t.Errorf("two minutes later: lie %v, rise %v, next in %s; its row has lapsed", lie, rise, next)
		}
		cancel()
	})
}

func TestWithoutNoticesFastPollsFollowWorkAndThenTheLookAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		k, n := dozing(100 * time.Millisecond) // no fast poll is slower than the poll
		n.claimed(3)
		at := claims(ctx, n)
		time.Sleep(time.Minute)
		same(t, "after work", times(at), ms(0, 2, 12, 62))
		if got := k.idle(); !slices.Equal(got, []string{"a"}) {
			t.Errorf("to look at: %v", got)
		}
		k.lain([]string{"a"}, false) // could not be written: it is polled
		if lie, rise, _ := k.todo(); len(lie)+len(rise) > 0 {
			t.Errorf("lies on %v, rises from %v", lie, rise)
		}
		cancel()
	})
}

// At full load nobody sleeps, so that no enqueue pays for a notice; a job each 20 ms is no load.
func TestHotQueueHasNoRowUntilItsFastPollsAreOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		k, n := dozing(time.Second)
		k.works, n.wants, n.row, n.down, n.step = true, true, true, true, len(k.polls)
		n.written = clock.Now()
		for range 300 {
			time.Sleep(20 * time.Millisecond)
			n.claimed(1)
		}
		if !n.wants {
			t.Error("50 claims a second that took something woke it for good")
		}
		for range hotClaims {
			time.Sleep(8 * time.Millisecond)
			n.claimed(1)
		}
		if lie, rise, _ := k.todo(); fmt.Sprint(lie, rise) != "[] [a]" || n.down {
			t.Errorf("at 125 a second it lies on %v, rises from %v", lie, rise)
		}
		k.risen([]string{"a"})
		at := claims(ctx, n)
		time.Sleep(100 * time.Millisecond)
		k.heard("a") // meant for somebody else
		if same(t, "hot", times(at), ms(0, 2, 12, 62)); k.wanted(n) {
			t.Error("a hot queue lies down")
		}
		time.Sleep(time.Second)
		if same(t, "not hot any more", times(at), ms(312)); !k.wanted(n) {
			t.Error("it does not lie down when it is over")
		}
		cancel()
	})
}

// Who has had no free slot for a second is busy, however few jobs that are.
func TestFullSlotsRaiseASleeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, n := dozing(time.Second)
		k.works, n.wants, n.row, n.down, n.written = true, true, true, true, clock.Now()
		q := newQueue("a", 1)
		n.full(q)() // has a slot
		q.take(nil, false)
		over := n.full(q)
		time.Sleep(990 * time.Millisecond)
		if !k.wanted(n) {
			t.Error("it rose too early")
		}
		time.Sleep(20 * time.Millisecond)
		if k.wanted(n) {
			t.Error("full for a second, and it sleeps")
		}
		over()
		if !n.hot(clock.Now()) {
			t.Error("it was full for a second, and is not busy")
		}
	})
}

// A head full of rows that this worker may not take must not be walked over all the time,
// however many notices come.
func TestLookThatTookLongIsNotRepeatedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		k, n := dozing(100 * time.Millisecond)
		k.works, n.wants, n.row, n.down, n.step = true, true, true, true, len(k.polls)
		at := claims(ctx, n)
		synctest.Wait()
		k.found(pacht.Due{Took: 50 * time.Millisecond})
		times(at)
		for range 400 {
			time.Sleep(10 * time.Millisecond)
			k.heard("a")
			synctest.Wait()
			if k.looked.Elapsed() >= k.rest {
				k.found(pacht.Due{Took: 50 * time.Millisecond}) // as the loop of looks does
			}
		}
		if got := times(at); len(got) < 3 || len(got) > 9 {
			t.Errorf("%d claims in 4 s of which each takes 50 ms: %v", len(got), got)
		}
		cancel()
	})
}

// When notices cease to arrive nobody may lie down; when they come, each queue is asked once.
func TestListeningThatEndsRaisesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		k, n := dozing(time.Second)
		k.mute = true // what it logs is not of interest here
		k.works, n.wants, n.row, n.down, n.step = true, true, true, true, len(k.polls)
		n.written = clock.Now()
		at := claims(ctx, n)
		times(at)
		k.listening(false, context.Canceled)
		if lie, rise, _ := k.todo(); fmt.Sprint(lie, rise) != "[] [a]" {
			t.Errorf("it lies on %v, rises from %v", lie, rise)
		}
		if n.down || k.wanted(n) {
			t.Error("it sleeps where no notice arrives")
		}
		time.Sleep(time.Minute)
		if got := times(at); len(got) != 0 {
			t.Errorf("claims at %v", got)
		}
		if lie, rise, _ := k.todo(); len(lie)+len(rise) > 0 || n.row {
			t.Errorf("a lapsed row: it lies on %v, rises from %v", lie, rise)
		}
		k.mute = false
		k.listening(true, nil)
		if got := times(at); len(got) != 1 || !k.wanted(n) {
			t.Errorf("claims at %v, wants its row: %v", got, n.wants)
		}
		cancel()
	})
}

// S044: of many who sleep on a queue a few claim at a notice, and somebody always does.
func TestFewOfManySleepersClaimAtANotice(t *testing.T) {
	const workers, jobs = 200, 400
	naps := make([]*nap, workers)
	for i := range naps {
		_, naps[i] = dozing(time.Second)
		naps[i].down = true
	}
	claims := 0
	for job := range jobs {
		won := false
		for i := range naps {
			n := naps[(i+job*37)%workers] // another one is first each time
			if n.k.heard("a"); !n.heard {
				continue
			}
			n.sent()
			if won {
				n.claimed(0)
			} else {
				n.claimed(1)
			}
			won = true
			if job >= jobs/2 {
				claims++
			}
		}
		if !won {
			t.Errorf("nobody claims job %d", job)
		}
	}
	if mean := claims / (jobs / 2); mean > 40 {
		t.Errorf("%d claims for each job of %d workers", mean, workers)
	}
}
