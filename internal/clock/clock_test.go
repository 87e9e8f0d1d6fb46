package clock

import (
	"context"
	"errors"
	"testing"
	"time"
)

// R8: the holder believes the most pessimistic clock.
func TestElapsedIsTheLongestThatAnyClockSays(t *testing.T) {
	start := time.Now()
	wall, boot = func() time.Time { return start }, func() time.Duration { return 0 }
	defer func() { wall, boot = time.Now, bootTime }()
	i := Now()

	boot = func() time.Duration { return time.Hour }
	if got := i.Elapsed(); got != time.Hour {
		t.Errorf("after an hour of suspension: %s", got)
	}
	boot = func() time.Duration { return 0 }
	wall = func() time.Time { return start.Add(3 * time.Second) }
	if got := i.Elapsed(); got != 3*time.Second {
		t.Errorf("after 3 s of running: %s", got)
	}
	// A wall clock set ahead, while the monotonic clock stood still.
	wall = func() time.Time { return start.Round(0).Add(time.Minute) }
	if got := i.Elapsed(); got != time.Minute {
		t.Errorf("after the wall clock jumped ahead: %s", got)
	}
	// A wall clock set back never makes a lease longer.
	boot = func() time.Duration { return time.Second }
	wall = func() time.Time { return start.Round(0).Add(-time.Hour) }
	if got := i.Elapsed(); got != time.Second {
		t.Errorf("after the wall clock jumped back: %s", got)
	}
}

func TestSleepEndsWithTheCause(t *testing.T) {
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	if err := Sleep(ctx, time.Hour); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}
