package postgres

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/pgtest"
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

// settledDown stores n jobs that are old enough for claims to tell of them.
func settledDown(t *testing.T, s *Store, n int, opts ...pacht.Option) []pacht.ID {
	t.Helper()
	ids := enqueue(t, s, n, opts...)
	if err := s.Age(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	return ids
}

// told is two stores and n jobs: the first store has claimed a hundred of them, and told of it.
func told(t *testing.T, n int) (s, other *Store, pool *pgxpool.Pool, ids []pacht.ID) {
	t.Helper()
	s, pool = newStore(t)
	other, ids = another(t, s), settledDown(t, s, n)
	claim(t, s, 100) // looks from the start, and says until when that holds
	holds(t, pool)
	return s, other, pool, ids
}

// putBack makes held rows claimable where they stand, and nobody is told.
func putBack(t *testing.T, pool *pgxpool.Pool, ids ...pacht.ID) {
	t.Helper()
	for _, id := range ids {
		execute(t, pool, fmt.Sprintf(`UPDATE pacht.leases SET status = 'Pending', lease_owner = NULL, claimed_at = NULL,
			lease_until = NULL, token = 0, attempt = 0, rev = rev + 1 WHERE job_id = %d`, id))
	}
}

// holds makes what claims have told hold for a minute, and over ends it.
func holds(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	execute(t, pool, "UPDATE pacht.floors SET until = statement_timestamp() + interval '1 minute'")
}

func over(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	execute(t, pool, "UPDATE pacht.floors SET until = statement_timestamp()")
}

// Several processes must not each walk over all that the others hold; what they pass over is found
// when the look on which that rests has become old.
func TestClaimsInTurnGoOnFromWhereTheOnesBeforeHaveGot(t *testing.T) { // S061
	s, other, pool, ids := told(t, 600)
	putBack(t, pool, ids[5])
	if got := claimIDs(t, other, 100); len(got) != 100 || got[0] != ids[100] {
		t.Errorf("the other store claimed %v, want to start at %d", got, ids[100])
	}
	if got := claimIDs(t, s, 100); len(got) != 100 || got[0] != ids[200] {
		t.Errorf("claimed %v, want to start at %d, behind what the other one has got", got, ids[200])
	}
	over(t, pool)
	third := another(t, s)
	if got := claimIDs(t, third, 100); len(got) != 100 || got[0] != ids[5] || got[1] != ids[300] {
		t.Errorf("claimed %v after the look had become old, want %d first", got, ids[5])
	}
	putBack(t, pool, ids[6])
	kinds := pacht.ClaimRequest{Owner: "owner", Queue: pacht.DefaultQueue, Kinds: []string{"charge", "refund"}, Limit: 100}
	if got, err := other.Claim(t.Context(), kinds); err != nil || len(got.Jobs) != 100 || got.Jobs[0].ID != ids[6] {
		t.Errorf("a claim of other kinds, that has not looked yet, got %v, %v", got.Jobs, err)
	}
}

// Rows that committed late lie behind where the claims have got. The first look that finds them takes
// some; nobody may pass over the rest again by what was true of an older look.
func TestHintsOfDifferentLooksAreNotMixed(t *testing.T) { // S061
	s, other, pool, ids := told(t, 600)
	claim(t, s, 100) // its own floor holds for a second yet
	putBack(t, pool, ids[:150]...)
	over(t, pool)
	if got := claimIDs(t, other, 100); got[0] != ids[0] {
		t.Fatalf("claimed from %d on, want the look from the start at %d", got[0], ids[0])
	}
	holds(t, pool)
	if got := claimIDs(t, s, 60); !slices.Equal(got[:50], ids[100:150]) {
		t.Errorf("claimed %v, want the rest of what the other one has found", got)
	}
}

// A claim without a turn looks for itself and tells nobody. The store goes on from there, and not from what
// others have told before.
func TestOlderWordIsNotTakenForOnesOwnLook(t *testing.T) { // S061
	_, s, pool, ids := told(t, 400)
	claim(t, s, 60) // goes on from there
	putBack(t, pool, ids[:80]...)
	s.floors.reset()
	s.floors.mu.Lock()
	s.floors.of(keyOf(request("owner", 60))).depth = thin
	s.floors.mu.Unlock()
	const count = "SELECT count(*) FROM pacht.floors"
	before := value(t, pool, count)
	if got := claimIDs(t, s, 60); got[0] != ids[0] {
		t.Fatalf("claimed from %d on, want a look from the start at %d", got[0], ids[0])
	}
	if after := value(t, pool, count); after != before {
		t.Errorf("a claim without a turn has told of it: %s rows, then %s", before, after)
	}
	if got := claimIDs(t, s, 60); !slices.Equal(got[:20], ids[60:80]) {
		t.Errorf("claimed %v, want the rest of what it has found", got)
	}
}

func TestWhoPutsAJobBackTakesNobodysWord(t *testing.T) { // R5, S061
	s, pool := newStore(t)
	other := another(t, s)
	ids := settledDown(t, s, 500)
	jobs := claim(t, s, 100)
	claim(t, other, 100)
	holds(t, pool)
	if _, err := s.Settle(t.Context(), settlements(jobs[:1], pacht.OutcomeReleased)); err != nil {
		t.Fatal(err)
	}
	if got := claimIDs(t, s, 100); got[0] != ids[0] {
		t.Errorf("claimed from %d on, want the released %d", got[0], ids[0])
	}
	holds(t, pool)
	if got := claimIDs(t, other, 60); got[0] != ids[299] {
		t.Errorf("the other one claimed from %d on, want to go on from the newest look at %d", got[0], ids[299])
	}
	putBack(t, pool, ids[320])
	if got := claimIDs(t, s, 60); got[0] != ids[359] {
		t.Errorf("claimed from %d on, want %d: it has looked, and takes the other one's word again", got[0], ids[359])
	}
}

// Each priority has a floor of its own: better jobs are not passed over.
func TestFloorsOfOthersAreOfOnePriority(t *testing.T) { // S061
	s, pool := newStore(t)
	other := another(t, s)
	normal := settledDown(t, s, 300, pacht.Priority(3))
	claim(t, s, 100)
	holds(t, pool)
	first := enqueue(t, s, 60, pacht.Priority(1))
	if got := claimIDs(t, other, 100); !slices.Equal(got[:60], first) || got[60] != normal[100] {
		t.Errorf("claimed %v", got)
	}
}

// What commits a moment late is found by each store's own floor, as if it were alone; and rows that were
// written before the server's clock was put back hold nobody up.
func TestNothingIsToldOfWhatIsYoungOrFromTheFuture(t *testing.T) { // S061
	s, pool := newStore(t)
	other := another(t, s)
	began := time.Now()
	ids := enqueue(t, s, 300)
	claim(t, s, 100)
	if n := value(t, pool, "SELECT count(*) FROM pacht.floors"); n != "0" && time.Since(began) < time.Second {
		t.Errorf("%s rows tell of jobs that are younger than a second", n)
	}
	if err := s.Age(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	claim(t, s, 60)
	execute(t, pool, `UPDATE pacht.floors SET looked_at = looked_at + interval '1 hour', reached_at = reached_at + interval '1 hour',
		until = until + interval '1 hour'`)
	putBack(t, pool, ids[7])
	if got := claimIDs(t, other, 60); got[0] != ids[7] {
		t.Errorf("claimed from %d on, want %d", got[0], ids[7])
	}
}

// One claim over several priorities, times and ages tells of each priority's last job that is old enough:
// the one that stands last in the queue, and not the one with the greatest number.
func TestAClaimTellsOfTheLastJobOfEachPriority(t *testing.T) { // S061
	for name, settings := range map[string][]string{"any plan": nil, "bad plans": append(badPlans, "plan_cache_mode=force_generic_plan")} {
		t.Run(name, func(t *testing.T) {
			s, pool := storeAt(t, setting(t, pgtest.Database(t), settings...), Config{})
			var got, want string
			for quick := false; !quick; { // young is less than a second
				execute(t, pool, "TRUNCATE pacht.leases, pacht.jobs, pacht.floors")
				s.floors.reset()
				old := map[int][]pacht.ID{}
				for _, priority := range []int{2, 3} {
					ids := enqueue(t, s, 40, pacht.Priority(priority))
					execute(t, pool, fmt.Sprintf(`UPDATE pacht.leases SET run_at = statement_timestamp() - CASE WHEN job_id >= %d
						THEN interval '2 minutes' ELSE interval '1 minute' END WHERE priority = %d`, ids[20], priority))
					old[priority] = ids
				}
				began := time.Now()
				enqueue(t, s, 10, pacht.Priority(1))
				enqueue(t, s, 5, pacht.Priority(2))
				claim(t, s, 10+45+30)
				got = value(t, pool, "SELECT string_agg(priority || ':' || job_id, ' ' ORDER BY priority, job_id) FROM pacht.floors")
				want = fmt.Sprintf("2:%d 3:%d", old[2][19], old[3][9])
				quick = time.Since(began) < time.Second
			}
			if got != want {
				t.Errorf("told of %s, want %s", got, want)
			}
		})
	}
}

func TestFloorsLeaveLittleBehind(t *testing.T) { // S061
	s, pool := newStore(t)
	settledDown(t, s, 1000)
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
	over(t, pool)
	sweep := pacht.SweepRequest{By: "sweeper", Target: pacht.SweepWorkers, OlderThan: time.Hour, Limit: 10, Period: time.Second, Force: true}
	until(t, "they are swept, block by block", func() bool {
		if _, err := s.Sweep(t.Context(), sweep); err != nil {
			t.Fatal(err)
		}
		return value(t, pool, count) == "0"
	})
}

// inHere says that a lock is one of this database.
const inHere = "database = (SELECT oid FROM pg_database WHERE datname = current_database())"

// Who has to wait for the turn asks then for how many jobs there is room, and nobody else does.
func TestClaimAsksForRoomOnceItsTurnHasCome(t *testing.T) { // S006
	s, pool := newStore(t)
	settledDown(t, s, 600)
	asked := 0
	req := request("owner", 60)
	req.Room = func() int { asked++; return 150 }
	claim(t, s, 60)
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
		done := make(chan int)
		go func() {
			req.Room = func() int { return room }
			got, err := s.Claim(t.Context(), req)
			if err != nil {
				t.Error(err)
			}
			done <- len(got.Jobs)
		}()
		until(t, "the claim waits for its turn", func() bool {
			return value(t, pool, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND "+inHere) == "1"
		})
		time.Sleep(2 * roomAfter)
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := <-done; got != want {
			t.Errorf("room %d: %d jobs, want %d", room, got, want)
		}
	}
}

// Claims of several queues that wait for their turns leave a connection for settles and beats (R12).
func TestClaimsThatWaitForTheirTurnsLeaveAConnection(t *testing.T) {
	s, pool := newStore(t)
	job := held(t, s)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	done := make(chan error)
	queues := []string{"a", "b", "c", "d"}
	for _, queue := range queues {
		if _, err := tx.Exec(t.Context(), s.sql.Gate, s.schema+" "+queue); err != nil {
			t.Fatal(err)
		}
		go func() {
			req := request("owner", 60)
			req.Queue = queue
			_, err := s.Claim(t.Context(), req)
			done <- err
		}()
	}
	waiting := func() string {
		return value(t, pool, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND "+inHere)
	}
	until(t, "claims wait for their turns", func() bool { return waiting() == "2" })
	time.Sleep(300 * time.Millisecond) // for the others to come as far, if they could
	if n := waiting(); n != "2" {
		t.Errorf("%s claims wait at the server", n)
	}
	complete(t, s, []pacht.JobInfo{job})
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range queues {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// The newest row is found at once, whatever an old snapshot keeps of the others.
func TestFloorsAreReadByTheirKey(t *testing.T) { // S061
	s, pool := newStore(t)
	execute(t, pool, `ALTER TABLE pacht.floors SET (autovacuum_enabled = off);
		INSERT INTO pacht.floors (queue, kinds, looked_at, priority, reached_at, until, run_at, job_id)
		SELECT 'default', 1, now() - n / 20 * interval '1 millisecond', 3, now() - n * interval '1 microsecond', now() + interval '1 minute', now(), n
		FROM generate_series(1, 20000) AS n`)
	defer execute(t, pool, "TRUNCATE pacht.floors")
	for _, mode := range planModes {
		if n, plan := rowsIn(t, s, pool, mode, s.sql.Reached, "'default', 1"); n > 40 || !strings.Contains(plan, "floors_pkey") {
			t.Errorf("%s deals with %d rows:\n%s", mode, n, plan)
		}
	}
}
