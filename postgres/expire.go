package postgres

import (
	"context"
	"time"

	"github.com/pacht-queue/pacht"
)

// Expire implements pacht.Expirer. A pass whose answer was lost is not repeated inside: what
// it closed stands in the ledger.
func (s *Store) Expire(ctx context.Context, req pacht.ExpireRequest) (pacht.Pass, error) {
	if err := req.Validate(); err != nil {
		return pacht.Pass{}, err
	}
	var pass pacht.Pass
	args := []any{req.By, int64(req.Limit), req.Period.Milliseconds(), req.Force, int64(req.After)}
	err := s.again(ctx, false, "expire", func() error {
		pass = pacht.Pass{}
		_, err := s.transact(ctx, s.own, lockTimeout, stmt{sql: s.sql.Expire, args: args, each: func(scan scanner) error {
			return readPass(&pass, scan)
		}})
		return err
	})
	if err != nil {
		return pacht.Pass{}, err
	}
	return pass, nil
}

// readPass takes in one row: the pass itself, or what became of one lease.
func readPass(pass *pacht.Pass, scan scanner) error {
	var what string
	var e pacht.Expiry
	var until *time.Time
	var next int64
	if err := scan(&what, &e.Ref.Job, &e.Ref.Token, &e.Kind, &e.Queue, &e.Owner, &until, &e.Next, &e.Crashes, &next); err != nil {
		return err
	}
	e.LeaseUntil = when(until)
	switch what {
	case "expired":
		pass.Expired = append(pass.Expired, e)
	case "locked":
		pass.Locked = append(pass.Locked, e.Ref)
	default:
		pass.Turn, pass.More, pass.Now = e.Ref.Token == 1, e.Ref.Job, e.LeaseUntil
		// However near the next pass is, a watcher must not spin.
		const least = 10 * time.Millisecond
		pass.NextIn = max(time.Duration(next)*time.Microsecond, least)
	}
	return nil
}

// Watch implements pacht.Reader.
func (s *Store) Watch(ctx context.Context) (pacht.WatchInfo, error) {
	found, err := list(ctx, s, "watch", s.sql.Watch, nil, func(w *pacht.WatchInfo, scan scanner) error {
		var passed, next *time.Time
		var took int64
		err := scan(&passed, &w.PassedBy, &took, &next)
		w.PassedAt, w.Took, w.NextAt = when(passed), time.Duration(took)*time.Millisecond, when(next)
		return err
	})
	if err != nil || len(found) == 0 {
		return pacht.WatchInfo{}, err
	}
	return found[0], nil
}
