package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
)

// longPass is how many times its own duration a pass is kept away from the next one.
const longPass = 20

// Expire implements pacht.Expirer. The look for expired leases has no index and is made
// before the write lock is taken; the turn, each close and the stamp are one transaction, and
// each close is fenced by the token that the look saw and by lease_until once more (R3, R6).
func (s *Store) Expire(ctx context.Context, req pacht.ExpireRequest) (pass pacht.Pass, err error) {
	if err := req.Validate(); err != nil {
		return pass, fmt.Errorf("expire: %w", err)
	}
	if err := s.fits(ctx); err != nil {
		return pass, fmt.Errorf("expire: %w", err)
	}
	start := clock.Now()
	now, err := s.Now(ctx)
	if err != nil {
		return pass, fmt.Errorf("expire: %w", err)
	}
	if !req.Force {
		// Most calls end here, without asking for the write lock.
		due, nextIn, err := s.passDue(ctx, s.read, now.UnixMilli(), req.Period)
		if err != nil || !due {
			return pacht.Pass{Now: now, NextIn: nextIn}, err
		}
	}
	found, err := s.expired(ctx, now.UnixMilli(), req)
	if err != nil {
		return pass, fmt.Errorf("expire: %w", err)
	}
	pass, err = s.pass(ctx, req, found, start, false)
	if isConstraint(err) {
		// One row that was changed by hand to what no rule allows must not stop the others (R12).
		pass, err = s.pass(ctx, req, found, start, true)
	}
	return pass, err
}

// sighting is what the look saw.
type sighting struct {
	refs     []pacht.Ref
	earliest sql.NullInt64 // the first lease_until that is not over
}

func (s *Store) expired(ctx context.Context, now int64, req pacht.ExpireRequest) (found sighting, err error) {
	err = each(ctx, s.read, s.sql.Expired, []any{now, req.After, req.Limit}, func(rows *sql.Rows) error {
		var ref pacht.Ref
		if err := rows.Scan(&ref.Job, &ref.Token); err != nil {
			return err
		}
		found.refs = append(found.refs, ref)
		return nil
	})
	if err == nil {
		_, err = one(ctx, s.read, s.sql.ExpiredNext, []any{now}, &found.earliest)
	}
	return found, err
}

func (s *Store) passDue(ctx context.Context, r runner, now int64, period time.Duration) (due bool, nextIn time.Duration, err error) {
	var ms int64
	if _, err := one(ctx, r, s.sql.WatchDue, []any{now, period.Milliseconds()}, &due, &ms); err != nil {
		return false, 0, fmt.Errorf("expire: whether a pass is due: %w", err)
	}
	return due, min(max(duration(ms), time.Millisecond), period), nil
}

// pass takes the turn, closes what was seen, and stamps.
func (s *Store) pass(ctx context.Context, req pacht.ExpireRequest, found sighting, start clock.Instant, alone bool) (pass pacht.Pass, err error) {
	err = s.write(ctx, "expire", false, func(ctx context.Context, w *work) error {
		pass = pacht.Pass{Now: at(w.now)}
		if !req.Force {
			due, nextIn, err := s.passDue(ctx, w, w.now, req.Period)
			if err != nil || !due {
				pass.NextIn = nextIn
				return err
			}
		}
		pass.Turn = true
		for _, ref := range found.refs {
			err := s.expireOne(ctx, w, ref, &pass, alone)
			if err != nil {
				return fmt.Errorf("%s: %w", ref, err)
			}
		}
		if len(found.refs) == req.Limit {
			pass.More = found.refs[len(found.refs)-1].Job
		}
		took := start.Elapsed()
		pass.NextIn = longPass * took
		if pass.More == 0 {
			pass.NextIn = req.Period
			if found.earliest.Valid {
				pass.NextIn = duration(found.earliest.Int64 + 1 - w.now)
			}
		}
		pass.NextIn = min(max(pass.NextIn, longPass*took, time.Millisecond), req.Period)
		_, err := w.ExecContext(ctx, s.sql.WatchStamp, w.now, req.By, took.Milliseconds(), w.now+pass.NextIn.Milliseconds())
		return err
	})
	if err != nil {
		return pacht.Pass{}, err
	}
	return pass, nil
}

// expireOne closes one lease. Alone, it stands in a savepoint of its own, and a lease that the
// tables refuse to close is left, named with the locked ones; Check says what is wrong with it.
func (s *Store) expireOne(ctx context.Context, w *work, ref pacht.Ref, pass *pacht.Pass, alone bool) error {
	if !alone {
		return s.expireRow(ctx, w, ref, pass)
	}
	if _, err := w.ExecContext(ctx, s.sql.Savepoint); err != nil {
		return err
	}
	closed := len(pass.Expired)
	if err := s.expireRow(ctx, w, ref, pass); err != nil {
		if !isConstraint(err) {
			return err
		}
		pass.Expired, pass.Locked = pass.Expired[:closed], append(pass.Locked, ref)
		if _, err := w.ExecContext(ctx, s.sql.SavepointUndo); err != nil {
			return err
		}
	}
	_, err := w.ExecContext(ctx, s.sql.SavepointRelease)
	return err
}

func (s *Store) expireRow(ctx context.Context, w *work, ref pacht.Ref, pass *pacht.Pass) error {
	e := pacht.Expiry{Ref: ref}
	var until int64
	var crashes int
	found, err := one(ctx, w, s.sql.ExpireFacts, []any{ref.Job, ref.Token}, &e.Kind, &e.Queue, &e.Owner, &until, &crashes)
	if err != nil || !found {
		return err
	}
	c := closing{}
	found, err = one(ctx, w, s.sql.Expire, []any{ref.Job, ref.Token, w.now}, &c.next, &c.runAt)
	if err != nil || !found {
		return err // renewed, settled or taken since the look
	}
	if err := s.leave(ctx, w, ref, c, pacht.OutcomeExpired, false); err != nil {
		return err
	}
	e.LeaseUntil, e.Next, e.Crashes = at(until), c.next, crashes+1
	pass.Expired = append(pass.Expired, e)
	return nil
}
