package lab

import (
	"maps"
	"slices"
	"time"

	"github.com/pacht-queue/pacht"
)

// judge compares what the database says with what the recorder says, and with the rules.
func judge(all *tables, events []Event, opts AuditOptions) Account {
	j := &judging{
		opts: opts, lives: map[string]*judged{}, begun: map[pacht.Ref]string{}, of: map[pacht.ID][]Event{}, unanswered: map[unanswered]int{}, last: map[string]time.Time{}, tooLate: all.tooLate,
		Account: Account{Jobs: len(all.jobs), Reports: all.reports, Ends: map[pacht.Status]int{}, Ledger: map[pacht.Outcome]int{}, Cut: map[string]int{}},
	}
	for _, f := range opts.Fleets {
		for _, l := range f.Lives() {
			j.lives[l.Owner] = &judged{l, l.story()}
		}
	}
	for _, e := range events {
		j.of[e.Ref.Job] = append(j.of[e.Ref.Job], e)
	}
	for _, job := range all.jobs {
		for _, a := range job.ledger {
			begun := func(e Event) bool { return e.What == Begin && e.Ref.Token == a.Token }
			if a.ClaimedAt.After(j.last[a.Owner]) && slices.ContainsFunc(j.of[job.id], begun) {
				j.last[a.Owner] = a.ClaimedAt
			}
		}
	}
	if opts.Jobs > 0 && len(all.jobs) != opts.Jobs {
		j.fault("%d jobs are there, and %d were enqueued", len(all.jobs), opts.Jobs)
	}
	for _, id := range slices.Sorted(maps.Keys(all.jobs)) {
		job := all.jobs[id]
		j.fence(id)
		j.beside(id)
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
	opts       AuditOptions
	lives      map[string]*judged   // by owner
	of         map[pacht.ID][]Event // in the order of the recorder
	begun      map[pacht.Ref]string // who, of the job that is looked at
	unanswered map[unanswered]int
	last       map[string]time.Time // the last claim of an owner of which it has begun something
	tooLate    map[pacht.Ref]bool   // see tables
}

// judged is a run, and what was done to it.
type judged struct {
	*Life
	story []fate
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
