package sqlite

import (
	"context"
	"fmt"

	"github.com/pacht-queue/pacht"
)

// act runs an act by hand and its audit row in one transaction.
func (s *Store) act(ctx context.Context, verb string, act pacht.Act, do func(ctx context.Context, w *work) error) error {
	if err := act.Validate(); err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	return s.write(ctx, verb, false, do)
}

// audit records an act on a job.
func (s *Store) audit(ctx context.Context, w *work, act pacht.Act, what string, id pacht.ID) error {
	_, err := w.ExecContext(ctx, s.sql.AuditAdd, w.now, act.By, what, id, nil, act.Reason)
	return err
}

// Retry implements pacht.Operator.
func (s *Store) Retry(ctx context.Context, id pacht.ID, act pacht.Act) error {
	return s.act(ctx, fmt.Sprintf("retry job %d", id), act, func(ctx context.Context, w *work) error {
		for _, query := range []string{s.sql.RetryParked, s.sql.RetryFinished} {
			done, err := ids(ctx, w, query, id, w.now)
			if err != nil {
				return err
			}
			if len(done) == 1 {
				return s.audit(ctx, w, act, "retry", id)
			}
		}
		return s.refuseAct(ctx, w, pacht.Ref{Job: id}, false, "retry", "only a Stuck, Dead or Cancelled job can be retried")
	})
}

// Cancel implements pacht.Operator.
func (s *Store) Cancel(ctx context.Context, id pacht.ID, act pacht.Act) (status pacht.Status, err error) {
	err = s.act(ctx, fmt.Sprintf("cancel job %d", id), act, func(ctx context.Context, w *work) error {
		closed, err := s.takeAndClose(ctx, w, id, nil, pacht.OutcomeCancelled, pacht.Cancelled, act.By, pacht.Resolution{})
		if err != nil {
			return err
		}
		if closed {
			status = pacht.Cancelled
			return s.audit(ctx, w, act, "cancel", id)
		}
		var token pacht.Token
		asked, err := one(ctx, w, s.sql.CancelRequest, []any{id}, &token)
		if err != nil {
			return err
		}
		if asked {
			status = pacht.Processing
			return s.audit(ctx, w, act, "cancel request", id)
		}
		return s.refuseAct(ctx, w, pacht.Ref{Job: id}, false, "cancel", "a finished job cannot be cancelled")
	})
	if err != nil {
		return "", err
	}
	return status, nil
}

// Release implements pacht.Operator.
func (s *Store) Release(ctx context.Context, ref pacht.Ref, act pacht.Act) (status pacht.Status, err error) {
	defer s.floors.reset() // a released job keeps its place, which is behind them
	err = s.act(ctx, "release "+ref.String(), act, func(ctx context.Context, w *work) error {
		closed, err := s.close(ctx, w, w.now, pacht.Settlement{Ref: ref, Outcome: pacht.OutcomeReleased})
		if err != nil {
			return err
		}
		if closed == nil {
			return s.refuseAct(ctx, w, ref, true, "release", "only a Processing job can be released")
		}
		status = closed.next
		return s.audit(ctx, w, act, "release", ref.Job)
	})
	if err != nil {
		return "", err
	}
	return status, nil
}

// Resolve implements pacht.Operator.
func (s *Store) Resolve(ctx context.Context, ref pacht.Ref, res pacht.Resolution, act pacht.Act) error {
	if err := res.Validate(); err != nil {
		return fmt.Errorf("resolve %s: %w", ref, err)
	}
	return s.act(ctx, "resolve "+ref.String(), act, func(ctx context.Context, w *work) error {
		return s.resolve(ctx, w, ref, res, act)
	})
}

func (s *Store) resolve(ctx context.Context, w *work, ref pacht.Ref, res pacht.Resolution, act pacht.Act) error {
	closed, err := s.takeAndClose(ctx, w, ref.Job, ref.Token, pacht.OutcomeResolved, res.Status, act.By, res)
	if err != nil {
		return err
	}
	if !closed {
		return s.refuseAct(ctx, w, ref, true, "resolve", "only a Pending or Stuck job can be resolved")
	}
	return s.audit(ctx, w, act, "resolve", ref.Job)
}

// takeAndClose closes a vacant or parked lease under the next token (R2).
func (s *Store) takeAndClose(ctx context.Context, w *work, id pacht.ID, token any, outcome pacht.Outcome, next pacht.Status, by string, res pacht.Resolution) (bool, error) {
	var taken pacht.Token
	found, err := one(ctx, w, s.sql.TakeAndClose, []any{
		id, token, w.now, string(outcome), string(next), by,
		text(pacht.SafeText(res.Error, pacht.MaxErrorBytes)), text(pacht.SafeJSON(res.Output, s.limits)),
	}, &taken)
	if err != nil || !found {
		return false, err
	}
	return true, exactlyOne(ctx, w, s.sql.Finish, id, taken-1, false)
}

// refuseAct says why an act does not apply: no such job, another lease by now if the act is
// fenced, or the status.
func (s *Store) refuseAct(ctx context.Context, w *work, ref pacht.Ref, fenced bool, act, allow string) error {
	f, err := s.fate(ctx, w, ref)
	switch {
	case err != nil:
		return err
	case f.lost.Status == "":
		return pacht.ErrNotFound
	case fenced && (ref.Token != f.lost.Token || act == "release" && f.lost.Outcome != ""):
		return &f.lost // says how this very lease was closed: by this release, if its answer was lost (R4)
	}
	return &pacht.StatusError{Job: ref.Job, Status: f.lost.Status, Act: act, Allow: allow}
}

// SetQueue implements pacht.Operator.
func (s *Store) SetQueue(ctx context.Context, queue string, q pacht.QueueSettings, act pacht.Act) error {
	if err := q.Validate(queue); err != nil {
		return fmt.Errorf("set queue: %w", err)
	}
	return s.act(ctx, "set queue "+queue, act, func(ctx context.Context, w *work) error {
		if _, err := w.ExecContext(ctx, s.sql.QueueSet, queue, q.TTL.Milliseconds(), q.MaxAttempts, q.MaxCrashes, string(q.CrashPolicy)); err != nil {
			return err
		}
		_, err := w.ExecContext(ctx, s.sql.AuditAdd, w.now, act.By, "set queue", nil, queue, act.Reason)
		return err
	})
}
