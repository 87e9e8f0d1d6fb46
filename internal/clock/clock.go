// Package clock is the one door for time and chance. Tests open it; nothing else in this
// module calls time.Now, time.Sleep or math/rand.
package clock

import (
	"context"
	"math/rand/v2"
	"time"
)

// The door itself. Tests may replace these before they start anything.
var (
	wall = time.Now
	boot = bootTime
	rnd  = rand.Float64
)

// Instant is a moment on this machine, by all the clocks it has.
type Instant struct {
	at   time.Time // wall and monotonic
	boot time.Duration
}

// Now reads all clocks.
func Now() Instant { return Instant{at: wall(), boot: boot()} }

// Elapsed is the longest time that any clock says has passed since i: boot time counts
// suspension, the wall clock counts jumps ahead, the monotonic clock neither. Whoever holds a
// lease believes the most pessimistic of them (R8).
func (i Instant) Elapsed() time.Duration { return Now().Since(i) }

// Since is Elapsed, up to a moment that was read before: once for many instants.
func (i Instant) Since(earlier Instant) time.Duration {
	mono := i.at.Sub(earlier.at)
	wall := i.at.Round(0).Sub(earlier.at.Round(0))
	return max(mono, wall, i.boot-earlier.boot)
}

// Time is the wall clock's reading.
func (i Instant) Time() time.Time { return i.at }

// Float is a random number in [0, 1).
func Float() float64 { return rnd() }

// Jitter is d, more or less by up to a tenth.
func Jitter(d time.Duration) time.Duration {
	return d + time.Duration((rnd()-0.5)*0.2*float64(d))
}

// Sleep waits for d, or until ctx ends; then it returns the context's cause.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// Since is how long ago the wall clock read t, for logs and the like; leases use Elapsed.
func Since(t time.Time) time.Duration { return wall().Sub(t) }
