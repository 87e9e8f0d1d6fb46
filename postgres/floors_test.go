package postgres

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
)

// another is a second store on the same database, as another process would have it.
func another(t *testing.T, s *Store) *Store {
	t.Helper()
	other, err := New(s.pool, Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	return other
}

// putBack makes a held row claimable where it stands, and nobody is told.
const putBack = `UPDATE pacht.leases SET status = 'Pending', lease_owner = NULL, claimed_at = NULL, lease_until = NULL, token = 0, attempt = 0, rev = rev + 1 WHERE job_id = %d`

// Several processes must not each walk over all that the others hold; what they pass over is found
// when the look on which that rests has become old.
func TestClaimsInTurnGoOnFromWhereTheOnesBeforeHaveGot(t *testing.T) { // S061
	s, pool := newStore(t)
	other := another(t, s)
	ids := enqueue(t, s, 600)
	claim(t, s, 100) // looks from the start, and says until when that holds
	execute(t, pool, "UPDATE pacht.floors SET look_at = look_at + interval '1 minute'")
	execute(t, pool, fmt.Sprintf(putBack, ids[5]))
	if got := claimIDs(t, other, 100); len(got) != 100 || got[0] != ids[100] {
		t.Errorf("the other store claimed %v, want to start at %d", got, ids[100])
	}
	if got := claimIDs(t, s, 100); len(got) != 100 || got[0] != ids[200] {
		t.Errorf("claimed %v, want to start at %d, behind what the other one has got", got, ids[200])
	}
	execute(t, pool, "UPDATE pacht.floors SET look_at = statement_timestamp()")
	if got := claimIDs(t, other, 100); len(got) != 100 || got[0] != ids[5] || got[1] != ids[300] {
		t.Errorf("claimed %v after the look had become old, want %d first", got, ids[5])
	}
	kinds := pacht.ClaimRequest{Owner: "owner", Queue: pacht.DefaultQueue, Kinds: []string{"charge", "refund"}, Limit: 100}
	execute(t, pool, fmt.Sprintf(putBack, ids[6]))
	if got, err := other.Claim(t.Context(), kinds); err != nil || len(got.Jobs) != 100 || got.Jobs[0].ID != ids[6] {
		t.Errorf("a claim of other kinds, that has not looked yet, got %v, %v", got.Jobs, err)
	}
}

func TestWhoPutsAJobBackTakesNobodysWord(t *testing.T) { // R5, S061
	s, pool := newStore(t)
	other := another(t, s)
	ids := enqueue(t, s, 400)
	jobs := claim(t, s, 100)
	claim(t, other, 100)
	execute(t, pool, "UPDATE pacht.floors SET look_at = look_at + interval '1 minute'")
	if _, err := s.Settle(t.Context(), settlements(jobs[:1], pacht.OutcomeReleased)); err != nil {
		t.Fatal(err)
	}
	if got := claimIDs(t, s, 100); got[0] != ids[0] {
		t.Errorf("claimed from %d on, want the released %d", got[0], ids[0])
	}
	// From its look on it does.
	execute(t, pool, fmt.Sprintf(putBack, ids[1])+"; UPDATE pacht.floors SET look_at = look_at + interval '1 minute'")
	if got := claimIDs(t, s, 60); got[0] != ids[299] {
		t.Errorf("claimed from %d on, want %d", got[0], ids[299])
	}
}

// Each priority has a floor of its own: future or better jobs are not passed over.
func TestFloorsOfOthersAreOfOnePriority(t *testing.T) { // S061
	s, pool := newStore(t)
	other := another(t, s)
	normal := enqueue(t, s, 300, pacht.Priority(3))
	claim(t, s, 100)
	execute(t, pool, "UPDATE pacht.floors SET look_at = look_at + interval '1 minute'")
	first := enqueue(t, s, 60, pacht.Priority(1))
	if got := claimIDs(t, other, 100); !slices.Equal(got[:60], first) || got[60] != normal[100] {
		t.Errorf("claimed %v", got)
	}
}

func TestFloorsLeaveLittleBehind(t *testing.T) { // S061
	s, pool := newStore(t)
	enqueue(t, s, 1000)
	const count = "SELECT count(*) FROM pacht.floors"
	for range 8 {
		claim(t, s, 100)
	}
	claim(t, s, 10) // small ones go in turn here too
	if n := value(t, pool, count); n != "9" {
		t.Errorf("%s rows after 9 claims", n)
	}
	for range 3 { // the last jobs, and nothing: no turn, no word
		claim(t, s, 500)
	}
	if n := value(t, pool, count); n != "10" {
		t.Errorf("%s rows after the last jobs", n)
	}
	execute(t, pool, "UPDATE pacht.floors SET look_at = statement_timestamp() WHERE reached_at < (SELECT max(reached_at) FROM pacht.floors)")
	if _, err := s.Sweep(t.Context(), pacht.SweepRequest{By: "sweeper", Target: pacht.SweepWorkers, OlderThan: time.Hour, Limit: 10, Period: time.Second, Force: true}); err != nil {
		t.Fatal(err)
	}
	if n := value(t, pool, count); n > "1" {
		t.Errorf("%s rows after a sweep", n)
	}
}

// Who has to wait for the turn asks then for how many jobs there is room, and nobody else does.
func TestClaimAsksForRoomOnceItsTurnHasCome(t *testing.T) { // S006
	s, pool := newStore(t)
	enqueue(t, s, 600)
	asked := 0
	req := request("owner", 60)
	req.Room = func() int { asked++; return 150 }
	if got, err := s.Claim(t.Context(), req); err != nil || len(got.Jobs) != 60 || asked != 0 {
		t.Errorf("%d jobs, asked for room %d times, %v: nobody had the turn", len(got.Jobs), asked, err)
	}
	for room, want := range map[int]int{150: 150, 20: 20, 0: 60} {
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), s.sql.Gate, s.schema+" default"); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(100*time.Millisecond, func() { _ = tx.Rollback(t.Context()) })
		req.Room = func() int { return room }
		if got, err := s.Claim(t.Context(), req); err != nil || len(got.Jobs) != want {
			t.Errorf("room %d: %d jobs, %v, want %d", room, len(got.Jobs), err, want)
		}
	}
}

// The newest row is found at once, whatever an old snapshot keeps of the others.
func TestFloorsAreReadByTheirKey(t *testing.T) { // S061
	s, pool := newStore(t)
	execute(t, pool, `ALTER TABLE pacht.floors SET (autovacuum_enabled = off);
		INSERT INTO pacht.floors SELECT 'default', 1, now() + n * interval '1 millisecond' + interval '1 hour', 3, now() + n * interval '1 millisecond', now(), n FROM generate_series(1, 20000) AS n`)
	defer execute(t, pool, "TRUNCATE pacht.floors")
	for _, mode := range planModes {
		if n, plan := rowsIn(t, s, pool, mode, s.sql.Reached, "'default', 1"); n > 40 || !strings.Contains(plan, "floors_pkey") {
			t.Errorf("%s deals with %d rows:\n%s", mode, n, plan)
		}
	}
}
