package postgres

import (
	"cmp"
	"context"
	"errors"
	"slices"
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
	at := s.floors.start(req)
	claims, err := s.claimFrom(ctx, &req, &at, inTurn(at.depth, req.Limit))
	if err == nil && !at.full && !at.rests && len(claims.Jobs) < req.Limit {
		claims, err = s.lookBehind(ctx, req, at, claims)
	}
	if err == nil {
		s.floors.brought(at, len(claims.Jobs), req.Limit)
	}
	return claims, err
}

// lookBehind looks from the start for the rest of a claim that came short of its limit from the
// floor on. If that is refused, its error comes again with the next claim, and the jobs of this one
// are held. They must not wait for it long: their leases run. If its answer is lost, it may
// hold more of them, and HeldBy tells of all (R4).
func (s *Store) lookBehind(ctx context.Context, req pacht.ClaimRequest, at start, claims pacht.Claims) (pacht.Claims, error) {
	req.Limit -= len(claims.Jobs)
	look, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	at.full, at.from, at.look, at.until, at.turn = true, fromBottom(), 0, 0, false
	behind, err := s.claimFrom(look, &req, &at, false)
	switch {
	case err == nil:
		claims.Now, claims.Jobs = behind.Now, append(claims.Jobs, behind.Jobs...)
	case errors.Is(err, pacht.ErrUnknown):
		return pacht.Claims{}, err
	}
	return claims, nil
}

// claimFrom makes one claim. One that has waited for its turn may ask for another number of jobs than
// it was sent for, and start elsewhere: that stands in req and at afterwards.
func (s *Store) claimFrom(ctx context.Context, req *pacht.ClaimRequest, at *start, inTurn bool) (pacht.Claims, error) {
	number := s.doubts.next()
	room := min(req.Limit, roomAtOnce)
	if !inTurn {
		room = min(room, gateFrom)
	}
	var claims pacht.Claims
	var began clock.Instant
	from := *at
	err := s.again(ctx, false, "claim from queue "+req.Queue, func() error {
		began, *at = clock.Now(), from
		var err error
		claims, err = s.claim(newClaimReader(*req), stmt{sql: s.sql.Claim}, room, func(claim stmt) (time.Time, error) {
			if inTurn && !s.withoutTurns() {
				return s.claimInTurn(ctx, req, at, number, claim, &began)
			}
			claim.args = s.claimArgs(req, at, number)
			return s.transact(ctx, s.own, lockTimeout, s.claiming(req.Owner), claim)
		})
		return err
	})
	if err != nil {
		s.doubt(req.Owner, number, err)
		return pacht.Claims{}, err
	}
	slices.SortFunc(claims.Jobs, queueOrder)
	s.floors.learn(*at, began, len(claims.Jobs) < req.Limit, claims)
	return claims, nil
}

// claimArgs are those of claim.sql.
func (s *Store) claimArgs(req *pacht.ClaimRequest, at *start, number int64) []any {
	args := append([]any{req.Owner, req.Queue, req.Kinds, int64(req.Limit)}, floorArgs(at.from)...)
	args = append(args, s.doubts.store, number)
	if at.tells() {
		var look int64
		if at.until != 0 {
			look = at.look
		}
		return append(args, at.key.kindsNumber(), look, at.until)
	}
	return append(args, nil, int64(0), int64(0))
}

// Large claims of a queue go one after the other: see gate.sql. Small ones, and those that are likely
// to bring few, are over sooner than a turn would be; but not where large ones are made: there a small
// one walks over what others have just taken, locks it, and has their settles find it busy. Where many
// have come to an idle queue, the first ones of its workers may meet. If the turn does not come in time,
// because who has it is stuck, claims go without turns for gateRest.
const (
	gateFrom    = 50
	gateTimeout = 2 * time.Second
	gateRest    = time.Minute
)

func inTurn(d depth, limit int) bool { return d == deep || d == unsaid && limit >= gateFrom }

// withoutTurns says that a turn has not come in time, and is not waited for at present.
func (s *Store) withoutTurns() bool { return clock.Now().Time().UnixNano() <= s.gateless.Load() }

// roomAfter is for how long a claim waits for its turn at least before it asks again for how many jobs
// there is room: whoever waits for nobody does best to have some run while others are being claimed.
const roomAfter = 5 * time.Millisecond

