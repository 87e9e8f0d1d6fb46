package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
)

// Claim implements pacht.Leaser. An unanswered claim is never repeated: its jobs are held
// already, see HeldBy.
func (s *Store) Claim(ctx context.Context, req pacht.ClaimRequest) (pacht.Claims, error) {
	if err := req.Validate(); err != nil {
		return pacht.Claims{}, err
	}
	key, from, full := s.floors.start(req)
	claims, err := s.claimFrom(ctx, req, key, from, full)
	if err != nil || full || len(claims.Jobs) == req.Limit {
		return claims, err
	}
	// Short of the limit from the floor on: what is behind it comes from a look from the start.
	// If that is refused, its error comes again with the next claim, and the jobs of this one
	// are held. They must not wait for it long: their leases run. If its answer is lost, it may
	// hold more of them, and HeldBy tells of all (R4).
	rest := req
	rest.Limit -= len(claims.Jobs)
	look, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	behind, err := s.claimFrom(look, rest, key, fromBottom(), true)
	switch {
	case err == nil:
		claims.Now, claims.Jobs = behind.Now, append(claims.Jobs, behind.Jobs...)
	case errors.Is(err, pacht.ErrUnknown):
		return pacht.Claims{}, err
	}
	return claims, nil
}

func (s *Store) claimFrom(ctx context.Context, req pacht.ClaimRequest, key floorKey, from [pacht.MaxPriority]pair, full bool) (pacht.Claims, error) {
	args := append([]any{req.Owner, req.Queue, req.Kinds, int64(req.Limit)}, floorArgs(from)...)
	var claims pacht.Claims
	var began clock.Instant
	err := s.again(ctx, false, "claim from queue "+req.Queue, func() error {
		began = clock.Now()
		var err error
		claims, err = s.claimInTurn(ctx, req, args)
		return err
	})
	if err != nil {
		return pacht.Claims{}, err
	}
	s.floors.learn(key, began, full, len(claims.Jobs) < req.Limit, claims.Jobs)
	return claims, nil
}

// Large claims of a queue go one after the other: see gate.sql. Small ones are over sooner than
// a turn would be. If the turn does not come in gateTimeout, because who has it is stuck, claims
// go without turns for gateRest.
const (
	gateFrom    = 50
	gateTimeout = 2 * time.Second
	gateRest    = time.Minute
)

func (s *Store) claimInTurn(ctx context.Context, req pacht.ClaimRequest, args []any) (pacht.Claims, error) {
	if req.Limit >= gateFrom && clock.Now().Time().UnixNano() > s.gateless.Load() {
		gate := stmt{sql: s.sql.Gate, args: []any{s.schema + " " + req.Queue}}
		claims, err := s.claim(ctx, gateTimeout, req.Limit, gate, stmt{sql: s.sql.Claim, args: args})
		if code(err) != "55P03" { // lock_not_available
			return claims, err
		}
		s.gateless.Store(clock.Now().Time().Add(gateRest).UnixNano())
	}
	return s.claim(ctx, lockTimeout, req.Limit, stmt{sql: s.sql.Claim, args: args})
}

// ClaimID implements pacht.Leaser.
func (s *Store) ClaimID(ctx context.Context, owner string, id pacht.ID) (pacht.JobInfo, bool, error) {
	if err := pacht.ValidOwner(owner); err != nil {
		return pacht.JobInfo{}, false, err
	}
	var claims pacht.Claims
	err := s.again(ctx, false, "claim job "+id.String(), func() error {
		var err error
		claims, err = s.claim(ctx, lockTimeout, 1, stmt{sql: s.sql.ClaimID, args: []any{owner, int64(id)}})
		return err
	})
	if err != nil || len(claims.Jobs) == 0 {
		return pacht.JobInfo{}, false, err
	}
	return claims.Jobs[0], true, nil
}

// HeldBy implements pacht.Leaser.
func (s *Store) HeldBy(ctx context.Context, owner string) (pacht.Claims, error) {
	if err := pacht.ValidOwner(owner); err != nil {
		return pacht.Claims{}, err
	}
	var claims pacht.Claims
	err := s.again(ctx, true, "held by "+owner, func() error {
		var err error
		claims, err = s.claim(ctx, lockTimeout, 1, stmt{sql: s.sql.HeldBy, args: []any{owner}})
		return err
	})
	return claims, err
}

// claim runs statements of which the last answers with held jobs, about so many at most.
func (s *Store) claim(ctx context.Context, lock time.Duration, most int, stmts ...stmt) (pacht.Claims, error) {
	var claims pacht.Claims
	reader := newJobReader()
	stmts[len(stmts)-1].each = func(scan scanner) error {
		job, err := reader.read(scan)
		if claims.Jobs == nil {
			claims.Jobs = make([]pacht.JobInfo, 0, min(most, 512))
		}
		claims.Jobs = append(claims.Jobs, job)
		return err
	}
	now, err := s.transact(ctx, s.own, lock, stmts...)
	// The rows' own clock is the statement's, a moment after that of the bounds.
	claims.Now = now
	for _, j := range claims.Jobs {
		if j.ClaimedAt.After(claims.Now) {
			claims.Now = j.ClaimedAt
		}
	}
	return claims, err
}

// ClaimSQL implements pacht.Checker.
func (s *Store) ClaimSQL() string { return s.sql.Claim }

// Now implements pacht.Reader.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	now, err := list(ctx, s, "now", s.sql.Now, nil, func(t *time.Time, scan scanner) error { return scan(t) })
	if err != nil {
		return time.Time{}, err
	}
	return now[0].UTC(), nil
}
