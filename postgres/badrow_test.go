package postgres

import (
	"testing"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/pgtest"
)

func TestOneBadRowDoesNotStopTheOthersOfItsBatch(t *testing.T) { // R12
	s, pool := openAt(t, pgtest.Database(t), Config{})
	enqueue(t, s, 3)
	jobs := claim(t, s, 3)
	// A ledger row that no rule allows stands where the second job's is to go.
	execute(t, pool, `INSERT INTO pacht.attempts (job_id, token, claimed_at, ended_at, attempt, outcome, next_status, owner)
		SELECT job_id, token, now(), now(), 1, 'Completed', 'Completed', 'nobody' FROM pacht.leases ORDER BY job_id OFFSET 1 LIMIT 1`)
	answers, err := s.Settle(t.Context(), settlements(jobs, pacht.OutcomeCompleted))
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range answers {
		if bad := i == 1; (a.Err != nil) != bad || (a.Status == pacht.Completed) == bad {
			t.Errorf("row %d: %+v", i, a)
		}
	}
	found, err := s.Check(t.Context())
	if err != nil || len(found) == 0 {
		t.Errorf("check: %+v, %v", found, err)
	}
}

func TestCheckReadsALongHistoryQuickly(t *testing.T) {
	s, pool := newStore(t)
	execute(t, pool, `INSERT INTO pacht.jobs (job_id, created_at, run_at, ttl_ms, max_attempts, max_crashes, priority, crash_policy, queue, kind, args)
		SELECT n, now(), now(), 60000, 25, 3, 3, 'retry', 'default', 'charge', '{}' FROM generate_series(1, 100000) AS n;
		INSERT INTO pacht.attempts (job_id, token, claimed_at, ended_at, attempt, outcome, next_status, owner)
		SELECT n, 1, now(), now(), 1, 'Completed', 'Completed', 'w' FROM generate_series(1, 100000) AS n`)
	check(t, s) // without statistics, as after a restore; the package's time limit is the bound
}