// claimInTurn waits for the turn in a round trip of its own: a claim that is on its way would be
// made for a client that has died meanwhile, or has given up. It tells when the claim began.
func (s *Store) claimInTurn(ctx context.Context, req *pacht.ClaimRequest, at *start, number int64, claim stmt, began *clock.Instant) (time.Time, error) {
	came := clock.Now()
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
	queued := came.Elapsed()
	conn, ctx, release, err := s.acquire(ctx, s.own)
	if err != nil {
		return time.Time{}, err
	}
	defer release()
	without := func() (time.Time, error) {
		claim.args = s.claimArgs(req, at, number)
		return s.transactOn(ctx, conn, s.own, lockTimeout, s.claiming(req.Owner), claim)
	}
	if s.withoutTurns() { // since it waits in the line
		return without()
	}
	if err := s.ready(ctx, conn); err != nil {
		return time.Time{}, err
	}
	var now time.Time
	most := min(gateTimeout, s.timeout/2)
	patience := most
	if end, ok := ctx.Deadline(); ok {
		patience = min(patience, -clock.Since(end)/4)
	}
	var waited, over int64 // microseconds, and when
	err = s.send(ctx, conn, s.own, append(s.opening(max(patience, time.Millisecond), s.idle(), false, &now),
		stmt{sql: s.sql.Gate, args: []any{s.schema + " " + req.Queue}, each: func(scan scanner) error {
			var ignored string
			return scan(&ignored, &waited, &over)
		}},
		stmt{sql: s.sql.Reached, args: []any{req.Queue, at.key.kindsNumber()}, each: func(scan scanner) error {
			var priority int
			var got pair
			var look, until int64
			err := scan(&priority, &got.runAt, &got.id, &look, &until)
			if err == nil {
				at.goOn(priority, got, look, until, over)
			}
			return err
		}}))
	*began = clock.Now()
	switch {
	case slices.Contains([]string{"55P03", "57014"}, code(err)): // lock_not_available, query_canceled
		if over == 0 && patience == most { // not a caller who is in a hurry
			s.gateless.Store(clock.Now().Time().Add(gateRest).UnixNano())
		}
		return without()
	case err != nil:
		return time.Time{}, err // nothing was asked for that could have been done
	}
	if req.Room != nil && queued+time.Duration(waited)*time.Microsecond >= roomAfter {
		if room := req.Room(); room > 0 {
			req.Limit = min(room, pacht.MaxBatch)
		}
	}
	at.turn = true
	claim.args = s.claimArgs(req, at, number)
	if err := s.send(ctx, conn, s.own, []stmt{s.claiming(req.Owner), claim, {sql: s.sql.Commit}}); err != nil {
		return time.Time{}, sent(err)
	}
	return now.UTC(), nil
}

// ClaimID implements pacht.Leaser.
func (s *Store) ClaimID(ctx context.Context, owner string, id pacht.ID) (pacht.JobInfo, bool, error) {
	if err := pacht.ValidOwner(owner); err != nil {
		return pacht.JobInfo{}, false, err
	}
	number := s.doubts.next()
	claim := stmt{sql: s.sql.ClaimID, args: []any{owner, int64(id), s.doubts.store, number}}
	var claims pacht.Claims
	err := s.again(ctx, false, "claim job "+id.String(), func() error {
		var err error
		claims, err = s.claim(newJobReader(), claim, 1, func(claim stmt) (time.Time, error) {
			return s.transact(ctx, s.own, lockTimeout, s.claiming(owner), claim)
		})
		return err
	})
	s.doubt(owner, number, err)
	if err != nil || len(claims.Jobs) == 0 {
		return pacht.JobInfo{}, false, err
	}
	return claims.Jobs[0], true, nil
}

// claiming goes before a claim.
func (s *Store) claiming(owner string) stmt {
	return stmt{sql: s.sql.Claiming, args: []any{s.schema + " " + owner}}
}

// doubt takes in a claim's error.
func (s *Store) doubt(owner string, number int64, err error) {
	if errors.Is(err, pacht.ErrUnknown) {
		s.doubts.add(owner, number)
	}
}

// claimsOverTimeout is how long HeldBy waits for claims that are under way, before it answers ErrBusy:
// those of other queues wait behind it.
const claimsOverTimeout = 500 * time.Millisecond

// HeldBy implements pacht.Leaser. It looks after a moment at which no claim of the owner was under way,
// and at which those of this store that went unanswered were made void. What it finds is as durable as
// a claim that was answered: its commit may have been given up by the client and still wait for a standby.
func (s *Store) HeldBy(ctx context.Context, owner string) (pacht.Claims, error) {
	if err := pacht.ValidOwner(owner); err != nil {
		return pacht.Claims{}, err
	}
	last := s.doubts.of(owner)
	var claims pacht.Claims
	err := s.again(ctx, true, "held by "+owner, func() error {
		var err error
		// In a transaction of its own, because new claims of the owner wait for it.
		_, err = s.transact(ctx, s.own, claimsOverTimeout,
			stmt{sql: s.sql.ClaimsOver, args: []any{s.schema + " " + owner}},
			stmt{sql: s.sql.Void, args: []any{owner, s.doubts.store, last}})
		if err != nil {
			return err
		}
		claims, err = s.claim(newJobReader(), stmt{sql: s.sql.HeldBy, args: []any{owner}, whole: true}, 1, func(look stmt) (time.Time, error) {
			return s.transact(ctx, s.own, lockTimeout, look, s.durable())
		})
		return err
	})
	if err != nil {
		return pacht.Claims{}, err
	}
	s.doubts.settled(owner, last)
	return claims, nil
}

// claim runs a statement that answers with held jobs; if with any, it makes room for so many.
func (s *Store) claim(reader *jobReader, claim stmt, room int, run func(stmt) (time.Time, error)) (pacht.Claims, error) {
	var claims pacht.Claims
	claim.each = func(scan scanner) error {
		job, err := reader.read(scan)
		if claims.Jobs == nil {
			claims.Jobs = make([]pacht.JobInfo, 0, room)
		}
		claims.Jobs = append(claims.Jobs, job)
		return err
	}
	now, err := run(claim)
	// The rows' own clock is the statement's, a moment after that of the bounds.
	claims.Now = now
	for _, j := range claims.Jobs {
		if j.ClaimedAt.After(claims.Now) {
			claims.Now = j.ClaimedAt
		}
	}
	return claims, err
}

// roomAtOnce is for how many jobs a claim makes room at most before it knows how many there are.
const roomAtOnce = 1024

// queueOrder compares as a queue orders its jobs.
func queueOrder(a, b pacht.JobInfo) int {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), a.RunAt.Compare(b.RunAt), cmp.Compare(a.ID, b.ID))
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
