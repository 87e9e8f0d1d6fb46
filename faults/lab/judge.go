package lab

import (
	"maps"
	"slices"
	"strings"

	"github.com/pacht-queue/pacht"
)

// judge compares what the database says with what the recorder says, and with the rules.
func judge(all *tables, events []Event, opts AuditOptions) Account {
	j := &judging{
		opts: opts, lives: map[string]*Life{}, begun: map[pacht.Ref]string{}, of: map[pacht.ID][]Event{},
		Account: Account{Jobs: len(all.jobs), Reports: all.reports, Ends: map[pacht.Status]int{}, Ledger: map[pacht.Outcome]int{}, Cut: map[string]int{}},
	}
	for _, f := range opts.Fleets {
		for _, l := range f.Lives() {
			j.lives[l.Owner] = l
		}
	}
	for _, e := range events {
		j.of[e.Ref.Job] = append(j.of[e.Ref.Job], e)
	}
	if opts.Jobs > 0 && len(all.jobs) != opts.Jobs {
		j.fault("%d jobs are there, and %d were enqueued", len(all.jobs), opts.Jobs)
	}
	for _, id := range slices.Sorted(maps.Keys(all.jobs)) {
		job := all.jobs[id]
		j.fence(id)
		j.ended(job)
		j.ledger(job)
		j.booked(job)
		delete(j.of, id)
	}
	for _, id := range slices.Sorted(maps.Keys(j.of)) {
		j.fault("job %d is not there, and was worked on %d times", id, len(j.of[id]))
	}
	return j.Account
}

type judging struct {
	Account
	opts  AuditOptions
	lives map[string]*Life     // by owner
	of    map[pacht.ID][]Event // in the order of the recorder
	begun map[pacht.Ref]string // who, of the job that is looked at
}

// fence goes through what the recorder was told of a job, in its order: an effect under a token
// that is not the highest so far was refused, and no lease was begun twice (R1, R3).
func (j *judging) fence(id pacht.ID) {
	clear(j.begun)
	var highest pacht.Token
	for _, e := range j.of[id] {
		stale := e.Ref.Token < highest
		highest = max(highest, e.Ref.Token)
		switch e.What {
		case Begin:
			if by, twice := j.begun[e.Ref]; twice {
				j.fault("%s was begun twice, by %s and by %s", e.Ref, by, e.Owner)
				continue
			}
			j.begun[e.Ref] = e.Owner
			j.Begun++
		case Effect:
			switch {
			case e.Stale:
				j.Refused++
			case stale:
				j.fault("%s had an effect after token %d was seen", e.Ref, highest)
			default:
				j.Effects++
			}
			if e.Stale && !stale {
				j.fault("the effect of %s was refused, and there was no higher token", e.Ref)
			}
			if j.begun[e.Ref] != e.Owner {
				j.fault("%s had an effect by %s, who has not begun it", e.Ref, e.Owner)
			}
		}
	}
}

// ended: the job is what it should be, and was completed exactly once (R4).
func (j *judging) ended(job *jobRows) {
	want := pacht.Completed
	if j.opts.End != nil {
		want = j.opts.End(job.id)
	}
	j.Ends[job.status()]++
	if job.status() != want {
		j.fault("job %d is %q in the end, want %s", job.id, job.status(), want)
	}
	completed := 0
	for _, a := range job.ledger {
		if a.NextStatus == pacht.Completed {
			completed++
		}
	}
	if completed > 1 || completed == 0 && want == pacht.Completed {
		j.fault("job %d was completed %d times", job.id, completed)
	}
}

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
			j.attempt(pacht.Ref{Job: job.id, Token: a.Token}, a.Owner, a.Outcome)
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
			j.follows(job.id, last, pacht.Attempt{Token: l.token, ClaimedAt: l.claimedAt, EndedAt: l.claimedAt})
			j.attempt(pacht.Ref{Job: job.id, Token: l.token}, l.owner, "")
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

// follows: tokens grow by one (R2), and no lease begins before the one before it has ended (R1).
// A released job keeps its place in the queue: the claim that takes it may have been sent, by
// its own clock, in the moment before the release, and have waited.
func (j *judging) follows(id pacht.ID, before, a pacht.Attempt) {
	if a.Token != before.Token+1 {
		j.fault("job %d: token %d follows %d", id, a.Token, before.Token)
	}
	if j.opts.Stepped {
		return
	}
	if before.Token > 0 && a.ClaimedAt.Before(before.EndedAt) && before.Outcome != pacht.OutcomeReleased {
		j.fault("job %d: token %d was claimed at %s, and token %d ended at %s", id, a.Token, a.ClaimedAt, before.Token, before.EndedAt)
	}
	if a.EndedAt.Before(a.ClaimedAt) {
		j.fault("job %d: token %d ended at %s, before its claim at %s", id, a.Token, a.EndedAt, a.ClaimedAt)
	}
}

// attempt was counted at a claim: either its holder has begun it, or something explains why not.
func (j *judging) attempt(ref pacht.Ref, owner string, outcome pacht.Outcome) {
	if j.opts.Silent {
		delete(j.begun, ref)
		return
	}
	if by, ok := j.begun[ref]; ok {
		if by != owner {
			j.fault("%s was begun by %s, and is held by %s", ref, by, owner)
		}
		delete(j.begun, ref)
		return
	}
	why := j.explain(owner, outcome)
	if why == "" {
		j.fault("%s of %s ended as %q; it was never begun, and nothing explains it", ref, owner, outcome)
		why = "unexplained"
	}
	j.Cut[why]++
}

// explain says why an attempt was not begun; "" if nothing does.
func (j *judging) explain(owner string, outcome pacht.Outcome) string {
	if outcome == pacht.OutcomeReleased {
		return "released"
	}
	// Without a holder that begins, only time, or nothing yet, ends a lease.
	if outcome != pacht.OutcomeExpired && outcome != "" {
		return ""
	}
	if l := j.lives[owner]; l != nil {
		if fates := l.Fates(); len(fates) > 0 {
			name, _, _ := strings.Cut(fates[0], " ")
			return name
		}
	}
	if j.opts.Unanswered {
		return "unanswered claim"
	}
	return ""
}

// booked: the business table has one row for a job that was completed in a transaction, and
// it is that of the lease that completed it.
func (j *judging) booked(job *jobRows) {
	j.Booked += len(job.booked)
	if len(job.booked) > 1 {
		j.fault("job %d was booked %d times: under the tokens %v", job.id, len(job.booked), job.booked)
	}
	for _, token := range job.booked {
		ok := slices.ContainsFunc(job.ledger, func(a pacht.Attempt) bool {
			return a.Token == token && a.Outcome == pacht.OutcomeCompleted
		})
		if !ok {
			j.fault("job %d was booked under token %d, which did not complete it", job.id, token)
		}
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
