package postgres

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
)

// floorAt makes the store believe that its claims have got to
// this job.
func floorAt(s *Store, j pacht.JobInfo) {
	at := s.floors.start(request("owner", 1))
	at.full = true
	s.floors.learn(at, clock.Now(), false, pacht.Claims{Now: j.ClaimedAt, Jobs: []pacht.JobInfo{j}})
}

func claimIDs(t *testing.T, s *Store, limit int) []pacht.ID {
	t.Helper()
	var ids []pacht.ID
	for _, j := range claim(t, s, limit) {
		ids = append(ids, j.ID)
	}
	return ids
}

func TestFloorIsOnlyAHint(t *testing.T) { // R1, S061
	s, _ := newStore(t)
	ids := enqueue(t, s, 6)
	last, err := s.Job(t.Context(), ids[5])
	if err != nil {
		t.Fatal(err)
	}
	floorAt(s, last)
	if got := claimIDs(t, s, 1); got[0] != ids[5] {
		t.Errorf("claimed %v from a floor at %d", got, ids[5])
	}
	// Short of the limit from the floor on: the same call looks from the start.
	if got := claimIDs(t, s, 2); len(got) != 2 || got[0] != ids[0] || got[1] != ids[1] {
		t.Errorf("claimed %v behind the floor", got)
	}
	if got := claimIDs(t, s, 10); len(got) != 3 {
		t.Errorf("claimed %v of the three that were left", got)
	}
}

func TestRowsBehindTheFloorWaitNoLongerThanItsBound(t *testing.T) { // S061
	s, _ := newStore(t)
	ids := enqueue(t, s, 400)
	middle, err := s.Job(t.Context(), ids[10])
	if err != nil {
		t.Fatal(err)
	}
	floorAt(s, middle)
	taken := 0
	until(t, "the first job is looked for", func() bool {
		got := claimIDs(t, s, 1)
		if taken++; taken > 380 {
			t.Fatal("the first job came only when no others were left")
		}
		return got[0] == ids[0]
	})
}

// Where much that is dead is in the way, an idle worker must not do nothing but look. What is put back is
// looked for a tenth of the time, what is new is found at once, and so is what the store has released itself.
func TestLooksThatTakeLongAreMadeATenthOfTheTime(t *testing.T) { // S061
	s, pool := newStore(t)
	ids := settledDown(t, s, 4)
	execute(t, pool, fmt.Sprintf(`
		CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.2); RETURN NEW; END';
		CREATE TRIGGER slow BEFORE UPDATE ON pacht.leases FOR EACH ROW
			WHEN (OLD.job_id IN (%d, %d) AND NEW.status = 'Processing') EXECUTE FUNCTION slow()`, ids[0], ids[3]))
	jobs := claim(t, s, 10)
	if len(jobs) != 4 {
		t.Fatalf("claimed %v", jobs)
	}
	putBack(t, pool, ids[0])
	began := time.Now()
	if got := claimIDs(t, s, 10); len(got) != 1 || got[0] != ids[0] {
		t.Errorf("claimed %v after a single look that took long, want %d", got, ids[0])
	}
	looked := time.Now()
	took := looked.Sub(began)
	early := func() bool { return time.Since(looked) < time.Second }
	putBack(t, pool, ids[3])
	if got := claimIDs(t, s, 10); len(got) > 0 && early() {
		t.Errorf("claimed %v: there was another look at once", got)
	}
	fresh := enqueue(t, s, 1)[0]
	if got := claimIDs(t, s, 10); len(got) != 1 || got[0] != fresh {
		t.Errorf("claimed %v, want the new job %d", got, fresh)
	}
	until(t, "what was put back is found", func() bool { return slices.Contains(claimIDs(t, s, 10), ids[3]) })
	if waited := time.Since(looked); early() || waited > lookRest*took+3*time.Second {
		t.Errorf("the next look came after %s, want ten times %s", waited, took)
	}
	looked = time.Now()
	putBack(t, pool, ids[1])
	if got := claimIDs(t, s, 10); len(got) > 0 && early() {
		t.Errorf("claimed %v: nothing of the look is known any more", got)
	}
	if _, err := s.Settle(t.Context(), settlements(jobs[2:3], pacht.OutcomeReleased)); err != nil {
		t.Fatal(err)
	}
	if got := claimIDs(t, s, 10); !slices.Equal(got, ids[1:3]) {
		t.Errorf("claimed %v, want what this store has released, and what another look finds: %v", got, ids[1:3])
	}
}

func TestReleasedJobKeepsItsPlaceWhateverTheFloor(t *testing.T) { // R5, S061
	s, _ := newStore(t)
	ids := enqueue(t, s, 5)
	jobs := claim(t, s, 2)
	floorAt(s, jobs[1])
	if _, err := s.Settle(t.Context(), settlements(jobs[:1], pacht.OutcomeReleased)); err != nil {
		t.Fatal(err)
	}
	if got := claimIDs(t, s, 1); got[0] != ids[0] {
		t.Errorf("claimed %v, want the released %d", got, ids[0])
	}
	floorAt(s, jobs[1])
	if _, err := s.Release(t.Context(), pacht.Ref{Job: ids[0], Token: 2}, pacht.Act{By: "me", Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	if got := claimIDs(t, s, 1); got[0] != ids[0] {
		t.Errorf("claimed %v, want the released %d", got, ids[0])
	}
}

// Turns cost an idle worker a round trip for nothing; what few jobs say that were asked for as few
// must not be taken for an empty queue.
func TestOnlyAClaimThatCameShortWithFewJobsMakesTheNextAskForNoTurn(t *testing.T) {
	s, pool := newStore(t)
	isThin := func(limit int) bool { return s.floors.start(request("owner", limit)).depth == thin }
	enqueue(t, s, 300)
	if claim(t, s, 20); isThin(100) {
		t.Error("20 jobs came of 20 that were asked for, and the queue counts as thin")
	}
	if claim(t, s, 500); isThin(100) {
		t.Error("280 jobs came, and the queue counts as thin")
	}
	if !inTurn(s.floors.start(request("owner", 1)).depth, 1) {
		t.Error("280 jobs came, and the next claim of a single one asks for no turn")
	}
	if claim(t, s, 500); !isThin(100) {
		t.Error("no job came, and the queue does not count as thin")
	}
	if s.floors.start(pacht.ClaimRequest{Owner: "owner", Queue: "other", Kinds: request("owner", 1).Kinds, Limit: 100}).depth == thin {
		t.Error("another queue counts as thin")
	}
	keepTurn(t, s, pool)
	enqueue(t, s, 200)
	from := time.Now()
	if got := claim(t, s, 100); len(got) != 100 || time.Since(from) >= gateTimeout {
		t.Errorf("%d jobs after %s: it waited for a turn", len(got), time.Since(from))
	}
	if isThin(100) {
		t.Error("100 jobs came, and the queue still counts as thin")
	}
}
