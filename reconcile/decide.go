package reconcile

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pacht-queue/pacht"
)

// matter is one subject with what both sides say of it.
type matter struct {
	subject
	difference
	finding  *Finding
	known    []pacht.Break // of the reference, ended ones too
	again    bool          // its effects may be called again under the same key
	hopeless bool          // Ours.Heal has said that it will never do
	tired    bool          // it was healed in this look, and would be again
}

// of is the break of a class, as it is known.
func of(known []pacht.Break, class Class) pacht.Break {
	for _, b := range known {
		if b.Class == string(class) {
			return b
		}
	}
	return pacht.Break{}
}

// others are the open breaks of other classes: this one takes their place.
func (c *matter) others() (open []pacht.Break) {
	for _, b := range c.known {
		if b.Status.Open() && b.Class != string(c.class) {
			open = append(open, b)
		}
	}
	return open
}

// opened is since when the reference has had an open break, of whatever class; zero if it has none.
// A provider that says now this and now that starts no new age.
func (c *matter) opened() (since time.Time) {
	for _, b := range c.known {
		if b.Status.Open() && (since.IsZero() || b.FirstSeen.Before(since)) {
			since = b.FirstSeen
		}
	}
	return since
}

func (c *matter) withPerson() bool {
	for _, b := range c.known {
		if b.Status == pacht.BreakPerson {
			return true
		}
	}
	return false
}

// seenBefore says that a break was last decided on the very same evidence.
func (c *matter) seenBefore(b pacht.Break) bool {
	return b.Rev > 0 && bytes.Equal(b.Ours, evidence(c.finding.Ours)) && bytes.Equal(b.Theirs, evidence(c.finding.Theirs))
}

// decide does what the policy says. It says whether a transition was committed, after which both
// sides should be looked at again.
func (p *pass) decide(ctx context.Context, c *matter) (healed bool, err error) {
	if c.class == "" {
		return false, p.agree(ctx, c)
	}
	this := of(c.known, c.class)
	if accepted, err := p.accepted(ctx, c, this); accepted || err != nil {
		return false, err
	}
	policy := p.cfg.Policies[c.class]
	if policy.Action == Heal && !c.tired && !c.old {
		healed, err := p.tryHeal(ctx, c)
		if healed || err != nil || c.why == "" {
			return healed, err
		}
	}
	if c.tired && policy.Action == Heal {
		c.why = "healed, and it still differs: " + c.why
	}
	var age time.Duration
	if since := c.opened(); !since.IsZero() {
		age = p.now().Sub(since)
	}
	if policy.Action == Hold || c.hopeless || age >= policy.MaxAge {
		return false, p.hold(ctx, c, this)
	}
	if c.withPerson() {
		p.note(c, "held", func(r *Report) { r.Held++ })
		return false, p.handOver(ctx, c) // it stays there: nothing takes it back to waiting
	}
	return false, p.await(ctx, c, policy.wait(age))
}

// accepted says that a person has ended a break as it is. What was closed because the difference
// had gone, and comes again with the same evidence, was accepted by nobody.
func (p *pass) accepted(ctx context.Context, c *matter, this pacht.Break) (bool, error) {
	if this.Status != pacht.BreakClosed || !c.seenBefore(this) {
		return false, nil
	}
	all, err := p.cfg.Store.Decisions(ctx, c.reference)
	if err != nil {
		return false, fmt.Errorf("who closed it: %w", err)
	}
	by := p.cfg.By
	for _, d := range all {
		if d.Class == this.Class {
			by = d.By
		}
	}
	if by == p.cfg.By {
		return false, nil
	}
	p.note(c, "accepted", func(r *Report) { r.Accepted++ })
	return true, p.endAll(ctx, c, c.others(), "it is now "+string(c.class)+", which a person has accepted")
}

// tryHeal heals. If that came to nothing it puts the reason into the matter; a reason of "" says
// that somebody else was first.
func (p *pass) tryHeal(ctx context.Context, c *matter) (bool, error) {
	if p.dry {
		p.note(c, "healed", func(r *Report) { r.Healed++ })
		c.why = ""
		return false, nil
	}
	failed, lost, err := p.heal(ctx, c)
	switch {
	case err != nil:
		return false, err
	case lost:
		p.note(c, "lost", func(r *Report) { r.Lost++ })
		c.why = ""
		return false, nil
	case failed != "":
		c.why = failed + " (" + c.why + ")"
		return false, nil
	}
	p.note(c, "healed", func(r *Report) {
		r.Healed++
		if c.finding.Job != nil {
			r.Resolved++
		}
	})
	return true, nil
}

// hold gives it to a person, once for the same evidence, and once more if the job is known only now.
func (p *pass) hold(ctx context.Context, c *matter, this pacht.Break) error {
	d := p.decision(c, pacht.BreakPerson)
	if this.Status != pacht.BreakPerson || !c.seenBefore(this) || this.Job == 0 && d.Job != 0 {
		if done, err := p.write(ctx, c, d); !done || err != nil {
			return err
		}
	}
	p.note(c, "held", func(r *Report) { r.Held++ })
	return p.replace(ctx, c)
}

