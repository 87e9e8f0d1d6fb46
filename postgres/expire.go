package postgres

import (
	"context"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
)

// Expire implements pacht.Expirer. A pass whose answer was lost is not repeated inside: what
// it closed stands in the ledger.
func (s *Store) Expire(ctx context.Context, req pacht.ExpireRequest) (pacht.Pass, error) {
	if err := req.Validate(); err != nil {
		return pacht.Pass{}, err
	}
	pass, err := s.pass(ctx, req)
	if badRow(err) {
		return s.passAround(ctx, req)
	}
	return pass, err
}

func (s *Store) pass(ctx context.Context, req pacht.ExpireRequest) (pacht.Pass, error) {
	var pass pacht.Pass
	args := []any{req.By, int64(req.Limit), req.Period.Milliseconds(), req.Force, int64(req.After)}
	err := s.again(ctx, false, "expire", func() error {
		pass = pacht.Pass{}
		_, err := s.transact(ctx, s.own, lockTimeout, stmt{sql: s.sql.Expire, args: args, whole: true, each: func(scan scanner) error {
			return readPass(&pass, scan)
		}})
		return err
	})
	if err != nil {
		return pacht.Pass{}, err
	}
	return pass, nil
}

// passAround makes a pass in pages that shrink until a lease which cannot be closed stands in
// one alone: it is named with the locked ones, and stops no other (R12). Check says what is
// wrong with it.
func (s *Store) passAround(ctx context.Context, req pacht.ExpireRequest) (pacht.Pass, error) {
	all := pacht.Pass{Turn: true}
	page := req
	page.Force = true // the turn was due
	var took time.Duration
	for left := req.Limit; left > 0; left = req.Limit - len(all.Expired) - len(all.Locked) {
		page.Limit = min(page.Limit, left)
		began := clock.Now()
		pass, err := s.pass(ctx, page)
		took = max(took, began.Elapsed()) // a look from end to end, as any pass is
		if badRow(err) && page.Limit > 1 {
			page.Limit /= 2
			continue
		}
		if badRow(err) {
			pass, err = s.passOver(ctx, page)
		}
		switch {
		case err != nil && page.After == req.After:
			return pacht.Pass{}, err
		case err != nil || !pass.Turn:
			// What was closed is committed and has to be told. The rest comes with the next page.
			all.More = page.After
			return all, nil
		}
		all.Now = pass.Now
		all.Expired, all.Locked = append(all.Expired, pass.Expired...), append(all.Locked, pass.Locked...)
		page.After, page.Limit = pass.More, 2*page.Limit
		if pass.More == 0 {
			break
		}
	}
	all.More = page.After
	all.NextIn = min(20*took, req.Period)
	err := s.again(ctx, true, "stamp the pass", func() error {
		_, err := s.transact(ctx, s.own, lockTimeout, stmt{sql: s.sql.WatchStamp, args: []any{req.By, took.Milliseconds(), req.Period.Milliseconds()}, each: func(scan scanner) error {
			var next int64
			err := scan(&next)
			all.NextIn = time.Duration(next) * time.Microsecond
			return err
		}})
		return err
	})
	if err != nil {
		// The stamps of the pages stand. Whoever goes on asks again, and gets the error then.
		all.NextIn = min(20*took, req.Period)
	}
	return all, nil
}

// passOver is the page of the one lease that cannot be closed.
func (s *Store) passOver(ctx context.Context, page pacht.ExpireRequest) (pacht.Pass, error) {
	bad, err := listOn(ctx, s, s.own, "expired leases", s.sql.Expired, []any{int64(page.After), int64(1)}, func(r *pacht.Ref, scan scanner) error {
		return scan(&r.Job, &r.Token)
	})
	if err != nil {
		return pacht.Pass{}, err
	}
	pass := pacht.Pass{Turn: true, Locked: bad}
	_, err = listOn(ctx, s, s.own, "now", s.sql.Now, nil, func(_ *struct{}, scan scanner) error { return scan(&pass.Now) })
	if len(bad) > 0 {
		pass.More = bad[0].Job
	}
	return pass, err
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
