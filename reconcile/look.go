package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
)

// look compares both sides of one reference and decides, and does so again after each transition:
// from pending to paid, from paid to refunded, and then both should agree. A class that is still
// there after it was healed is not healed again.
func (p *pass) look(ctx context.Context, s subject) error {
	known, err := p.known(ctx, s.reference)
	if err != nil {
		return err
	}
	if !p.isDue(s, known) {
		p.count(func(r *Report) { r.Skipped++ })
		return nil
	}
	p.count(func(r *Report) { r.Looked++ })
	if s.listed != nil {
		if same, err := p.asListed(ctx, s, known); same || err != nil {
			return err
		}
	}
	again, err := p.probe(ctx, &s)
	if err != nil {
		return err
	}
	for done := map[Class]bool{}; ; {
		f, d, err := p.sides(ctx, s)
		if err != nil {
			return err
		}
		c := &matter{subject: s, finding: f, difference: d, known: known, again: again, tired: done[d.class]}
		healed, err := p.decide(ctx, c)
		if err != nil || !healed {
			return err
		}
		done[d.class] = true
		if f.Job != nil {
			s.job = nil // it was closed by the transition
		}
		if known, err = p.known(ctx, s.reference); err != nil {
			return err
		}
	}
}

// known lists the breaks of one reference, ended ones too.
func (p *pass) known(ctx context.Context, reference string) ([]pacht.Break, error) {
	all, err := p.cfg.Store.Breaks(ctx, pacht.BreakFilter{Reference: reference, Ended: true, Limit: 1000})
	return slices.DeleteFunc(all, p.foreignClass), err
}

// foreignClass says of a break that somebody else has opened it, for a reason of their own: that
// both sides agree does not end it.
func (p *pass) foreignClass(b pacht.Break) bool {
	_, mine := p.cfg.Policies[Class(b.Class)]
	return !mine
}

// isDue says whether a reference is to be looked at: not while it waits, and what is with a person
// only by the slow lane, or if the break does not name its job yet.
func (p *pass) isDue(s subject, known []pacht.Break) bool {
	now := p.now()
	for _, b := range known {
		unnamed := s.job != nil && b.Job == 0
		if b.Status == pacht.BreakWaiting && b.NextAt.After(now) || b.Status == pacht.BreakPerson && p.lane != LaneSettled && !unnamed {
			return false
		}
	}
	return true
}

// sides asks both, the provider first: a payment that goes on meanwhile then looks more advanced
// here than there, which waits, and not less, which would be healed.
func (p *pass) sides(ctx context.Context, s subject) (*Finding, difference, error) {
	f := &Finding{}
	var silence, trouble string
	theirs := Record{}
	if s.foreign() {
		f.Theirs, theirs = *s.listed, *s.listed
	} else {
		if err := p.rate.wait(ctx); err != nil {
			return nil, difference{}, err
		}
		p.count(func(r *Report) { r.LookUps++ })
		var err error
		f.Theirs, err = guarded(ctx, p.cfg.Timeout, "Theirs.Lookup", func(ctx context.Context) (Record, error) {
			return p.cfg.Theirs.Lookup(ctx, s.reference)
		})
		theirs, silence = sound(f.Theirs, err, s.reference, false)
	}
	if ctx.Err() != nil {
		return nil, difference{}, context.Cause(ctx)
	}
	var ours Record
	f.Ours, ours, trouble = p.find(ctx, s)
	if ctx.Err() != nil {
		return nil, difference{}, context.Cause(ctx)
	}
	d := compare(ours, theirs)
	switch {
	case d.class == UnknownHere:
		d.why = trouble
	case d.class == UnknownThere && silence != "":
		d.why = silence
	case d.class == "" && theirs.State == NotFound && s.open():
		d = difference{MissingThere, "an effect may have happened, and the provider does not know its reference", ours.Amount}
	case d.class == "" && s.job != nil && s.untold() != "":
		d = difference{UnknownThere, "both sides agree, but " + s.untold(), ours.Amount}
	}
	f.Class = d.class
	return f, d, nil
}

