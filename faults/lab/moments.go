package lab

import (
	"time"

	"github.com/pacht-queue/pacht"
)

// moments: what a holder did stands within its lease, by the recorder's clock, or was refused
// (R1, R3, R8).
func (j *judging) moments(a pacht.Attempt) {
	for _, e := range j.of[a.Job] {
		if e.Ref.Token != a.Token || e.What != Begin && (e.What != Effect || e.Stale) {
			continue
		}
		switch {
		case e.At.Before(a.ClaimedAt.Add(-leeway)):
			j.fault("%s: %s at %s, before its claim at %s", e.Ref, e.What, e.At, a.ClaimedAt)
		case !e.At.After(a.EndedAt.Add(leeway)):
		case j.cannotKnow(e, a.EndedAt):
			j.Beyond++
		default:
			j.fault("%s: %s at %s, after its end at %s", e.Ref, e.What, e.At, a.EndedAt)
		}
	}
}

// beside: no two handlers of a job are at work side by side (R8).
func (j *judging) beside(id pacht.ID) {
	begun := map[pacht.Token]time.Time{}
	for _, e := range j.of[id] {
		switch e.What {
		case Begin:
			begun[e.Ref.Token] = e.At
		case End:
			for token, at := range begun {
				if token > e.Ref.Token && at.Add(leeway).Before(e.At) && !j.cannotKnow(e, at) {
					j.fault("%s was ended by %s at %s, and token %d was begun at %s", e.Ref, e.Owner, e.At, token, at)
				}
			}
		}
	}
}

// cannotKnow says whether the holder did this because it could not know that its lease was over
// by then: it stood still, and has only just woken up. Deaf handlers do not want to know. What
// such holders do is refused by the fence, or nobody has begun after them: see fence.
func (j *judging) cannotKnow(e Event, over time.Time) bool {
	l := j.lives[e.Owner]
	if l == nil {
		return false
	}
	for _, f := range l.story {
		if f.deed == stands && f.at.Before(e.At) && f.until.After(over.Add(-leeway)) && e.At.Before(f.until.Add(leeway)) {
			return true
		}
	}
	return l.deaf && e.What != Begin
}
