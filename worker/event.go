package worker

import (
	"time"

	"github.com/pacht-queue/pacht"
)

// EventType says what happened.
type EventType string

const (
	EventClaimed  EventType = "claimed"  // a lease was taken; its handler is about to start
	EventSettled  EventType = "settled"  // an outcome is committed
	EventLost     EventType = "lost"     // the lease was lost; our outcome, if any, changed nothing
	EventRefused  EventType = "refused"  // a late outcome was refused by the fence
	EventWedged   EventType = "wedged"   // a handler ignores its context; its slot is blocked
	EventUnwedged EventType = "unwedged" // it returned after all
	EventDegraded EventType = "degraded" // the database cannot be reached
	EventRestored EventType = "restored" // it can again
	EventDropped  EventType = "dropped"  // events were dropped; Count says how many
)

// Event is something a worker did or met. It is told after the commit.
type Event struct {
	Type    EventType
	Job     pacht.JobInfo // as claimed; zero where no job is meant
	Outcome pacht.Outcome // of settled and refused
	Status  pacht.Status  // of settled: what the job is now
	Late    bool          // of settled: after lease_until
	Took    time.Duration // of settled, lost, refused: since the claim
	Err     error
	Count   int
}
