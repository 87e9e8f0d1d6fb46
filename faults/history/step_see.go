package history

import "github.com/pacht-queue/pacht"

// see compares a job as an answer shows it with what it should be, and takes in what was not
// known yet.
func (j *job) see(s lease, e *event) (lease, string) {
	o := e.job
	if o.ID != j.id || o.Kind != j.kind || o.Queue != j.queue || o.TTL != j.ttl || o.CrashPolicy != j.policy || int32(o.MaxCrashes) != j.maxCrashes {
		return s, "R6: facts that the enqueue fixed are others"
	}
	if o.Status != s.status {
		return s, "an answer shows another status"
	}
	if o.Token != pacht.Token(s.token) {
		return s, "R2: an answer shows another token"
	}
	if s.status.Finished() {
		if !s.closed(o.Token).tries(o.Attempt) {
			return s, "R5: an answer shows another attempt"
		}
		return s, ""
	}
	if !s.tries(o.Attempt) {
		return s, "R5: an answer shows another attempt"
	}
	switch {
	case int32(o.MaxAttempts) != s.max:
		return s, "R5: an answer shows another max_attempts"
	case int32(o.Crashes) != s.crashes:
		return s, "R9: an answer shows another count of crashes"
	case o.CancelRequested != s.cancel:
		return s, "R9: an answer shows another request to cancel"
	case e.holder != s.owner:
		return s, "R1: an answer shows another owner"
	}
	if s.status == pacht.Pending || s.status == pacht.Processing {
		run := e.us(o.RunAt)
		if !s.run.holds(run) {
			return s, "R6: an answer shows another run_at"
		}
		s.run = exactly(run)
	}
	if s.status == pacht.Processing {
		until := e.us(o.LeaseUntil)
		if !s.until.holds(until) {
			return s, "R6: an answer shows another lease_until"
		}
		s.until = exactly(until)
	}
	return s, ""
}

// tell compares the whole ledger (R4): one row for each closed lease, and nothing else.
func (s lease) tell(e *event) (lease, string) {
	closed := 0
	for token := range s.ledger {
		if s.ledger[token].outcome != 0 {
			closed++
		}
	}
	if len(e.ledger) != closed {
		return s, "R4: the ledger has not one row for each closed lease"
	}
	for i, a := range e.ledger {
		was := s.closed(a.Token)
		switch {
		case was.outcome == 0 || was.outcome != code(a.Outcome) || was.next != code(a.NextStatus):
			return s, "R4: the ledger says that a lease ended otherwise"
		case !was.tries(a.Attempt):
			return s, "R5: the ledger shows another attempt"
		case was.owner != e.owners[i]:
			return s, "R1: the ledger shows another owner"
		case was.late != unknown && was.late != lateIf(a.Late):
			return s, "R7: the ledger says late or not late, and it is not so"
		}
		s.ledger[a.Token].late = lateIf(a.Late)
	}
	return s, ""
}
