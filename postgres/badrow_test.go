package postgres

import (
	"testing"
	"time"

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

func TestOneLeaseThatCannotBeClosedStopsNoWatcher(t *testing.T) { // R12
	s, pool := openAt(t, pgtest.Database(t), Config{})
	enqueue(t, s, 9)
	jobs := claim(t, s, 9)
	for _, i := range []int{3, 8} {
		execute(t, pool, `INSERT INTO pacht.attempts (job_id, token, claimed_at, ended_at, attempt, outcome, next_status, owner)
			VALUES (`+jobs[i].ID.String()+`, 1, now(), now(), 1, 'Completed', 'Completed', 'nobody')`)
	}
	if err := s.Age(t.Context(), 2*time.Minute); err != nil {
		t.Fatal(err)
	}
	pass, err := s.Expire(t.Context(), pacht.ExpireRequest{By: "w", Limit: 100, Period: time.Minute})
	if err != nil || !pass.Turn || len(pass.Expired) != 7 || pass.More != 0 || pass.Now.IsZero() {
		t.Fatalf("pass %+v, %v", pass, err)
	}
	if len(pass.Locked) != 2 || pass.Locked[0] != jobs[3].Ref() || pass.Locked[1] != jobs[8].Ref() {
		t.Errorf("not closed: %v", pass.Locked)
	}
	watch, err := s.Watch(t.Context())
	if wait := watch.NextAt.Sub(watch.PassedAt); err != nil || watch.PassedBy != "w" || wait < 20*watch.Took || wait < 10*time.Second {
		t.Errorf("the next pass after %s, stamp %+v, %v", wait, watch, err)
	}
	// Page by page, as a watcher with a low limit goes.
	var met int
	req := pacht.ExpireRequest{By: "w", Limit: 1, Period: time.Minute, Force: true}
	for pages := 0; pages == 0 || req.After != 0; pages++ {
		pass, err := s.Expire(t.Context(), req)
		if err != nil || pages > 3 {
			t.Fatalf("page %d: %+v, %v", pages, pass, err)
		}
		met += len(pass.Locked)
		req.After = pass.More
	}
	if met != 2 {
		t.Errorf("met %d of 2 by pages of one", met)
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
