package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pacht-queue/pacht"
)

// A claim that finds its rows taken by others in the meantime looks again, so often.
const claimRounds = 3

// Claim implements pacht.Leaser. It looks for rows to take without the write lock, and then
// takes them from there on in one transaction: what was seen is only a hint.
func (s *Store) Claim(ctx context.Context, req pacht.ClaimRequest) (claims pacht.Claims, err error) {
	if err := req.Validate(); err != nil {
		return claims, fmt.Errorf("claim: %w", err)
	}
	kinds, err := json.Marshal(req.Kinds)
	if err != nil {
		return claims, fmt.Errorf("claim: %w", err)
	}
	if err := s.fits(ctx); err != nil {
		return claims, fmt.Errorf("claim: %w", err)
	}
	for range claimRounds {
		l := s.floors.start(req)
		var found [pacht.MaxPriority]*place
		if claims.Now, found, err = s.look(ctx, req.Queue, string(kinds), l); err != nil {
			return pacht.Claims{}, fmt.Errorf("claim: %w", err)
		}
		s.floors.learn(l, claims.Now.UnixMilli(), found)
		if found == ([pacht.MaxPriority]*place{}) {
			return claims, nil // most claims of an idle worker end here
		}
		claims, err = s.take(ctx, req, string(kinds), l, found)
		if err != nil || len(claims.Jobs) > 0 {
			break
		}
	}
	if err != nil {
		return pacht.Claims{}, err
	}
	if claims.Jobs, err = s.addFacts(ctx, claims.Jobs); err != nil {
		// They are held, and the caller does not know them: HeldBy tells (R4).
		return pacht.Claims{}, fmt.Errorf("claim: read what was taken: %w: %w", pacht.ErrUnknown, err)
	}
	return claims, nil
}

// look finds the first row of each priority that may be taken now.
func (s *Store) look(ctx context.Context, queue, kinds string, l look) (now time.Time, found [pacht.MaxPriority]*place, err error) {
	if now, err = s.Now(ctx); err != nil {
		return now, found, err
	}
	for i, from := range l.from {
		var at place
		ok, err := one(ctx, s.read, s.sql.ClaimLook, []any{queue, kinds, now.UnixMilli(), i + 1, from.runAt, from.id}, &at.runAt, &at.id)
		if err != nil {
			return now, found, err
		}
		if ok {
			found[i] = &at
		}
	}
	return now, found, nil
}

// take claims from the places that a look has found, best priority first.
func (s *Store) take(ctx context.Context, req pacht.ClaimRequest, kinds string, l look, found [pacht.MaxPriority]*place) (claims pacht.Claims, err error) {
	err = s.write(ctx, "claim", false, func(ctx context.Context, w *work) error {
		claims = pacht.Claims{Now: at(w.now)}
		for i, from := range found {
			left := req.Limit - len(claims.Jobs)
			if from == nil || left == 0 {
				continue
			}
			jobs, err := s.takePriority(ctx, w, req, kinds, i+1, *from, left)
			if err != nil {
				return err
			}
			claims.Jobs = append(claims.Jobs, jobs...)
		}
		return nil
	})
	if err != nil {
		return pacht.Claims{}, err
	}
	for _, j := range claims.Jobs {
		s.floors.taken(l, j.Priority, place{j.RunAt.UnixMilli(), int64(j.ID)})
	}
	return claims, nil
}

// visitsOf is how many rows a claim visits at most while it holds the write lock: enough to
// get past what other processes hold since the look, and over in a few milliseconds.
func visitsOf(limit int) int { return 4*limit + 1000 }

