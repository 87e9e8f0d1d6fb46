package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/internal/sweeping"
)

// Sweep implements pacht.Sweeper. A page whose answer was lost is not repeated inside: what is
// committed is stamped, and the rest comes with the next page.
func (s *Store) Sweep(ctx context.Context, req pacht.SweepRequest) (pacht.Swept, error) {
	if err := req.Validate(); err != nil {
		return pacht.Swept{}, err
	}
	if !req.Force {
		due, err := listOn(ctx, s, s.own, "sweep of "+string(req.Target), s.sql.SweepDue, []any{string(req.Target)}, func(due *bool, scan scanner) error { return scan(due) })
		if err != nil || len(due) == 0 {
			return pacht.Swept{}, err
		}
	}
	for visit := req.Limit; ; visit = max(1, visit/8) {
		swept, err := s.sweepPage(ctx, req, visit, false)
		if !badRow(err) {
			return swept, err
		}
		if visit == 1 { // here stands what the database refuses to delete: pass over it (R12)
			return s.sweepPage(ctx, req, visit, true)
		}
	}
}

// sweepPage is turn, page and stamp in one transaction; it only passes over the page if told so.
func (s *Store) sweepPage(ctx context.Context, req pacht.SweepRequest, visit int, over bool) (pacht.Swept, error) {
	var swept pacht.Swept
	err := s.again(ctx, false, "sweep "+string(req.Target), func() error {
		_, err := s.interactive(ctx, s.own, lockTimeout, false, func(on session) error {
			swept = pacht.Swept{}
			var state sweeping.State
			err := on.query(ctx, s.sql.SweepTurn, []any{string(req.Target), req.Force}, func(scan scanner) error {
				var cost int64
				swept.Turn = true
				err := scan(&state.At.Us, &state.At.ID, &state.Looking, &state.Whole, &cost, &state.WholeDue)
				state.Cost = time.Duration(cost) * time.Microsecond
				return err
			})
			if err != nil || !swept.Turn {
				return err
			}
			start := clock.Now()
			state = state.Begin()
			page, n, err := s.sweepRows(ctx, on, req, state.At, visit, over)
			if err != nil {
				return err
			}
			if page.Took = start.Elapsed(); over {
				swept.Refused = 1
			}
			next, in, whole := state.Next(page, req.Period)
			swept.Removed, swept.More = n, next.Looking
			return on.query(ctx, s.sql.SweepStamp, []any{
				string(req.Target), req.By, int64(n), next.At.Us, next.At.ID, next.Looking, next.Whole,
				next.Cost.Microseconds(), in.Microseconds(), whole.Microseconds(),
			}, nil)
		})
		return err
	})
	if err != nil {
		return pacht.Swept{}, err
	}
	return swept, nil
}

func (s *Store) sweepRows(ctx context.Context, on session, req pacht.SweepRequest, from sweeping.Place, visit int, over bool) (page sweeping.Page, n int, err error) {
	older := req.OlderThan.Microseconds()
	switch req.Target {
	case pacht.SweepKeys:
		// A block holds some 60 keys. If more than allowed were due, the slice comes once more.
		slice := int64(max(1, visit/10))
		var blocks int64
		most := int64(visit)
		if over {
			most = 0
		}
		err = on.query(ctx, s.sql.SweepKeys, []any{from.ID, slice, older, most, pgx.Identifier{s.schema, "keys"}.Sanitize()}, func(scan scanner) error { return scan(&n, &blocks) })
		page.Last = from
		if n < visit {
			page.Last.ID = from.ID + slice
			page.Ended = page.Last.ID >= blocks
		}
		if page.Ended {
			page.Last.ID = min(page.Last.ID, blocks)
		}
		return page, n, err
	case pacht.SweepWorkers:
		// The place is one in the table of floors, whose rows are as many as claims were made lately.
		slice := int64(max(1, visit/10))
		var blocks int64
		if !over {
			err = on.query(ctx, s.sql.SweepWorkers, []any{older, int64(visit)}, func(scan scanner) error { return scan(&n) })
		}
		if err == nil {
			err = on.query(ctx, s.sql.SweepFloors, []any{from.ID, slice, pgx.Identifier{s.schema, "floors"}.Sanitize()}, func(scan scanner) error { return scan(&blocks) })
		}
		page.Last.ID = min(from.ID+slice, blocks)
		page.Ended = n < visit && page.Last.ID == blocks
		return page, n, err
	}
	return s.pruneJobs(ctx, on, pruneLook{status: pacht.Status(req.Target), after: from, visit: visit, older: older, most: visit, over: over})
}