// find is our record: as it was given, and as far as it can be used.
func (p *pass) find(ctx context.Context, s subject) (given, usable Record, trouble string) {
	if s.foreign() {
		return Record{State: NotFound}, Record{State: NotFound}, ""
	}
	given, err := guarded(ctx, p.cfg.Timeout, "Ours.Find", func(ctx context.Context) (Record, error) {
		return p.cfg.Ours.Find(ctx, s.reference)
	})
	usable, trouble = sound(given, err, s.reference, true)
	return given, usable, trouble
}

// sound is a record if it can be relied on, else the zero one and why not.
func sound(r Record, err error, reference string, mine bool) (Record, string) {
	whose := "the provider's record"
	if mine {
		whose = "our own record"
	}
	if err != nil {
		return Record{}, whose + " could not be read: " + fmt.Sprint(err)
	}
	if r.State == Inconclusive {
		return Record{}, whose + " says nothing"
	}
	if why := fault(r, reference, mine); why != "" {
		return Record{}, whose + " cannot be: " + why
	}
	return r, ""
}

// ofListed is what a row of the provider's list is about. One that is younger than Grace may be
// of a transaction that has not been committed yet (S099). One without a reference of ours goes by the
// provider's own name.
func (p *pass) ofListed(row Record) (subject, bool) {
	switch {
	case !row.At.IsZero() && p.now().Sub(row.At) < p.cfg.Grace:
		return subject{}, false
	case row.Reference == "" && row.ProviderID == "":
		p.problem("", fmt.Errorf("a record in the provider's list has neither a reference nor an id"))
		return subject{}, false
	case row.Reference == "":
		row.Reference = foreignPrefix + row.ProviderID
		if why := fault(row, row.Reference, false); why != "" {
			p.problem(row.Reference, fmt.Errorf("a record in the provider's list cannot be: %s", why))
			return subject{}, false
		}
	}
	return subject{reference: row.Reference, listed: &row}, true
}

const foreignPrefix = "provider:"

// foreign says that the provider has it without a reference of ours: there is nothing to look up.
func (r Record) foreign() bool {
	return r.ProviderID != "" && r.Reference == foreignPrefix+r.ProviderID
}

func (s subject) foreign() bool { return s.listed != nil && s.listed.foreign() }

// open says whether one of its effects may have happened and nobody knows.
func (s subject) open() bool {
	for _, e := range s.effects {
		if e.State.Open() {
			return true
		}
	}
	return false
}

// untold says which effect of a parked job the record does not tell, because it has another
// reference; "" if there is none. Such a job is not closed.
func (s subject) untold() string {
	for _, e := range s.effects {
		if e.Reference != s.reference {
			return fmt.Sprintf("effect %s of job %d, under reference %.80q, is %s", e.Name, e.Job, e.Reference, e.State)
		}
	}
	return ""
}

// asListed compares ours with what the list says, which costs no look-up. If they agree and no
// break is open, that is all.
func (p *pass) asListed(ctx context.Context, s subject, known []pacht.Break) (bool, error) {
	for _, b := range known {
		if b.Status.Open() {
			return false, nil
		}
	}
	theirs, _ := sound(*s.listed, nil, s.reference, false)
	_, ours, _ := p.find(ctx, s)
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	same := compare(ours, theirs).class == ""
	if same {
		p.count(func(r *Report) { r.Agreed++ })
	}
	return same, nil
}

// evidence is a record as it is kept, whatever is in it.
func evidence(r Record) json.RawMessage {
	raw, err := json.Marshal(r)
	if err != nil { // a Detail that is no JSON
		r.Detail = pacht.SafeJSON(r.Detail, pacht.Limits{})
		if raw, err = json.Marshal(r); err != nil {
			return nil
		}
	}
	return pacht.SafeJSON(raw, pacht.Limits{})
}

// jittered spreads what became due together.
func jittered(d time.Duration) time.Duration { return max(clock.Jitter(d), 0) }
