package pacht

import "time"

// Status is what a job is now, spelled as in the database.
type Status string

const (
	Pending    Status = "Pending"    // unfinished: waits for run_at and a worker; the lease is vacant
	Processing Status = "Processing" // unfinished: one owner holds the lease until lease_until
	Stuck      Status = "Stuck"      // unfinished: parked for a person or the reconciler
	Completed  Status = "Completed"  // finished: done
	Dead       Status = "Dead"       // finished: failed for good, or out of attempts
	Cancelled  Status = "Cancelled"  // finished: ended by request
)

// Statuses lists all of them, unfinished first.
var Statuses = []Status{Pending, Processing, Stuck, Completed, Dead, Cancelled}

// Finished says whether a job with this status has no lease row any more.
func (s Status) Finished() bool { return s == Completed || s == Dead || s == Cancelled }

// transitions is the only table of what may follow what, with the verbs that do it.
// A pair that is not here cannot happen, by any actor.
var transitions = map[Status]map[Status]string{
	Pending: {
		Processing: "claim",
		Completed:  "resolve",
		Dead:       "resolve",
		Cancelled:  "cancel by hand",
	},
	Processing: {
		Processing: "renew; claim by id of an expired lease",
		Pending:    "fail, snooze, release, expire",
		Stuck:      "unknown, expire at a cap or under hold",
		Completed:  "complete",
		Dead:       "fail for good or at max_attempts",
		Cancelled:  "cancel; any close that would be Pending while a cancel is requested",
	},
	Stuck: {
		Pending:   "retry by hand",
		Completed: "resolve",
		Dead:      "resolve",
		Cancelled: "cancel by hand",
	},
	Dead:      {Pending: "retry by hand"},
	Cancelled: {Pending: "retry by hand"},
	Completed: {},
}

// CanBecome says whether any verb leads from one status to the other.
func (s Status) CanBecome(next Status) bool {
	_, ok := transitions[s][next]
	return ok
}

// Facts is what the next status is decided from: columns of the locked lease row.
type Facts struct {
	Attempt, MaxAttempts int // Attempt as counted by the claim
	Crashes, MaxCrashes  int // Crashes before this close
	TTL                  time.Duration
	CrashPolicy          CrashPolicy
	CancelRequested      bool
}

// Following is what a job becomes when a held lease is closed.
type Following struct {
	Status  Status
	Attempt int
	Crashes int
	// Delay is added by the database to its now, to give run_at, if Status is Pending.
	Delay time.Duration
}

// Next is the rule by which a held lease is closed, in one place: what follows outcome s
// on a row with these facts. The stores state the same rule in SQL, so that it is decided
// on the locked row; the conformance suite compares them with this function. For an expiry
// pass Settlement{Outcome: OutcomeExpired}.
func Next(f Facts, s Settlement) Following {
	next := Following{Status: Pending, Attempt: f.Attempt, Delay: s.Delay}
	switch s.Outcome {
	case OutcomeCompleted:
		next.Status = Completed
	case OutcomeCancelled:
		next.Status = Cancelled
	case OutcomeUnknown:
		next.Status = Stuck
	case OutcomeReleased:
		next.Attempt--
		next.Crashes = f.Crashes
	case OutcomeSnoozed:
		next.Attempt--
	case OutcomeFailed:
		switch {
		case s.Permanent:
			next.Status = Dead
		case s.GiveBack:
			next.Attempt--
		case f.Attempt >= f.MaxAttempts:
			next.Status = Dead
		}
	case OutcomeExpired:
		next.Crashes = f.Crashes + 1
		next.Delay = CrashDelay(f.TTL, next.Crashes)
		if f.CrashPolicy == CrashHold || f.Attempt >= f.MaxAttempts || next.Crashes >= f.MaxCrashes {
			next.Status = Stuck
		}
	}
	if next.Status == Pending && f.CancelRequested {
		next.Status = Cancelled
	}
	if next.Status != Pending {
		next.Delay = 0
	}
	return next
}

// CrashDelay is how long an expired job waits before it may be claimed again: a tenth of
// its TTL, doubled for each further crash in a row, at most one TTL. It scales with the
// lease and needs no handler, because a crashed handler cannot be asked (R9).
func CrashDelay(ttl time.Duration, crashes int) time.Duration {
	d := ttl / 10
	for i := 1; i < crashes && d < ttl; i++ {
		d *= 2
	}
	return min(d, ttl)
}
