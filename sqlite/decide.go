package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/pacht-queue/pacht"
)

// Decide implements pacht.BreakLog.
func (s *Store) Decide(ctx context.Context, d pacht.Decision) (after pacht.Break, err error) {
	verb := decideVerb(d)
	if err := d.Validate(); err != nil {
		return pacht.Break{}, fmt.Errorf("%s: %w", verb, err)
	}
	err = s.write(ctx, verb, false, func(ctx context.Context, w *work) error {
		after, err = s.decide(ctx, w, w.now, d)
		return err
	})
	if err != nil {
		return pacht.Break{}, err
	}
	return after, nil
}

// DecideTx implements pacht.Tx. Whatever it refuses breaks the transaction, as SettleTx does.
func (t *txVerbs) DecideTx(ctx context.Context, d pacht.Decision) error {
	if err := t.decide(ctx, d); err != nil {
		return errors.Join(err, t.breakTx())
	}
	return nil
}

func (t *txVerbs) decide(ctx context.Context, d pacht.Decision) error {
	verb := decideVerb(d)
	if err := d.Validate(); err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	if err := t.store.fits(ctx); err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	if err := t.open(ctx); err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	now, err := t.now(ctx)
	if err == nil {
		_, err = t.store.decide(ctx, t.tx, now, d)
	}
	var refused *pacht.BreakError
	if err != nil && !errors.As(err, &refused) {
		return txError(verb, err)
	}
	return err
}

func decideVerb(d pacht.Decision) string {
	return fmt.Sprintf("decide on break %s of %q", d.Class, d.Reference)
}

// decide changes the break and appends the decision, in the caller's transaction.
func (s *Store) decide(ctx context.Context, r runner, now int64, d pacht.Decision) (pacht.Break, error) {
	var next any
	if d.Status == pacht.BreakWaiting {
		next = now + d.Wait.Milliseconds()
	}
	var job any
	if d.Job != 0 {
		job = d.Job
	}
	done, err := listBreaks(ctx, r, s.sql.Decide, d.Reference, d.Class, d.Rev, string(d.Status), job, d.AmountMinor,
		text(d.Currency), text(pacht.SafeJSON(d.Ours, s.limits)), text(pacht.SafeJSON(d.Theirs, s.limits)), now, next, millis(d.Since))
	if err != nil {
		return pacht.Break{}, err
	}
	if len(done) == 1 {
		_, err = r.ExecContext(ctx, s.sql.DecideNote, d.Reference, d.Class, d.Wait.Milliseconds(), d.By, d.Reason)
		return done[0], err
	}
	refused := &pacht.BreakError{Break: pacht.Break{Reference: d.Reference, Class: d.Class}, Rev: d.Rev, Asked: d.Status}
	all, err := listBreaks(ctx, r, s.sql.BreaksOf, d.Reference)
	if err != nil {
		return pacht.Break{}, err
	}
	for _, b := range all {
		if b.Class == d.Class {
			refused.Break = b
		}
	}
	return pacht.Break{}, refused
}

// Breaks implements pacht.BreakLog, by three statements: open ones, and those of one reference,
// are found without reading the history.
func (s *Store) Breaks(ctx context.Context, f pacht.BreakFilter) ([]pacht.Break, error) {
	if err := f.Validate(); err != nil {
		return nil, fmt.Errorf("list breaks: %w", err)
	}
	if err := s.fits(ctx); err != nil {
		return nil, fmt.Errorf("list breaks: %w", err)
	}
	query := s.sql.Breaks
	args := []any{string(f.Status), f.Class, f.After.Reference, f.After.Class, f.Limit}
	switch {
	case f.Reference != "":
		query, args = s.sql.BreaksOf, []any{f.Reference}
	case f.Due || f.Status.Open() || f.Status == "" && !f.Ended:
		query, args = s.sql.BreaksOpen, append(args, f.Due)
	}
	all, err := listBreaks(ctx, s.read, query, args...)
	if err != nil {
		return nil, fmt.Errorf("list breaks: %w", err)
	}
	if f.Reference == "" {
		return all, nil
	}
	var now time.Time
	if f.Due {
		now, err = s.Now(ctx)
	}
	return f.Of(all, now), err
}

func listBreaks(ctx context.Context, r runner, query string, args ...any) (all []pacht.Break, err error) {
	err = each(ctx, r, query, args, func(rows *sql.Rows) error {
		var b pacht.Break
		var job, next sql.NullInt64
		var currency, ours, theirs sql.NullString
		var first, last int64
		if err := rows.Scan(&b.Reference, &b.Class, &b.Rev, &b.Status, &job, &b.AmountMinor, &currency, &b.Checks,
			&first, &last, &next, &ours, &theirs); err != nil {
			return err
		}
		b.Job, b.Currency = pacht.ID(job.Int64), currency.String
		b.FirstSeen, b.LastSeen, b.NextAt = at(first), at(last), atNull(next)
		b.Ours, b.Theirs = document(ours), document(theirs)
		all = append(all, b)
		return nil
	})
	return all, err
}

// Decisions implements pacht.BreakLog.
func (s *Store) Decisions(ctx context.Context, reference string) (all []pacht.DecisionEntry, err error) {
	err = s.reading(ctx, "decisions on "+reference, s.sql.Decisions, []any{reference}, func(rows *sql.Rows) error {
		var d pacht.DecisionEntry
		var job sql.NullInt64
		var currency, ours, theirs sql.NullString
		var ms, wait int64
		if err := rows.Scan(&ms, &d.Reference, &d.Class, &d.Rev, &d.Status, &job, &d.AmountMinor, &currency, &wait,
			&d.By, &d.Reason, &ours, &theirs); err != nil {
			return err
		}
		d.At, d.Job, d.Currency, d.Wait = at(ms), pacht.ID(job.Int64), currency.String, duration(wait)
		d.Ours, d.Theirs = document(ours), document(theirs)
		all = append(all, d)
		return nil
	})
	return all, err
}

// BreakCounts implements pacht.BreakLog.
func (s *Store) BreakCounts(ctx context.Context, healedSince time.Time) (all []pacht.BreakCount, err error) {
	since := int64(0)
	if !healedSince.IsZero() {
		since = healedSince.UnixMilli()
	}
	err = s.reading(ctx, "break counts", s.sql.BreakCounts, []any{since}, func(rows *sql.Rows) error {
		var c pacht.BreakCount
		var billions, rest, oldest int64
		if err := rows.Scan(&c.Class, &c.Status, &c.Currency, &c.Breaks, &billions, &rest, &oldest); err != nil {
			return err
		}
		c.AmountMinor, c.Oldest = whole(billions, rest), at(oldest)
		c.Capped = c.AmountMinor == math.MaxInt64
		all = append(all, c)
		return nil
	})
	return all, err
}

// whole puts a sum together that came in billions and the rest; the largest int64 if it is more.
func whole(billions, rest int64) int64 {
	const billion, most = 1_000_000_000, 1<<63 - 1
	billions += rest / billion
	rest %= billion
	if billions > most/billion || billions == most/billion && rest > most%billion {
		return most
	}
	return billions*billion + rest
}
