package sqlite

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
)

// floorAt makes the store believe that looks from the start are slow, that the last one began
// just now, and that it has got to this job.
func floorAt(s *Store, j pacht.JobInfo, took time.Duration) {
	s.floors.reset()
	l := s.floors.start(claimRequest("a", 1))
	var found [pacht.MaxPriority]*place
	found[j.Priority-1] = &place{j.RunAt.UnixMilli(), int64(j.ID)}
	s.floors.learn(l, j.RunAt.UnixMilli(), found)
	fl := s.floors.by[l.key]
	fl.took, fl.looked = took, clock.Now()
}

func claimedIDs(t *testing.T, s *Store, limit int) (ids []pacht.ID) {
	t.Helper()
	for _, j := range mustClaim(t, s, "a", limit) {
		ids = append(ids, j.ID)
	}
	return ids
}

func mustJob(t *testing.T, s *Store, id pacht.ID) pacht.JobInfo {
	t.Helper()
	j, err := s.Job(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// S061, R1: a claim starts where the last look found something; what is behind is found by the
// next look from the start, which comes within its bound.
func TestRowsBehindTheFloorWaitNoLongerThanItsBound(t *testing.T) {
	s := newStore(t)
	ids := mustEnqueue(t, s, 6)
	floorAt(s, mustJob(t, s, ids[4]), 2*lookIsSlow)
	if got := claimedIDs(t, s, 10); !slices.Equal(got, ids[4:]) {
		t.Errorf("claimed %v from a floor at %d", got, ids[4])
	}
	began := time.Now()
	eventually(t, "the jobs behind are found", func() bool {
		return slices.Equal(claimedIDs(t, s, 10), ids[:4])
	})
	if waited := time.Since(began); waited > lookEvery+5*time.Second {
		t.Errorf("waited %s", waited)
	}
}

// S061, R5: this store knows what it has put back itself.
func TestAReleasedJobKeepsItsPlaceWhateverTheFloor(t *testing.T) {
	s := newStore(t)
	ids := mustEnqueue(t, s, 5)
	held := mustClaim(t, s, "a", 2)
	floorAt(s, mustJob(t, s, ids[2]), time.Hour)
	mustSettle(t, s, held[0].Ref(), pacht.OutcomeReleased)
	if got := claimedIDs(t, s, 1); got[0] != ids[0] {
		t.Errorf("claimed %v, want the released %d", got, ids[0])
	}
	floorAt(s, mustJob(t, s, ids[2]), time.Hour)
	if _, err := s.Release(t.Context(), held[1].Ref(), pacht.Act{By: "me", Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	if got := claimedIDs(t, s, 1); got[0] != ids[1] {
		t.Errorf("claimed %v, want the released %d", got, ids[1])
	}
}

// S061: new jobs are found at once, in the order of their priorities, while an idle claimer
// spares itself the long look from the start.
func TestAnIdleClaimerLooksFromTheStartAFewPerCentOfTheTime(t *testing.T) {
	s := newStore(t)
	old := mustEnqueue(t, s, 1)
	floorAt(s, pacht.JobInfo{ID: 1 << 40, Priority: 3, RunAt: time.Now()}, time.Hour)
	for range 20 {
		if got := claimedIDs(t, s, 1); len(got) > 0 {
			t.Fatalf("claimed %v: a look from the start that takes an hour is made again at once", got)
		}
	}
	urgent := newJob(1)
	urgent.Priority = 1
	answers, err := s.Enqueue(t.Context(), []pacht.NewJob{urgent})
	if err != nil {
		t.Fatal(err)
	}
	if got := claimedIDs(t, s, 1); len(got) != 1 || got[0] != answers[0].ID {
		t.Errorf("claimed %v, want the new job %d", got, answers[0].ID)
	}
	s.floors.reset()
	if got := claimedIDs(t, s, 1); !slices.Equal(got, old) {
		t.Errorf("claimed %v, want %v", got, old)
	}
}

// A job that another process puts back while this one looks is not put behind the floor by
// what the look has seen before.
func TestALookFromBeforeAResetTeachesNothing(t *testing.T) {
	var f floors
	req := claimRequest("a", 1)
	l := f.start(req)
	f.reset()
	f.start(req)
	f.learn(l, 1000, [pacht.MaxPriority]*place{{7, 7}})
	f.taken(l, 1, place{8, 8})
	if from := f.by[l.key].from; from != fromBottom() {
		t.Errorf("floor %v", from)
	}
	for i := range 3 * mostFloors {
		req.Queue = fmt.Sprint("q", i)
		f.start(req)
	}
	if len(f.by) > mostFloors {
		t.Errorf("%d floors are remembered", len(f.by))
	}
}

// crowds are rows at the head of the queue that a claim of kind "charge" may not take.
var crowds = map[string]string{
	"future at a better priority": "SELECT 10000000 + i, 4000000000000, 'Pending', 0, 0, NULL, NULL, NULL, 5, 60000, 3, 1, 'retry', 'default', 'charge' FROM n",
	"parked":                      "SELECT 20000000 + i, 253402300799999, 'Stuck', 1, 1, NULL, NULL, NULL, 5, 60000, 3, 1, 'retry', 'default', 'charge' FROM n",
	"held":                        "SELECT 30000000 + i, 1, 'Processing', 1, 1, 'other', 1, 4000000000000, 5, 60000, 3, 3, 'retry', 'default', 'charge' FROM n",
	"of a kind nobody knows":      "SELECT 40000000 + i, 2, 'Pending', 0, 0, NULL, NULL, NULL, 5, 60000, 3, 3, 'retry', 'default', 'foreign' FROM n",
}

func crowd(tb testing.TB, s *Store, what string, n int) {
	tb.Helper()
	_, err := s.DB().ExecContext(tb.Context(), fmt.Sprintf("WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < %d) "+
		"INSERT INTO pacht_leases (job_id, run_at, status, token, attempt, lease_owner, claimed_at, lease_until, max_attempts, ttl_ms, max_crashes, priority, crash_policy, queue, kind) ", n)+
		crowds[what])
	if err != nil {
		tb.Fatal(err)
	}
}

// claimCost is the CPU time of 40 claims of 10 jobs, after the first one: the neighbours of a
// machine hardly change it.
func claimCost(t *testing.T, s *Store) time.Duration {
	t.Helper()
	mustEnqueue(t, s, 410)
	var before time.Duration
	for i := range 41 {
		if got := claimedIDs(t, s, 10); len(got) != 10 {
			t.Fatalf("claimed %v", got)
		}
		if i == 0 {
			before = cpu(t)
		}
	}
	return cpu(t) - before
}

// S061, R1: rows at the head of a queue that a claim may not take make it wait once, not each time,
// and it does not walk over them while it holds the write lock.
func TestClaimsAreQuickBesideManyRowsTheyMayNotTake(t *testing.T) {
	quiet := newStore(t)
	base := claimCost(t, quiet)
	for what := range crowds {
		t.Run(what, func(t *testing.T) {
			// Not newStore: rows without a job are no state that Check knows.
			s := benchStore(t)
			crowd(t, s, what, 6_000)
			cost := claimCost(t, s)
			t.Logf("40 claims cost %s of CPU, and %s from a queue without them", cost, base)
			if cost > 2*base+100*time.Millisecond {
				t.Errorf("40 claims cost %s of CPU, and %s from a queue without them", cost, base)
			}
			mustEnqueue(t, s, 1) // behind the crowd
			err := s.write(t.Context(), "claim", false, func(ctx context.Context, w *work) error {
				jobs, err := s.takePriority(ctx, w, claimRequest("a", 1), `["charge"]`, 3, bottom, 1)
				if len(jobs) > 0 && (what == "held" || what == "of a kind nobody knows") {
					t.Errorf("walked over 6,000 rows to %s while the file was locked", jobs[0].Ref())
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}
