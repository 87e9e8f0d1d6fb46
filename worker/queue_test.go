package worker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
)

func lease(id pacht.ID, ttl time.Duration) *hold {
	return &hold{job: pacht.JobInfo{ID: id, Token: 1, TTL: ttl}}
}

// R8: short jobs that come and go, and people who ask for the status meanwhile, must not put
// off the look at a lease that stays.
func TestNoLeaseThatComesPutsTheLookOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newHolds()
		s.add(lease(1, time.Minute))
		ctx, cancel := context.WithCancel(t.Context())
		next, looked := s.ticker(ctx), make(chan time.Time, 1)
		go func() {
			if next() {
				looked <- time.Now()
			}
		}()
		start := time.Now()
		for range 200 {
			h := lease(2, 10*time.Second) // needs a look each half second
			s.add(h)
			time.Sleep(50 * time.Millisecond)
			s.remove(h)
			s.list() // as Status does
		}
		select {
		case at := <-looked:
			if d := at.Sub(start); d > time.Second {
				t.Errorf("the look came after %s, want a second at most", d)
			}
		default:
			t.Errorf("no look at all in %s", time.Since(start))
		}
		cancel()
	})
}

// A lease that is given back unused leaves nothing behind in the worker's context.
func TestReleasedLeaseEndsItsContext(t *testing.T) {
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	w := &Worker{holds: newHolds(), events: newEvents(nil), base: t.Context(), values: t.Context(), taking: stopped}
	w.settler = newSettler(w)
	now := clock.Now()
	h := newHold(w, newQueue("default", 1), pacht.JobInfo{ID: 1, Token: 1, TTL: time.Minute, LeaseUntil: now.Time().Add(time.Minute)}, now, now.Time())
	w.begin(h, now, false)
	if h.ctx.Err() == nil {
		t.Error("its context lives on")
	}
}
