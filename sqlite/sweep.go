package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/internal/sweeping"
)

// Sweep implements pacht.Sweeper. The look is made without the write lock; turn, deletions and
// stamp are one transaction, of at most 500 rows.
func (s *Store) Sweep(ctx context.Context, req pacht.SweepRequest) (pacht.Swept, error) {
	if err := req.Validate(); err != nil {
		return pacht.Swept{}, fmt.Errorf("sweep: %w", err)
	}
	if err := s.fits(ctx); err != nil {
		return pacht.Swept{}, fmt.Errorf("sweep: %w", err)
	}
	for visit := min(req.Limit, pruneChunk); ; visit = max(1, visit/8) {
		swept, err := s.sweepPage(ctx, req, visit, false)
		if !isConstraint(err) {
			return swept, err
		}
		if visit == 1 { // here stands what the database refuses to delete: pass over it (R12)
			return s.sweepPage(ctx, req, visit, true)
		}
	}
}

// sweepPage makes one page; it only passes over it if told so.
func (s *Store) sweepPage(ctx context.Context, req pacht.SweepRequest, visit int, over bool) (swept pacht.Swept, err error) {
	start := clock.Now()
	now, err := s.Now(ctx)
	if err != nil {
		return swept, fmt.Errorf("sweep: %w", err)
	}
	seen, due, err := s.sweepTurn(ctx, s.read, req, now.UnixMilli())
	if err != nil || !due {
		return swept, err // most calls end here, without asking for the write lock
	}
	state := seen.Begin()
	page, delete, err := s.sweepLook(ctx, req, state, now.Add(-req.OlderThan).UnixMilli(), visit)
	if err != nil {
		return swept, fmt.Errorf("sweep %s: %w", req.Target, err)
	}
	err = s.write(ctx, "sweep "+string(req.Target), false, func(ctx context.Context, w *work) error {
		swept = pacht.Swept{}
		mine, due, err := s.sweepTurn(ctx, w, req, w.now)
		if mine.WholeDue = seen.WholeDue; err != nil || !due || mine != seen {
			return err // somebody else has made it
		}
		swept.Turn = true
		if over {
			swept.Refused = 1
		} else if swept.Removed, err = delete(ctx, w); err != nil {
			return err
		}
		page.Took = start.Elapsed()
		next, in, whole := state.Next(page, req.Period)
		swept.More = next.Looking
		wholeAt := int64(-1)
		if whole >= 0 {
			wholeAt = w.now + whole.Milliseconds()
		}
		_, err = w.ExecContext(ctx, s.sql.SweepStamp, string(req.Target), req.By, w.now, swept.Removed, next.At.Us, next.At.ID,
			next.Looking, next.Whole, next.Cost.Microseconds(), w.now+in.Milliseconds(), wholeAt)
		return err
	})
	if err != nil {
		return pacht.Swept{}, err
	}
	return swept, nil
}

func (s *Store) sweepTurn(ctx context.Context, r runner, req pacht.SweepRequest, now int64) (state sweeping.State, due bool, err error) {
	var cost int64
	due, err = one(ctx, r, s.sql.SweepTurn, []any{string(req.Target), now, req.Force},
		&state.At.Us, &state.At.ID, &state.Looking, &state.Whole, &cost, &state.WholeDue)
	state.Cost = time.Duration(cost) * time.Microsecond
	if err != nil {
		return state, false, fmt.Errorf("sweep %s: whether a page is due: %w", req.Target, err)
	}
	return state, due, nil
}

// sweepLook looks for what is old enough, and answers how to delete it, looking again.
func (s *Store) sweepLook(ctx context.Context, req pacht.SweepRequest, from sweeping.State, before int64, visit int) (page sweeping.Page, delete func(context.Context, *work) (int, error), err error) {
	switch req.Target {
	case pacht.SweepKeys:
		// Each look reads the whole table: only as often as one from the start may.
		var keys [][2]string
		if from.Whole {
			keys, err = s.expiredKeys(ctx, before, visit)
		}
		page.Ended = len(keys) < visit
		return page, func(ctx context.Context, w *work) (int, error) { return s.pruneKeys(ctx, w, keys, before) }, err
	case pacht.SweepWorkers:
		page.Ended = true
		return page, func(ctx context.Context, w *work) (int, error) {
			n, err := changed(ctx, w, s.sql.SweepWorkers, before, visit)
			return int(n), err
		}, nil
	}
	page, due, err := s.pruneLook(ctx, pacht.Status(req.Target), from.At, before, visit, visit)
	return page, func(ctx context.Context, w *work) (int, error) {
		return s.pruneJobs(ctx, w, due, pacht.Status(req.Target), before)
	}, err
}
