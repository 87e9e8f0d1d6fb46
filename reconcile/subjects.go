package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pacht-queue/pacht"
)

// subject is something to look at.
type subject struct {
	reference string
	job       *pacht.JobInfo // parked, about this reference
	effects   []pacht.Effect // of the job, without a final answer
	listed    *Record        // what the provider's list says
	old       bool           // it said so when the break was last decided; nothing is healed on that
}

// kindOfPasses is the kind of the reconciler's own jobs.
const kindOfPasses = "pacht.reconcile"

// parked lists the jobs that are set aside, with their effects.
func (p *pass) parked(ctx context.Context) error {
	for before := pacht.ID(0); ; {
		jobs, err := p.cfg.Store.Jobs(ctx, pacht.Filter{Status: pacht.Stuck, Before: before, Limit: pageSize})
		if err != nil {
			return fmt.Errorf("list parked jobs: %w", err)
		}
		var page []subject
		for _, j := range jobs {
			before = j.ID
			p.jobs[j.ID] = true
			if j.Kind == kindOfPasses {
				p.buryPass(ctx, j)
				continue
			}
			s, err := p.ofJob(ctx, j.ID)
			if err != nil {
				p.problem("job "+j.ID.String(), err)
				continue
			}
			if s.reference == "" {
				p.nobodys(j.ID)
				continue
			}
			p.seen[s.reference] = true
			page = append(page, s)
		}
		p.all(ctx, page)
		if len(jobs) < pageSize || ctx.Err() != nil {
			return nil
		}
	}
}

// ofJob reads a job and its effects, and what it is about. The job is part of the subject if
// it is parked now.
func (p *pass) ofJob(ctx context.Context, id pacht.ID) (s subject, err error) {
	job, err := p.cfg.Store.Job(ctx, id)
	if err != nil {
		return s, err
	}
	effects, err := p.cfg.Store.Effects(ctx, id)
	if err != nil {
		return s, err
	}
	for _, e := range effects {
		if !e.State.Final() {
			s.effects = append(s.effects, e)
		}
	}
	s.reference, err = guarded(ctx, p.cfg.Timeout, "Ours.Reference", func(context.Context) (string, error) {
		return p.cfg.Ours.Reference(job), nil
	})
	if s.reference == "" && err == nil && len(s.effects) > 0 {
		s.reference = s.effects[0].Reference
	}
	if job.Status == pacht.Stuck {
		s.job = &job
	}
	return s, err
}

// effects lists those that may have happened and nobody knows, of jobs that are finished. The
// ones of parked jobs came with these; an unfinished job's own next attempt asks.
func (p *pass) effects(ctx context.Context) error {
	for after := (pacht.EffectCursor{}); ; {
		open, err := p.cfg.Store.OpenEffects(ctx, after, pageSize)
		if err != nil {
			return fmt.Errorf("list effects without an answer: %w", err)
		}
		var page []subject
		for _, e := range open {
			after = pacht.EffectCursor{Job: e.Job, Name: e.Name}
			if p.jobs[e.Job] {
				continue
			}
			p.jobs[e.Job] = true
			s, err := p.ofFinished(ctx, e)
			if err != nil {
				p.problem(e.Reference, err)
				continue
			}
			if s.reference != "" && !p.seen[s.reference] {
				p.seen[s.reference] = true
				page = append(page, s)
			}
		}
		p.all(ctx, page)
		if len(open) < pageSize || ctx.Err() != nil {
			return nil
		}
	}
}

// ofFinished is what an effect is about; without a reference if its job will ask by itself.
func (p *pass) ofFinished(ctx context.Context, e pacht.Effect) (subject, error) {
	job, err := p.cfg.Store.Job(ctx, e.Job)
	if err == nil && !job.Status.Finished() {
		return subject{}, nil
	}
	if errors.Is(err, pacht.ErrNotFound) { // its job was pruned; the effect is still without an answer
		return subject{reference: e.Reference, effects: []pacht.Effect{e}}, nil
	}
	if err != nil {
		return subject{}, err
	}
	return p.ofJob(ctx, e.Job)
}

// pending lists our records that have been pending for too long.
func (p *pass) pending(ctx context.Context) error {
	return p.ours(ctx, "Ours.Pending", func(ctx context.Context, after string) ([]Record, error) {
		return p.cfg.Ours.Pending(ctx, p.cfg.Grace, after, pageSize)
	})
}

// reversible lists our records whose success is not the end.
func (p *pass) reversible(ctx context.Context) error {
	return p.ours(ctx, "Ours.Reversible", func(ctx context.Context, after string) ([]Record, error) {
		return p.cfg.Ours.Reversible(ctx, after, pageSize)
	})
}

