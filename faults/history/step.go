package history

import (
	"slices"

	"github.com/pacht-queue/pacht"
)

const (
	// rounding is what a database's clock may round away, and what its arithmetic may.
	rounding = 2000
	// slack is how far the client's clock and the database's may be apart. They are one clock
	// here, read by two processes; History.stamp makes sure of it.
	slack = 2000
)

// step is the sequential model: what this call does to a lease in that state, and why its
// answer cannot come from there ("" if it can).
func (j *job) step(s lease, e *event) (lease, string) {
	next, why := j.apply(s, e)
	if e.open && !e.sure && why != "" {
		return s, "" // it was never carried out, or turned down
	}
	return next, why
}

func (j *job) apply(s lease, e *event) (lease, string) {
	if s.token >= mostTokens-1 {
		return s, "the history has more leases than the model follows: make it shorter"
	}
	if s.status == "" && e.verb != enqueued {
		return s, "R1: the job is not there yet"
	}
	switch e.verb {
	case enqueued:
		if s.status != "" {
			return s, "R2: the id was given before"
		}
		s.status, s.max, s.run = pacht.Pending, j.max, e.at.after(j.delay.Microseconds()).give(rounding)
		return s, ""
	case claimed, claimedID:
		return j.claim(s, e)
	case missed:
		return j.miss(s, e)
	case listed:
		if s.status != pacht.Processing {
			return s, "R4: HeldBy names a lease that is not held"
		}
		return j.see(s, e)
	case absent:
		if s.status == pacht.Processing && s.owner == e.owner {
			return s, "R4: HeldBy does not name a lease that is held"
		}
		return s, ""
	case renewed:
		return j.renew(s, e)
	case mayRenew:
		if s.held(e.ref.Token) && s.until.hi >= e.at.lo {
			s.until.hi = forever
		}
		return s, ""
	case settled, settledTx, lockedTx:
		return j.settle(s, e)
	case expired:
		return j.expire(s, e)
	case looked:
		return j.see(s, e)
	case told:
		return s.tell(e)
	}
	return j.act(s, e)
}

// claim takes a due Pending job, or by id an expired lease (R1, R2, R5, R6).
func (j *job) claim(s lease, e *event) (lease, string) {
	at := e.at
	if !e.open {
		at = exactly(e.us(e.job.ClaimedAt))
		if e.queue != "" && j.queue != e.queue || e.kinds != nil && !slices.Contains(e.kinds, j.kind) {
			return s, "R1: a claim took a queue or kind that it did not ask for"
		}
	}
	switch {
	case s.status == pacht.Pending:
		if s.run.lo > at.hi {
			return s, "R1, R6: claimed before it was due"
		}
	case s.status == pacht.Processing && e.verb == claimedID:
		if s.until.lo > at.hi {
			return s, "R1, R6: taken from its owner before lease_until"
		}
		if pacht.Next(j.facts(s), pacht.Settlement{Outcome: pacht.OutcomeExpired}).Status != pacht.Pending {
			return s, "R1, R9: a claim by id took a lease that policy, a cap or a cancel leaves to the watcher"
		}
		s.ledger[s.token] = entry{owner: s.owner, attempt: s.attempt, outcome: code(pacht.OutcomeExpired), next: code(pacht.Processing), late: onTime, loose: s.loose}
		s.crashes++
	case s.status == pacht.Processing:
		return s, "R1: claimed while it has an owner"
	case s.status == pacht.Stuck:
		return s, "R10: claimed while it is Stuck"
	default:
		return s, "R1: claimed although it is finished"
	}
	s.status, s.owner, s.until = pacht.Processing, e.owner, at.after(j.ttl.Microseconds())
	s.token++
	s.attempt++
	if e.open {
		return s, ""
	}
	return j.see(s, e)
}

// miss is a claim by id that took nothing. Beside others that is always possible, because a
// locked row is passed over; alone it is not.
func (j *job) miss(s lease, e *event) (lease, string) {
	if !e.strict {
		return s, ""
	}
	if s.status == pacht.Pending && s.run.hi < e.at.lo {
		return s, "R1: a claim by id did not take a due job"
	}
	if s.status == pacht.Processing && s.until.hi < e.at.lo &&
		pacht.Next(j.facts(s), pacht.Settlement{Outcome: pacht.OutcomeExpired}).Status == pacht.Pending {
		return s, "R1: a claim by id did not take an expired lease"
	}
	return s, ""
}

// renew extends to the database's now plus the TTL, before lease_until and never after (R7).
func (j *job) renew(s lease, e *event) (lease, string) {
	held := s.held(e.ref.Token)
	switch {
	case e.extended && !held:
		return s, "R3: a renewal was accepted that does not hold the lease"
	case e.extended && s.until.hi < e.now:
		return s, "R7: a renewal was accepted after lease_until"
	case !e.extended && held && s.until.lo > e.now:
		return s, "R7: a renewal was refused before lease_until"
	case !e.extended:
		if held {
			s.until.hi = min(s.until.hi, e.now)
		}
		return s, ""
	}
	// An abandoned renewal that arrives late shortens nothing.
	if fresh := e.now + j.ttl.Microseconds(); e.until < fresh || e.until > fresh && !s.until.holds(e.until) {
		return s, "R6: a renewal did not extend to now plus the job's own TTL"
	}
	if e.cancel != s.cancel {
		return s, "R9: the answer of a renewal says something else of a requested cancel"
	}
	s.until = exactly(e.until)
	return s, ""
}

// expire closes a lease past its time: a pass of the watcher (R6, R9).
func (j *job) expire(s lease, e *event) (lease, string) {
	if !s.held(e.ref.Token) {
		return s, "R3, R4: an expiry closed a lease that is not held"
	}
	at := e.at
	if !e.open {
		if s.until.lo > e.now {
			return s, "R6: closed before lease_until"
		}
		if !s.until.holds(e.until) || e.until > e.now {
			return s, "R6: an expiry tells another lease_until"
		}
		if e.owner != s.owner {
			return s, "R1: an expiry tells another owner"
		}
		at = exactly(e.now)
	}
	crashes := s.crashes + 1
	s = j.close(s, pacht.Settlement{Outcome: pacht.OutcomeExpired}, at, onTime)
	if !e.open && (e.status != s.status || int32(e.crashes) != crashes) {
		return s, "R9: an expiry led to what the crash policy, its caps or a cancel do not allow"
	}
	return s, ""
}
