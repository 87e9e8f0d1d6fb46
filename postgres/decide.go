package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/pacht-queue/pacht"
)

// Decide implements pacht.BreakLog.
func (s *Store) Decide(ctx context.Context, d pacht.Decision) (pacht.Break, error) {
	if err := d.Validate(); err != nil {
		return pacht.Break{}, err
	}
	verb := decideVerb(d)
	var done, now []pacht.Break
	err := s.again(ctx, false, verb, func() error {
		done, now = nil, nil
		_, err := s.transact(ctx, s.pool, lockTimeout,
			stmt{sql: s.sql.Decide, args: s.decideArgs(d), each: breaksInto(&done)},
			stmt{sql: s.sql.BreaksOf, args: []any{d.Reference}, each: breaksInto(&now)},
		)
		return err
	})
	switch {
	case err != nil:
		return pacht.Break{}, err
	case len(done) == 0:
		return pacht.Break{}, refusedDecision(d, now)
	}
	return done[0], nil
}

// DecideTx implements pacht.Tx. Whatever the error is, the transaction is broken (R4).
func (t *callerTx) DecideTx(ctx context.Context, d pacht.Decision) error {
	verb := decideVerb(d) + " in a transaction"
	if err := t.decide(ctx, verb, d); err != nil {
		return t.broken(ctx, verb, err)
	}
	return nil
}

func (t *callerTx) decide(ctx context.Context, verb string, d pacht.Decision) error {
	// decideIdle is how long a client may stop while it holds the break locked, before the
	// server ends its session.
	const decideIdle = time.Minute
	if t.store.closed.Load() {
		return fmt.Errorf("%s: %w", verb, pacht.ErrClosed)
	}
	if err := d.Validate(); err != nil {
		return err
	}
	if err := t.boundIdle(ctx, verb, decideIdle); err != nil {
		return err
	}
	var done, now []pacht.Break
	if err := t.on.query(ctx, t.store.sql.Decide, t.store.decideArgs(d), breaksInto(&done)); err != nil {
		return t.failed(verb, err)
	}
	if len(done) == 1 {
		return nil
	}
	if err := t.on.query(ctx, t.store.sql.BreaksOf, []any{d.Reference}, breaksInto(&now)); err != nil {
		return t.failed(verb, err)
	}
	return refusedDecision(d, now)
}

func decideVerb(d pacht.Decision) string {
	return fmt.Sprintf("decide on break %s of %q", d.Class, d.Reference)
}

func (s *Store) decideArgs(d pacht.Decision) []any {
	return []any{
		d.Reference, d.Class, d.Rev, string(d.Status), int64(d.Job), d.AmountMinor, d.Currency,
		string(pacht.SafeJSON(d.Ours, s.limits)), string(pacht.SafeJSON(d.Theirs, s.limits)),
		d.By, d.Reason, d.Wait.Microseconds(), microseconds(d.Since),
	}
}

// refusedDecision says how the break stands, of all those of the reference.
func refusedDecision(d pacht.Decision, now []pacht.Break) error {
	refused := &pacht.BreakError{Break: pacht.Break{Reference: d.Reference, Class: d.Class}, Rev: d.Rev, Asked: d.Status}
	for _, b := range now {
		if b.Class == d.Class {
			refused.Break = b
		}
	}
	return refused
}

// Breaks implements pacht.BreakLog, by three statements: open ones, and those of one reference,
// are found without reading the history.
func (s *Store) Breaks(ctx context.Context, f pacht.BreakFilter) ([]pacht.Break, error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	if f.Reference != "" {
		var now time.Time
		if f.Due {
			var err error
			if now, err = s.Now(ctx); err != nil {
				return nil, err
			}
		}
		all, err := list(ctx, s, "breaks of "+f.Reference, s.sql.BreaksOf, []any{f.Reference}, readBreak)
		return f.Of(all, now), err
	}
	args := []any{string(f.Status), f.Class, f.After.Reference, f.After.Class, int64(f.Limit)}
	if f.Due || f.Status.Open() || f.Status == "" && !f.Ended {
		return list(ctx, s, "open breaks", s.sql.BreaksOpen, append(args, f.Due), readBreak)
	}
	return list(ctx, s, "breaks", s.sql.Breaks, args, readBreak)
}

func breaksInto(all *[]pacht.Break) func(scanner) error {
	return func(scan scanner) error {
		var b pacht.Break
		err := readBreak(&b, scan)
		*all = append(*all, b)
		return err
	}
}

func readBreak(b *pacht.Break, scan scanner) error {
	var ours, theirs string // a database/sql transaction reads them too
	var next *time.Time
	err := scan(&b.Reference, &b.Class, &b.Rev, &b.Status, &b.Job, &b.AmountMinor, &b.Currency, &b.Checks,
		&b.FirstSeen, &b.LastSeen, &next, &ours, &theirs)
	b.FirstSeen, b.LastSeen, b.NextAt = b.FirstSeen.UTC(), b.LastSeen.UTC(), when(next)
	b.Ours, b.Theirs = asDocument(ours), asDocument(theirs)
	return err
}

// Decisions implements pacht.BreakLog.
func (s *Store) Decisions(ctx context.Context, reference string) ([]pacht.DecisionEntry, error) {
	return list(ctx, s, "decisions on "+reference, s.sql.Decisions, []any{reference}, func(d *pacht.DecisionEntry, scan scanner) error {
		var ours, theirs string
		var wait int64
		err := scan(&d.At, &d.Reference, &d.Class, &d.Rev, &d.Status, &d.Job, &d.AmountMinor, &d.Currency, &wait,
			&d.By, &d.Reason, &ours, &theirs)
		d.At, d.Wait = d.At.UTC(), time.Duration(wait)*time.Microsecond
		d.Ours, d.Theirs = asDocument(ours), asDocument(theirs)
		return err
	})
}

// BreakCounts implements pacht.BreakLog.
func (s *Store) BreakCounts(ctx context.Context, healedSince time.Time) ([]pacht.BreakCount, error) {
	return list(ctx, s, "break counts", s.sql.BreakCounts, []any{microseconds(healedSince)}, func(c *pacht.BreakCount, scan scanner) error {
		err := scan(&c.Class, &c.Status, &c.Currency, &c.Breaks, &c.AmountMinor, &c.Oldest)
		c.Oldest, c.Capped = c.Oldest.UTC(), c.AmountMinor == math.MaxInt64
		return err
	})
}

func asDocument(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}
