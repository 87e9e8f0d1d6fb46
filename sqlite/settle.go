package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/pacht-queue/pacht"
)

// Settle implements pacht.Leaser. A batch that SQLite refuses because of one row is repeated
// row by row, so that only that row fails (R12).
func (s *Store) Settle(ctx context.Context, batch []pacht.Settlement) ([]pacht.Settled, error) {
	if err := checkBatch("settle", len(batch)); err != nil {
		return nil, err
	}
	if len(batch) == 0 {
		return nil, nil
	}
	answers := make([]pacht.Settled, len(batch))
	defer s.putBack(batch...)
	err := s.write(ctx, "settle", false, func(ctx context.Context, w *work) error {
		closed, err := s.settleDone(ctx, w, batch)
		if err != nil {
			return err
		}
		for i, b := range batch {
			if late, ok := closed[b.Ref.Job]; ok {
				answers[i] = pacht.Settled{Ref: b.Ref, Status: pacht.Completed, Late: late}
				continue
			}
			if answers[i], err = s.settle(ctx, w, w.now, b); err != nil {
				return fmt.Errorf("%s: %w", b.Ref, err)
			}
		}
		return nil
	})
	if err == nil {
		return answers, nil
	}
	if len(batch) == 1 || !isConstraint(err) {
		return nil, err
	}
	for i, b := range batch {
		one, err := s.Settle(ctx, []pacht.Settlement{b})
		switch {
		case err == nil:
			answers[i] = one[0]
		case isConstraint(err):
			answers[i] = pacht.Settled{Ref: b.Ref, Err: err}
		default:
			return nil, err
		}
	}
	return answers, nil
}

// settle closes one lease, or says why not. The caller holds the write lock.
func (s *Store) settle(ctx context.Context, r runner, now int64, b pacht.Settlement) (pacht.Settled, error) {
	answer := pacht.Settled{Ref: b.Ref}
	if answer.Err = b.Validate(); answer.Err != nil {
		return answer, nil
	}
	closed, err := s.close(ctx, r, now, b)
	if err != nil {
		return answer, err
	}
	if closed != nil {
		answer.Status, answer.Late = closed.next, closed.late
		return answer, nil
	}
	fate, err := s.fate(ctx, r, b.Ref)
	if err != nil {
		return answer, err
	}
	if fate.outcome == b.Outcome {
		answer.Status, answer.Late, answer.Repeated = fate.next, fate.late, true
		return answer, nil
	}
	answer.Err = &fate.lost
	_, err = r.ExecContext(ctx, s.sql.Report, b.Ref.Job, b.Ref.Token, now, string(b.Outcome), text(pacht.SafeText(b.Error, pacht.MaxErrorBytes)))
	return answer, err
}

// closing is how a lease was closed just now.
type closing struct {
	next  pacht.Status
	runAt sql.NullInt64
	late  bool
}

// close writes the ledger row of a held lease and then changes or ends the lease; nil if it
// is not ours any more (R3, R4).
func (s *Store) close(ctx context.Context, r runner, now int64, b pacht.Settlement) (*closing, error) {
	var c closing
	found, err := one(ctx, r, s.sql.Settle, []any{
		b.Ref.Job, b.Ref.Token, now, string(b.Outcome), b.Permanent, b.GiveBack, b.Delay.Milliseconds(),
		text(pacht.SafeText(b.Error, pacht.MaxErrorBytes)), text(pacht.SafeJSON(b.Output, s.limits)),
	}, &c.next, &c.runAt, &c.late)
	if err != nil || !found {
		return nil, err
	}
	return &c, s.leave(ctx, r, b.Ref, c, b.Outcome, b.GiveBack)
}

// leave changes or ends a held lease whose ledger row was just written.
func (s *Store) leave(ctx context.Context, r runner, ref pacht.Ref, c closing, outcome pacht.Outcome, giveBack bool) error {
	if c.next.Finished() {
		return exactlyOne(ctx, r, s.sql.Finish, ref.Job, ref.Token, true)
	}
	return exactlyOne(ctx, r, s.sql.Vacate, ref.Job, ref.Token, string(c.next), c.runAt, string(outcome), giveBack)
}

// exactlyOne runs the second statement of a close: the row stood there in the first, and the
// write lock has been held since.
func exactlyOne(ctx context.Context, r runner, query string, args ...any) error {
	n, err := changed(ctx, r, query, args...)
	if err == nil && n != 1 {
		err = fmt.Errorf("the lease row changed under the write lock: %d rows", n)
	}
	return err
}

// fate is what became of a lease that is not held any more.
type fate struct {
	lost    pacht.LeaseLostError
	outcome pacht.Outcome // of this very lease, "" if the ledger does not know it
	next    pacht.Status  // after this very lease
	late    bool
}

func (s *Store) fate(ctx context.Context, r runner, ref pacht.Ref) (f fate, err error) {
	f.lost.Ref = ref
	var until sql.NullInt64
	var outcome, next sql.NullString
	var late sql.NullBool
	_, err = one(ctx, r, s.sql.Lost, []any{ref.Job, ref.Token},
		&f.lost.Status, &f.lost.Token, &f.lost.Owner, &until, &outcome, &next, &late)
	f.lost.Until = atNull(until)
	f.outcome, f.next, f.late = pacht.Outcome(outcome.String), pacht.Status(next.String), late.Bool
	f.lost.Outcome = f.outcome
	return f, err
}

// refusal is the error of a write on a lease that is not held any more.
func (s *Store) refusal(ctx context.Context, r runner, ref pacht.Ref) error {
	f, err := s.fate(ctx, r, ref)
	if err != nil {
		return errors.Join(pacht.ErrLeaseLost, err)
	}
	return &f.lost
}
