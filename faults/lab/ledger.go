package lab

import (
	"maps"
	"slices"
	"time"

	"github.com/pacht-queue/pacht"
)

// ledger goes through the leases that a job has had, and through the one that is held.
func (j *judging) ledger(job *jobRows) {
	last := pacht.Attempt{} // the one before
	counted, back := 0, 0   // attempts so far, and those of them that were given back
	for _, a := range job.ledger {
		j.Ledger[a.Outcome]++
		if a.Late {
			j.Late++
		}
		j.follows(job.id, last, a)
		if byHand(a) {
			j.Hand++
		} else {
			counted++
			j.attempt(a)
		}
		// What an attempt was counted as tells whether the one before was given back (R5).
		if given := counted - back - a.Attempt; given == 1 && givesBack(last.Outcome) {
			back++
		} else if given != 0 {
			j.fault("job %d, token %d: it counts as attempt %d, and %d were made and %d given back", job.id, a.Token, a.Attempt, counted, back)
			back = counted - a.Attempt
		}
		last = a
	}
	if l := job.lease; l != nil {
		if l.status == pacht.Processing {
			counted++
			held := pacht.Attempt{Job: job.id, Token: l.token, Owner: l.owner, ClaimedAt: l.claimedAt, EndedAt: forever}
			j.follows(job.id, last, held)
			j.attempt(held)
		} else if l.token != last.Token {
			j.fault("job %d: its lease has token %d, and the ledger ends with %d", job.id, l.token, last.Token)
		}
		if given := counted - back - l.attempt; given == 1 && givesBack(last.Outcome) {
			back++
		} else if given != 0 {
			j.fault("job %d: its lease counts %d attempts, and %d were made and %d given back", job.id, l.attempt, counted, back)
		}
	} else if last.Outcome == pacht.OutcomeReleased || last.Outcome == pacht.OutcomeSnoozed {
		back++ // and was then cancelled by a request; of a finished job no later count tells
	}
	j.Attempts += counted
	j.GivenBack += back
	for _, ref := range slices.SortedFunc(maps.Keys(j.begun), func(a, b pacht.Ref) int { return int(a.Token - b.Token) }) {
		j.fault("%s was begun by %s, and nobody ever held it", ref, j.begun[ref])
	}
}

// forever is when a lease ends that is held.
var forever = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// follows: tokens grow by one (R2), and no lease begins before the one before it has ended (R1).
// A released job keeps its place in the queue: the claim that takes it may have been sent, by
// its own clock, in the moment before the release, and have waited.
func (j *judging) follows(id pacht.ID, before, a pacht.Attempt) {
	if a.Token != before.Token+1 {
		j.fault("job %d: token %d follows %d", id, a.Token, before.Token)
	}
	waited := time.Duration(0)
	if before.Outcome == pacht.OutcomeReleased {
		waited = leeway
	}
	if before.Token > 0 && a.ClaimedAt.Add(waited).Before(before.EndedAt) {
		j.fault("job %d: token %d was claimed at %s, and token %d ended at %s", id, a.Token, a.ClaimedAt, before.Token, before.EndedAt)
	}
	if a.EndedAt.Before(a.ClaimedAt) {
		j.fault("job %d: token %d ended at %s, before its claim at %s", id, a.Token, a.EndedAt, a.ClaimedAt)
	}
}

// byHand says whether a row is that of an act which took and closed a vacant or parked lease:
// no attempt.
func byHand(a pacht.Attempt) bool {
	return a.Outcome == pacht.OutcomeResolved || a.Outcome == pacht.OutcomeCancelled && a.ClaimedAt.Equal(a.EndedAt)
}

// givesBack says whether a lease that ended so may have given its attempt back (R5, R10).
func givesBack(o pacht.Outcome) bool {
	return o == pacht.OutcomeReleased || o == pacht.OutcomeSnoozed || o == pacht.OutcomeFailed
}
