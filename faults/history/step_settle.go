package history

import "github.com/pacht-queue/pacht"

// settle closes a held lease, once (R3, R4, R7, R9, R10); what it says of a lease that is
// closed comes from the ledger.
func (j *job) settle(s lease, e *event) (lease, string) {
	held, was := s.held(e.ref.Token), s.closed(e.ref.Token)
	switch {
	case e.refused == lost:
		return s.lostIt(e, held || was.outcome == code(e.ends.Outcome))
	case e.refused == already:
		if was.outcome != code(e.ends.Outcome) {
			return s, "R4: a transaction heard of a settlement that was not made"
		}
		return s, ""
	case e.verb == lockedTx:
		if !held {
			return s, "R3, R4: a transaction settled a lease that is not held"
		}
		return s, ""
	case e.repeated && was.outcome == code(e.ends.Outcome):
		return s.repeat(e, was)
	case e.repeated && !e.shaky:
		return s, "R4: a settlement was called a repeat, and is the first"
	case !held:
		return s, "R3, R4: a settlement was accepted that does not hold the lease"
	}
	late := s.lateBy(e.at)
	if e.verb == settled && !e.open {
		if e.late && s.until.lo > e.at.hi || !e.late && s.until.hi < e.at.lo {
			return s, "R7: late or not late, and the clock says otherwise"
		}
		late = lateIf(e.late)
	}
	s = j.close(s, e.ends, e.at, late)
	if e.verb == settled && !e.open && e.status != s.status {
		return s, "R9, R10: a settlement led to another status than the rules say"
	}
	return s, ""
}

func lateIf(yes bool) lateness {
	if yes {
		return late
	}
	return onTime
}

// repeat is answered as the first time.
func (s lease) repeat(e *event, was entry) (lease, string) {
	if was.next != code(e.status) || was.late != unknown && was.late != lateIf(e.late) {
		return s, "R4: a repeat was answered otherwise than the first time"
	}
	s.ledger[e.ref.Token].late = lateIf(e.late)
	return s, ""
}

// lostIt checks a *LeaseLostError: it is due, and says what became of the lease.
func (s lease) lostIt(e *event, undue bool) (lease, string) {
	l := e.loss
	if undue {
		return s, "R3, R7: refused as lost, and it is not"
	}
	if l.Status != s.status || l.Token != pacht.Token(s.token) || code(l.Outcome) != s.closed(e.ref.Token).outcome {
		return s, "R3: a lost lease was explained with what is not so"
	}
	if s.status == pacht.Processing && (e.holder != s.owner || !s.until.holds(e.us(l.Until))) {
		return s, "R3: a lost lease was explained with another holder"
	}
	return s, ""
}

// act is what people do by hand.
func (j *job) act(s lease, e *event) (lease, string) {
	vacant := s.status == pacht.Pending || s.status == pacht.Stuck
	current := pacht.Token(s.token) == e.ref.Token
	allowed := false
	switch e.verb {
	case retried:
		allowed = s.status == pacht.Stuck || s.status == pacht.Dead || s.status == pacht.Cancelled
	case cancelled:
		allowed = !s.status.Finished()
	case released:
		allowed = s.held(e.ref.Token)
	case resolved:
		allowed = vacant && current
	}
	switch {
	case e.refused == wrong && (allowed || e.status != s.status || (e.verb == released || e.verb == resolved) && !current):
		return s, "R3: an act by hand was refused for a status that the job does not have"
	case e.refused == lost && e.verb == resolved && current:
		return s, "R3: a resolution was refused as lost, and it is not"
	case e.refused == lost:
		return s.lostIt(e, allowed)
	case e.refused == wrong:
		return s, ""
	case !allowed && e.verb == retried && s.status == pacht.Completed:
		return s, "status: a Completed job went back"
	case !allowed:
		return s, "R3: an act by hand was accepted that the status or the token forbids"
	}
	switch e.verb {
	case retried:
		s.status, s.run = pacht.Pending, e.at.give(rounding)
		s.crashes, s.max = 0, s.attempt+j.max
	case cancelled:
		if vacant {
			s = s.shut(e.owner, pacht.OutcomeCancelled, pacht.Cancelled)
		} else {
			s.cancel = true
		}
	case released:
		s = j.close(s, pacht.Settlement{Ref: e.ref, Outcome: pacht.OutcomeReleased}, e.at, s.lateBy(e.at))
	case resolved:
		s = s.shut(e.owner, pacht.OutcomeResolved, e.to)
	}
	if !e.open && e.status != "" && e.status != s.status {
		return s, "R9: an act by hand led to another status than the rules say"
	}
	return s, ""
}