func (s *Store) takePriority(ctx context.Context, w *work, req pacht.ClaimRequest, kinds string, priority int, from place, limit int) (jobs []pacht.JobInfo, err error) {
	args := []any{req.Owner, req.Queue, kinds, limit, w.now, priority, from.runAt, from.id, visitsOf(limit)}
	err = each(ctx, w, s.sql.Claim, args, func(rows *sql.Rows) error {
		j := pacht.JobInfo{
			Queue: req.Queue, Priority: priority, Status: pacht.Processing, LeaseOwner: req.Owner, ClaimedAt: at(w.now),
		}
		var runAt, ttl int64
		if err := rows.Scan(&j.ID, &runAt, &j.Token, &j.Attempt, &j.MaxAttempts, &j.Crashes, &ttl); err != nil {
			return err
		}
		j.RunAt, j.TTL, j.LeaseUntil = at(runAt), duration(ttl), at(w.now+ttl)
		jobs = append(jobs, j)
		return nil
	})
	slices.SortFunc(jobs, func(a, b pacht.JobInfo) int {
		return cmp.Or(a.RunAt.Compare(b.RunAt), cmp.Compare(a.ID, b.ID))
	})
	return jobs, err
}

// addFacts reads what claimed jobs are to do. It never changes, so it is read after the
// commit, on a connection of its own: no long read makes a claim wait. The caller's ctx does
// not end it, because the jobs are held already.
func (s *Store) addFacts(ctx context.Context, jobs []pacht.JobInfo) ([]pacht.JobInfo, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	ids := make([]pacht.ID, len(jobs))
	of := make(map[pacht.ID]*pacht.JobInfo, len(jobs))
	for i := range jobs {
		ids[i], of[jobs[i].ID] = jobs[i].ID, &jobs[i]
	}
	err := each(context.WithoutCancel(ctx), s.facts, s.sql.ClaimedFacts, []any{idList(ids)}, func(rows *sql.Rows) error {
		var id pacht.ID
		var f pacht.JobInfo
		var args, metadata sql.NullString
		var created int64
		if err := rows.Scan(&id, &f.Kind, &args, &metadata, &f.MaxCrashes, &f.CrashPolicy, &created); err != nil {
			return err
		}
		j := of[id]
		j.Kind, j.MaxCrashes, j.CrashPolicy, j.CreatedAt = f.Kind, f.MaxCrashes, f.CrashPolicy, at(created)
		j.Args, j.Metadata = document(args), document(metadata)
		return nil
	})
	// A lease whose job is gone is no work for anybody; Check names it.
	return slices.DeleteFunc(jobs, func(j pacht.JobInfo) bool { return j.Kind == "" }), err
}

// ClaimID implements pacht.Leaser.
func (s *Store) ClaimID(ctx context.Context, owner string, id pacht.ID) (job pacht.JobInfo, ok bool, err error) {
	if err := pacht.ValidOwner(owner); err != nil {
		return job, false, fmt.Errorf("claim job %d: %w", id, err)
	}
	var jobs []pacht.JobInfo
	err = s.write(ctx, fmt.Sprintf("claim job %d", id), false, func(ctx context.Context, w *work) error {
		jobs = nil
		if _, err := w.ExecContext(ctx, s.sql.ClaimIDClose, id, w.now); err != nil {
			return err
		}
		ids, err := ids(ctx, w, s.sql.ClaimID, id, w.now, owner)
		if err != nil || len(ids) == 0 {
			return err
		}
		jobs, err = s.list(ctx, w, s.sql.Claimed, idList(ids))
		return err
	})
	if err != nil || len(jobs) == 0 {
		return pacht.JobInfo{}, false, err
	}
	return jobs[0], true, nil
}

// HeldBy implements pacht.Leaser.
func (s *Store) HeldBy(ctx context.Context, owner string) (claims pacht.Claims, err error) {
	if err := pacht.ValidOwner(owner); err != nil {
		return claims, fmt.Errorf("held by: %w", err)
	}
	if err := s.fits(ctx); err != nil {
		return claims, fmt.Errorf("held by %s: %w", owner, err)
	}
	// The clock is read first: what the answer says was held then or later.
	if claims.Now, err = s.Now(ctx); err != nil {
		return claims, err
	}
	if claims.Jobs, err = s.list(ctx, s.read, s.sql.HeldBy, owner); err != nil {
		return claims, fmt.Errorf("held by %s: %w", owner, err)
	}
	return claims, nil
}
