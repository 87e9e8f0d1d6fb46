package reconcile

import (
	"context"
	"sync"
	"time"

	"github.com/pacht-queue/pacht/internal/clock"
)

// limiter spreads look-ups evenly: whoever asks is given the next free moment.
type limiter struct {
	every time.Duration

	mu    sync.Mutex
	asked clock.Instant // when somebody last did
	ahead time.Duration // from then to the next free moment
}

func newLimiter(perSecond float64) *limiter {
	return &limiter{every: time.Duration(float64(time.Second) / perSecond), asked: clock.Now()}
}

// wait blocks until the caller's moment, or until ctx ends.
func (l *limiter) wait(ctx context.Context) error {
	l.mu.Lock()
	now := clock.Now()
	mine := max(l.ahead-now.Since(l.asked), 0)
	l.asked, l.ahead = now, mine+l.every
	l.mu.Unlock()
	return clock.Sleep(ctx, mine)
}
