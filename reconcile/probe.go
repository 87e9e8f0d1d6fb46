package reconcile

import (
	"context"
	"errors"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/effect"
)

// probe asks the probers of effects without an answer, and stores what they find out, before
// anything is healed. What stays without an answer stays in the subject. It says whether all of
// these may be called again under the same key.
func (p *pass) probe(ctx context.Context, s *subject) (again bool, err error) {
	var left []pacht.Effect
	again = len(s.effects) > 0
	for _, e := range s.effects {
		if !e.State.Open() { // ready: it may be called again as it is
			left = append(left, e)
			continue
		}
		found, err := p.askProber(ctx, e)
		if err != nil {
			return false, err
		}
		if found.State != effect.Succeeded && found.State != effect.Failed {
			again = again && found.Again
			left = append(left, e)
			continue
		}
		if !p.dry {
			_, err = p.cfg.Effects.Record(ctx, e, found)
			var otherwise *pacht.EffectError
			if errors.As(err, &otherwise) && !otherwise.Effect.State.Final() {
				p.count(func(r *Report) { r.Lost++ }) // somebody is at it: by the next pass it is settled
				left, again = append(left, otherwise.Effect), false
				continue
			}
			if err != nil && otherwise == nil {
				return false, err
			}
		}
		p.count(func(r *Report) { r.Answered++ })
	}
	s.effects = left
	return again && len(left) > 0, nil
}

func (p *pass) askProber(ctx context.Context, e pacht.Effect) (effect.Finding, error) {
	if p.cfg.Effects == nil {
		return effect.Finding{}, nil
	}
	if err := p.rate.wait(ctx); err != nil {
		return effect.Finding{}, err
	}
	p.count(func(r *Report) { r.LookUps++ })
	bounded, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	found := p.cfg.Effects.Probe(bounded, e, p.now())
	if ctx.Err() != nil {
		return effect.Finding{}, context.Cause(ctx)
	}
	return found, nil
}

// answer writes down what the record says of effects under its own reference which no prober could
// answer: both sides agree on it.
func (p *pass) answer(ctx context.Context, c *matter) error {
	for _, e := range c.effects {
		theirs := c.finding.Theirs
		if e.Reference != c.reference || !theirs.moved() && theirs.State != Failed {
			continue
		}
		a := pacht.EffectAnswer{Job: e.Job, Name: e.Name, Rev: e.Rev, State: pacht.EffectSucceeded, Answer: evidence(theirs)}
		if theirs.State == Failed {
			a.State, a.Answer, a.Error = pacht.EffectFailed, nil, "the provider has it as failed"
		}
		if !p.dry {
			_, err := p.cfg.Store.AnswerEffect(ctx, a)
			var otherwise *pacht.EffectError
			if errors.As(err, &otherwise) {
				p.count(func(r *Report) { r.Lost++ })
				continue
			}
			if err != nil {
				return err
			}
		}
		p.count(func(r *Report) { r.Answered++ })
	}
	return nil
}