// await asks again later. A parked job that may safely go on is put back.
func (p *pass) await(ctx context.Context, c *matter, wait time.Duration) error {
	// A record that is settled here needs no call any more.
	ours := c.finding.Ours.State
	retry := c.class == MissingThere && c.job != nil && c.again && (ours == Pending || ours == NotFound)
	if retry {
		c.why += "; its effects may be called again under the same key, so the job goes on"
	}
	d := p.decision(c, pacht.BreakWaiting)
	d.Wait = jittered(wait)
	if done, err := p.write(ctx, c, d); !done || err != nil {
		return err
	}
	p.note(c, "waiting", func(r *Report) { r.Waiting++ })
	if err := p.replace(ctx, c); err != nil {
		return err
	}
	if retry && !p.dry {
		err := p.cfg.Store.Retry(ctx, c.job.ID, pacht.Act{By: p.cfg.By, Reason: d.Reason})
		switch {
		case tookJob(err) || errors.Is(err, pacht.ErrNotFound):
			p.count(func(r *Report) { r.Lost++ })
		case err != nil:
			return err
		default:
			p.count(func(r *Report) { r.Retried++ })
		}
	}
	return nil
}

// replace closes the open breaks whose place this one has taken.
func (p *pass) replace(ctx context.Context, c *matter) error {
	return p.endAll(ctx, c, c.others(), "it is now "+string(c.class))
}

// handOver closes what waits beside a break that is with a person: else it would be due for ever,
// and nobody would decide it. If the person's does not name its job yet, it does now.
func (p *pass) handOver(ctx context.Context, c *matter) error {
	var waiting []pacht.Break
	var with string
	for _, b := range c.known {
		switch b.Status {
		case pacht.BreakWaiting:
			waiting = append(waiting, b)
		case pacht.BreakPerson:
			with = b.Class
			if b.Job != 0 || c.job == nil {
				continue
			}
			d := pacht.Decision{
				Reference: b.Reference, Class: b.Class, Rev: b.Rev, Status: b.Status, Job: c.job.ID, AmountMinor: b.AmountMinor,
				Currency: b.Currency, Ours: b.Ours, Theirs: b.Theirs, By: p.cfg.By, Reason: "its job is known now",
			}
			if _, err := p.write(ctx, c, d); err != nil {
				return err
			}
		}
	}
	return p.endAll(ctx, c, waiting, "the reference is with a person, as "+with)
}

// endAll ends breaks of this reference, all for one reason.
func (p *pass) endAll(ctx context.Context, c *matter, over []pacht.Break, why string) error {
	for _, b := range over {
		if _, err := p.write(ctx, c, p.end(c, b, why)); err != nil {
			return err
		}
	}
	return nil
}

// agree closes what was open about a reference on which both sides agree.
func (p *pass) agree(ctx context.Context, c *matter) error {
	p.count(func(r *Report) { r.Agreed++ })
	for _, b := range c.others() {
		done, err := p.write(ctx, c, p.end(c, b, agreement(c.finding)))
		if err != nil {
			return err
		}
		if done {
			p.count(func(r *Report) { r.Closed++ })
		}
	}
	if c.finding.Ours.State == NotFound && c.finding.Theirs.State == NotFound {
		if c.job != nil {
			p.nobodys(c.job.ID)
		}
		return nil
	}
	if err := p.answer(ctx, c); err != nil {
		return err
	}
	if c.job == nil {
		return nil
	}
	return p.resolve(ctx, c)
}

// decision is what is written about the matter itself.
func (p *pass) decision(c *matter, status pacht.BreakStatus) pacht.Decision {
	d := pacht.Decision{
		Reference: c.reference, Class: string(c.class), Rev: of(c.known, c.class).Rev, Status: status,
		AmountMinor: max(c.risk.Minor, 0), Ours: evidence(c.finding.Ours), Theirs: evidence(c.finding.Theirs),
		By: p.cfg.By, Reason: pacht.SafeText(c.why, pacht.MaxReasonBytes), Since: c.opened(),
	}
	if c.risk.Validate() == nil {
		d.Currency = string(c.risk.Currency)
	}
	switch {
	case c.job != nil:
		d.Job = c.job.ID
	case len(c.effects) > 0:
		d.Job = c.effects[0].Job
	default: // a look at a list, or a webhook, knows of none: what was known stays
		d.Job = of(c.known, c.class).Job
		for _, b := range c.others() {
			d.Job = cmp.Or(d.Job, b.Job)
		}
	}
	return d
}

// end is what is written about another break of the same reference that is over.
func (p *pass) end(c *matter, b pacht.Break, why string) pacht.Decision {
	return pacht.Decision{
		Reference: b.Reference, Class: b.Class, Rev: b.Rev, Status: pacht.BreakClosed, Job: b.Job,
		AmountMinor: b.AmountMinor, Currency: b.Currency, Ours: evidence(c.finding.Ours), Theirs: evidence(c.finding.Theirs),
		By: p.cfg.By, Reason: why,
	}
}

// write makes a decision. False: somebody else was first, or it is a dry run's.
func (p *pass) write(ctx context.Context, c *matter, d pacht.Decision) (bool, error) {
	if p.dry {
		return true, nil
	}
	_, err := p.cfg.Store.Decide(ctx, d)
	var refused *pacht.BreakError
	if errors.As(err, &refused) {
		p.note(c, "lost", func(r *Report) { r.Lost++ })
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", c.class, err)
	}
	return true, nil
}

// note counts a difference and lists it.
func (p *pass) note(c *matter, done string, add func(*Report)) {
	p.count(func(r *Report) {
		add(r)
		if len(r.Findings) < mostFindings {
			r.Findings = append(r.Findings, Noted{c.reference, c.class, done, c.why, c.finding.Ours, c.finding.Theirs})
		}
	})
}

// nobodys keeps a parked job that is about nothing that either side knows.
func (p *pass) nobodys(id pacht.ID) {
	p.count(func(r *Report) {
		if r.NobodysMany++; len(r.Nobodys) < mostProblems {
			r.Nobodys = append(r.Nobodys, id)
		}
	})
}
