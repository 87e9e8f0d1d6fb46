package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/failpoint"
)

// Finding is one difference, in the hands of Ours.Heal.
type Finding struct {
	Class  Class
	Ours   Record
	Theirs Record
	Job    *pacht.JobInfo // the parked job that it is about, if there is one; CommitTx closes it

	decisions []pacht.Decision // in the order of their classes, so that two healers cannot deadlock
	act       pacht.Act
	written   bool
}

// CommitTx writes the decision down and closes the parked job, if there is one, in the caller's
// transaction. It is fenced: of two that heal at once one wins, and the other's transaction is
// broken, so that nothing of it can be committed. Make it the last statement before the commit.
// If the whole transaction is repeated, it may be called again.
func (f *Finding) CommitTx(ctx context.Context, tx pacht.Tx) error {
	f.written = false
	if len(f.decisions) == 0 {
		// A decision that says nothing is refused, and breaks the transaction.
		return errors.Join(errors.New("reconcile: this finding was not made by a reconciler for a heal"), tx.DecideTx(ctx, pacht.Decision{}))
	}
	if f.Job != nil {
		if err := tx.ResolveTx(ctx, f.Job.Ref(), resolution(f.Theirs), f.act); err != nil {
			return err
		}
	}
	for _, d := range f.decisions {
		if err := tx.DecideTx(ctx, d); err != nil {
			return err
		}
	}
	f.written = true
	return nil
}

// resolution is how a parked job ends when the provider has this record.
func resolution(r Record) pacht.Resolution {
	if r.moved() {
		return pacht.Resolution{Status: pacht.Completed, Output: evidence(r)}
	}
	return pacht.Resolution{Status: pacht.Dead, Output: evidence(r), Error: "the provider has it as " + string(r.State)}
}

// heal lets the user's transition run, and looks at what is committed. It says why it came to
// nothing, if it did; lost says that somebody else has decided meanwhile.
func (p *pass) heal(ctx context.Context, c *matter) (failed string, lost bool, err error) {
	f := c.finding
	f.act = pacht.Act{By: p.cfg.By, Reason: c.why}
	if c.job != nil && c.untold() == "" {
		f.Job = c.job
	}
	f.decisions = []pacht.Decision{p.decision(c, pacht.BreakHealed)}
	for _, b := range c.others() {
		f.decisions = append(f.decisions, p.end(c, b, "healed as "+string(c.class)))
	}
	slices.SortFunc(f.decisions, func(a, b pacht.Decision) int { return strings.Compare(a.Class, b.Class) })
	_, healErr := guarded(ctx, p.cfg.Timeout, "Ours.Heal", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, p.cfg.Ours.Heal(ctx, f)
	})
	failpoint.Here("reconcile.healed") // the user's transaction is over, committed or not
	if ctx.Err() != nil {
		return "", false, context.Cause(ctx)
	}
	after, err := p.known(ctx, c.reference)
	if err != nil {
		return "", false, err
	}
	decided := of(after, c.class).Rev > of(c.known, c.class).Rev
	switch {
	case decided && f.written && healErr == nil:
		return "", false, nil
	case decided, tookJob(healErr):
		return "", true, nil
	case healErr != nil:
		c.hopeless = errors.Is(healErr, ErrHold)
		return fmt.Sprintf("Ours.Heal failed: %v", healErr), false, nil
	case !f.written:
		return "Ours.Heal returned without Finding.CommitTx", false, nil
	}
	return "Ours.Heal returned, and its transaction was not committed", false, nil
}

// tookJob says that somebody else has closed or taken the parked job.
func tookJob(err error) bool {
	var refused *pacht.BreakError
	return errors.Is(err, pacht.ErrLeaseLost) || errors.Is(err, pacht.ErrWrongStatus) || errors.As(err, &refused)
}

// resolve closes a parked job on which both sides agree already.
func (p *pass) resolve(ctx context.Context, c *matter) error {
	res := resolution(c.finding.Theirs)
	if c.finding.Ours.State == Failed {
		res.Status, res.Error = pacht.Dead, "both sides have it as failed"
	}
	if !p.dry {
		act := pacht.Act{By: p.cfg.By, Reason: agreement(c.finding)}
		err := p.cfg.Store.Resolve(ctx, c.job.Ref(), res, act)
		if tookJob(err) || errors.Is(err, pacht.ErrNotFound) {
			p.count(func(r *Report) { r.Lost++ })
			return nil
		}
		if err != nil {
			return err
		}
	}
	p.count(func(r *Report) { r.Resolved++ })
	return nil
}

func agreement(f *Finding) string {
	return fmt.Sprintf("both sides agree: we have it as %s, the provider as %s", f.Ours.State, f.Theirs.State)
}
