package pacht

import (
	"context"
	"strconv"
	"time"
)

// Waker wakes idle workers sooner than their next poll would. All of it is a hint, which no
// promise depends on: polling alone finds every job.
//
// A worker with free slots sleeps on a queue (Sleep) and listens (Listen). Whoever enqueues a
// job that is due there and then, by whatever road, wakes it at the commit; if nobody sleeps,
// that costs one look and nothing else. Lost is what an enqueue did that looked for sleepers
// before the Sleep was committed and committed after the sleeper's last claim: a worker polls on
// for a moment after it has lain down, and at its interval always. Jobs that become due by time,
// by a retry or by an act of hand wake nobody.
type Waker interface {
	// Listen blocks until ctx ends, and then returns nil, or until the store is closed
	// (ErrClosed). It has a connection of its own, opens another when that breaks, and says
	// that it works only once a notice has come through. On SQLite it hears of the enqueues
	// of this very store, outside of a caller's transaction.
	Listen(ctx context.Context, owner string, l Listener) error
	// Sleep says, or says again, that this owner sleeps on these queues, for so long at most.
	// On SQLite there is nothing to say.
	Sleep(ctx context.Context, owner string, queues []string, life time.Duration) error
	// Rise takes that back. So does Leave, for all queues.
	Rise(ctx context.Context, owner string, queues []string) error
	// Due says which of these queues have a due Pending job of one of these kinds, locked by
	// somebody or not: one look in place of a claim for each queue.
	Due(ctx context.Context, queues, kinds []string) (Due, error)
}

// Listener is told what Listen hears. Its functions must not block; they may be called from
// several goroutines, and are not called after Listen has returned.
type Listener struct {
	// Works is called with true when notices begin to arrive, and with false and the reason
	// when they no longer do or could not be made to: nobody should lie down then.
	Works func(works bool, why error)
	// Wake is called after a commit that brought due jobs to this queue. It may also be called
	// when there is nothing for this owner.
	Wake func(queue string)
}

// Due answers one look for due jobs.
type Due struct {
	Queues []string
	// Took is how long the database looked, without the way there and back. Rows which this
	// worker may not take are walked over: a look that took long should not be repeated soon.
	Took time.Duration
}

// MaxSleep is the longest life of one Sleep.
const MaxSleep = time.Hour

// ValidSleep checks the arguments of Sleep, and those of Rise with a life of MaxSleep.
func ValidSleep(owner string, queues []string, life time.Duration) error {
	if err := ValidOwner(owner); err != nil {
		return err
	}
	if len(queues) < 1 || len(queues) > MaxBatch {
		return &InvalidError{Field: "queues", Value: strconv.Itoa(len(queues)), Bound: "1 to 10000"}
	}
	for _, queue := range queues {
		if err := ValidName("queue", queue); err != nil {
			return err
		}
	}
	if life < time.Millisecond || life > MaxSleep {
		return &InvalidError{Field: "life of a sleep", Value: life.String(), Bound: "1ms to 1h"}
	}
	return nil
}
