package lab

import (
	"fmt"
	"time"

	"github.com/pacht-queue/pacht"
)

const (
	// leeway is how far apart two readings of the clock may be that belong together: on a busy
	// machine time passes between what a process does and what it, or another, writes of it.
	leeway = time.Second
	// soon is how long a holder that nothing disturbs takes at most from the claim to its begin.
	soon = 2 * time.Second
	// overtaken is by how much a begin may come after that of a claim which was made later.
	overtaken = 250 * time.Millisecond
	// again is how long after an outage a lease is closed at the latest that ran out because nobody
	// asked for it: a worker waits for 5 s and then for a call of 10, and so may a watcher.
	again = 30 * time.Second
)

// attempt was counted at a claim: either its holder has begun it, or something explains why not.
func (j *judging) attempt(a pacht.Attempt) {
	ref := pacht.Ref{Job: a.Job, Token: a.Token}
	if by, ok := j.begun[ref]; ok {
		if by != a.Owner {
			j.fault("%s was begun by %s, and is held by %s", ref, by, a.Owner)
		}
		delete(j.begun, ref)
		j.moments(a)
		return
	}
	why := j.explain(a)
	if why == "" {
		j.fault("%s of %s, claimed at %s, ended as %q at %s; it was never begun, and nothing explains it: %s", ref, a.Owner,
			a.ClaimedAt, a.Outcome, a.EndedAt, j.tell(a.Owner))
		why = "unexplained"
	}
	j.Cut[why]++
}

// tell is what is known of an owner.
func (j *judging) tell(owner string) string {
	l := j.lives[owner]
	if l == nil {
		return "its owner is none of the fleet's"
	}
	told := fmt.Sprintf("the last lease that it began was claimed at %s", j.last[owner])
	for _, f := range l.story {
		told += fmt.Sprintf("; %s at %s", f.what, f.at.UTC())
		if !f.until.IsZero() {
			told += fmt.Sprintf(" until %s", f.until.UTC())
		}
	}
	return told
}

// explain says why an attempt was not begun; "" if nothing does.
func (j *judging) explain(a pacht.Attempt) string {
	if a.Outcome == pacht.OutcomeReleased {
		return "released"
	}
	// Without a holder that begins, only time, or nothing yet, ends a lease.
	if a.Outcome != pacht.OutcomeExpired && a.Outcome != "" {
		return ""
	}
	// Its holder had the answer when the lease was all but over, as happens where the machine is too busy
	// for leases of a second, and gave it back at once: not soon enough.
	if j.tooLate[pacht.Ref{Job: a.Job, Token: a.Token}] {
		return "released too late"
	}
	l := j.lives[a.Owner]
	if l == nil {
		return ""
	}
	// A worker begins all that a claim has brought before it claims again.
	dropped := j.last[a.Owner].After(a.ClaimedAt.Add(overtaken))
	for _, f := range l.story {
		if f.explains(a, l.ease(), l.stop) && (f.deed == stands || !dropped) {
			return f.what
		}
	}
	for n, o := range j.opts.Outages {
		if o.explains(a) && j.unanswered[unanswered{n, a.Owner}] < l.slots {
			j.unanswered[unanswered{n, a.Owner}]++
			return "unanswered claim"
		}
	}
	return ""
}

// unanswered is what an owner claimed in one outage and never heard of. It asks what it holds
// before it claims again, and so that is no more than its slots.
type unanswered struct {
	outage int
	owner  string
}

// ease is how long a run may take from a claim to the begin: with many slots it claims ahead, and what
// it has claimed then waits for a settle, however long the database takes for that.
func (l *judged) ease() time.Duration {
	if l.slots >= 50 {
		return time.Minute
	}
	return soon
}

// explains says whether this is why its holder did not begin a lease that ran out: it must have
// been done before the lease was over, and before a holder at its ease would have begun.
func (f fate) explains(a pacht.Attempt, ease, stop time.Duration) bool {
	if f.at.After(a.EndedAt) || f.at.After(a.ClaimedAt.Add(ease)) {
		return false
	}
	switch f.deed {
	case dies:
		return true // a claim that was on its way is carried out after its sender's death
	case stands:
		return f.until.IsZero() || f.until.After(a.EndedAt.Add(-leeway))
	default: // what a stop is in time for it releases, but a claim may come back too late for that
		return f.at.Add(stop + leeway).After(a.ClaimedAt)
	}
}

func (o Outage) explains(a pacht.Attempt) bool {
	return a.ClaimedAt.After(o.From.Add(-leeway)) && a.ClaimedAt.Before(o.Until.Add(leeway)) && a.EndedAt.Before(o.Until.Add(again))
}
