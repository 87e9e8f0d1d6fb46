package history

import (
	"time"

	"github.com/pacht-queue/pacht"
)

// mostTokens is how many leases one history can follow; a state is compared often, so it is
// small and of a fixed size.
const mostTokens = 32

// lease is the sequential model of one job: what a single copy of it, kept by the rules, would
// be. It is a value, compared with ==.
type lease struct {
	status  pacht.Status // "" before the enqueue
	owner   name
	token   int32
	attempt int32
	max     int32
	crashes int32
	cancel  bool // a cancel is requested
	// loose: a failure with the attempt given back became Cancelled. A retry may go on with the
	// attempt or with the one after it, because the ledger does not tell them apart; max moves
	// along. The next answer that shows the attempt decides.
	loose  bool
	run    span // when it may be claimed, if Pending or Processing
	until  span // lease_until, if Processing
	ledger [mostTokens]entry
}

// entry is one closed lease, by its token.
type entry struct {
	owner   name
	attempt int32
	outcome outcome
	next    outcome
	late    lateness
	loose   bool
}

// name stands for an owner or an actor, see History.name. Zero is nobody.
type name uint32

// outcome is an Outcome or a Status in one byte. Zero is none.
type outcome uint8

type lateness uint8

const (
	unknown lateness = iota // no answer said so, and the clock does not decide it
	onTime
	late
)

var words = []string{"", string(pacht.OutcomeCompleted), string(pacht.OutcomeFailed), string(pacht.OutcomeExpired),
	string(pacht.OutcomeReleased), string(pacht.OutcomeSnoozed), string(pacht.OutcomeCancelled), string(pacht.OutcomeUnknown),
	string(pacht.OutcomeResolved), string(pacht.Pending), string(pacht.Processing), string(pacht.Stuck), string(pacht.Dead)}

func code[T ~string](word T) outcome {
	for i, w := range words {
		if w == string(word) {
			return outcome(i)
		}
	}
	return 255 // no word of ours: equal to nothing that the model writes
}

func (o outcome) String() string {
	if int(o) < len(words) {
		return words[o]
	}
	return "?"
}

// job is what an enqueue fixes for good.
type job struct {
	id         pacht.ID
	kind       string
	queue      string
	max        int32
	maxCrashes int32
	ttl        time.Duration
	policy     pacht.CrashPolicy
	delay      time.Duration
}

func (j *job) facts(s lease) pacht.Facts {
	return pacht.Facts{Attempt: int(s.attempt), MaxAttempts: int(s.max), Crashes: int(s.crashes), MaxCrashes: int(j.maxCrashes),
		TTL: j.ttl, CrashPolicy: j.policy, CancelRequested: s.cancel}
}

func (s lease) held(token pacht.Token) bool {
	return s.status == pacht.Processing && pacht.Token(s.token) == token
}

// closed is the entry of a token, zero if that lease is open or never was.
func (s lease) closed(token pacht.Token) entry {
	if token < 0 || token >= mostTokens {
		return entry{}
	}
	return s.ledger[token]
}

// close ends a held lease as pacht.Next says, at a moment within the span.
func (j *job) close(s lease, o pacht.Settlement, at span, was lateness) lease {
	next := pacht.Next(j.facts(s), o)
	s.ledger[s.token] = entry{owner: s.owner, attempt: s.attempt, outcome: code(o.Outcome), next: code(next.Status), late: was, loose: s.loose}
	switch {
	case next.Status != pacht.Pending:
		s.run = span{}
	case o.Outcome != pacht.OutcomeReleased || o.Delay > 0: // else it keeps its place in the queue
		s.run = at.after(next.Delay.Microseconds()).give(rounding)
	}
	s.loose = s.loose || next.Status == pacht.Cancelled && o.Outcome == pacht.OutcomeFailed && o.GiveBack
	s.status, s.owner, s.until, s.cancel = next.Status, 0, span{}, false
	s.attempt, s.crashes = int32(next.Attempt), int32(next.Crashes)
	if s.status != pacht.Pending && s.status != pacht.Stuck {
		s.crashes = 0 // no lease row counts them any more
	}
	return s
}

// shut takes and closes a lease that nobody holds (R2).
func (s lease) shut(actor name, o pacht.Outcome, next pacht.Status) lease {
	s.token++
	s.ledger[s.token] = entry{owner: actor, attempt: s.attempt, outcome: code(o), next: code(next), late: onTime, loose: s.loose}
	s.status, s.run, s.crashes = next, span{}, 0
	return s
}

// lateBy says whether a close within the span is late, as far as the clock decides it.
func (s lease) lateBy(at span) lateness {
	switch {
	case s.until.hi < at.lo:
		return late
	case s.until.lo > at.hi:
		return onTime
	}
	return unknown
}

// tries compares an attempt that an answer shows, and settles what was loose.
func (s *lease) tries(shown int) bool {
	if s.loose && int32(shown) == s.attempt+1 {
		s.attempt++
		s.max++
	}
	s.loose = false
	return int32(shown) == s.attempt
}

func (e entry) tries(shown int) bool {
	return int32(shown) == e.attempt || e.loose && int32(shown) == e.attempt+1
}