func (p *pass) ours(ctx context.Context, what string, list func(ctx context.Context, after string) ([]Record, error)) error {
	var walked = map[string]bool{}
	for after := ""; ; {
		rows, err := guarded(ctx, p.cfg.Timeout, what, func(ctx context.Context) ([]Record, error) { return list(ctx, after) })
		if err != nil {
			return fmt.Errorf("%s after %.80q: %w", what, after, err)
		}
		var page []subject
		moved := false
		for _, row := range rows {
			after = row.Reference
			moved = moved || !walked[after]
			walked[after] = true
			if !p.seen[after] {
				p.seen[after] = true
				page = append(page, subject{reference: after})
			}
		}
		p.all(ctx, page)
		switch {
		case len(rows) < pageSize || ctx.Err() != nil:
			return nil
		case !moved:
			return fmt.Errorf("%s does not go on after %.80q", what, after)
		}
	}
}

// due lists breaks that are to be asked again.
func (p *pass) due(ctx context.Context) error {
	return p.breaks(ctx, pacht.BreakFilter{Due: true, Limit: pageSize})
}

// withPersons lists breaks that wait for a person: they may have gone by themselves.
func (p *pass) withPersons(ctx context.Context) error {
	return p.breaks(ctx, pacht.BreakFilter{Status: pacht.BreakPerson, Limit: pageSize})
}

func (p *pass) breaks(ctx context.Context, f pacht.BreakFilter) error {
	for {
		list, err := p.cfg.Store.Breaks(ctx, f)
		if err != nil {
			return fmt.Errorf("list breaks: %w", err)
		}
		var page []subject
		for _, b := range list {
			f.After = pacht.BreakCursor{Reference: b.Reference, Class: b.Class}
			// What the provider has without a reference of ours cannot be looked up: the list, or a
			// person, says what becomes of it.
			// It may have left the list since: one that waits goes by what was seen last, to its age's end.
			var theirs Record
			foreign := json.Unmarshal(b.Theirs, &theirs) == nil && theirs.foreign()
			if p.foreignClass(b) || foreign && !f.Due {
				continue
			}
			if p.seen[b.Reference] {
				continue
			}
			p.seen[b.Reference] = true
			if foreign {
				page = append(page, subject{reference: b.Reference, listed: &theirs, old: true})
				continue
			}
			s, err := p.ofBreak(ctx, b)
			if err != nil {
				p.problem(b.Reference, err)
				continue
			}
			page = append(page, s)
		}
		p.all(ctx, page)
		if len(list) < f.Limit || ctx.Err() != nil {
			return nil
		}
	}
}

// ofBreak is what a break is about, with its job: what the records agree on may still be open there.
func (p *pass) ofBreak(ctx context.Context, b pacht.Break) (subject, error) {
	if b.Job != 0 {
		s, err := p.ofJob(ctx, b.Job)
		if err == nil && s.reference == b.Reference || err != nil && !errors.Is(err, pacht.ErrNotFound) {
			return s, err
		}
	}
	return subject{reference: b.Reference}, nil
}

// listed walks through the provider's list. A page that shifts while it is read is no harm:
// each record is looked up by itself before anything is concluded, and the next walk overlaps. A
// reference that stands in it again may be another attempt, of which the first row says nothing:
// it is looked up.
func (p *pass) listed(ctx context.Context) error {
	since := p.begun.Add(-p.cfg.Window)
	walked, rows := map[string]bool{}, map[string]int{}
	for cursor := ""; ; {
		walked[cursor] = true
		type answer struct {
			page []Record
			next string
		}
		if err := p.rate.wait(ctx); err != nil {
			return nil // ctx has ended, which the pass says itself
		}
		got, err := guarded(ctx, p.cfg.Timeout, "Lister.List", func(ctx context.Context) (answer, error) {
			page, next, err := p.lister.List(ctx, since, cursor)
			return answer{page, next}, err
		})
		if err != nil {
			return fmt.Errorf("the provider's list since %s, at %.80q: %w", since.Format("2006-01-02T15:04:05Z"), cursor, err)
		}
		var page []subject
		for _, row := range got.page {
			s, ok := p.ofListed(row)
			if !ok || p.seen[s.reference] {
				continue
			}
			if rows[s.reference]++; rows[s.reference] > 1 {
				s.listed = nil
			}
			p.seen[s.reference] = s.listed == nil || s.foreign()
			page = append(page, s)
		}
		p.all(ctx, page)
		switch {
		case got.next == "" || ctx.Err() != nil:
			return nil
		case walked[got.next]:
			return fmt.Errorf("the provider's list does not go on at %.80q: it leads back to %.80q", cursor, got.next)
		}
		cursor = got.next
	}
}
