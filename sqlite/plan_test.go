package sqlite

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pacht-queue/pacht"
)

// plan explains a statement; its parameters stay unbound.
func plan(t *testing.T, s *Store, query string, parameters int) string {
	t.Helper()
	rows, err := texts(t.Context(), s.read, "EXPLAIN QUERY PLAN "+query, make([]any, parameters)...)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, r := range rows {
		lines = append(lines, r[3])
	}
	return strings.Join(lines, "\n")
}

// S062: no hot statement reads a table from end to end, or sorts.
func TestHotStatementsUseTheirIndexes(t *testing.T) {
	s := newStore(t)
	for name, c := range map[string]struct {
		query      string
		parameters int
	}{
		"claim": {s.sql.Claim, 9}, "claim_look": {s.sql.ClaimLook, 6}, "claimed_facts": {s.sql.ClaimedFacts, 1}, "settle_done": {s.sql.SettleDone, 2}, "finish_done": {s.sql.FinishDone, 1}, "claim_id": {s.sql.ClaimID, 3}, "claimed": {s.sql.Claimed, 1}, "renew": {s.sql.Renew, 3},
		"settle": {s.sql.Settle, 9}, "vacate": {s.sql.Vacate, 6}, "finish": {s.sql.Finish, 3}, "lost": {s.sql.Lost, 2},
		"expire": {s.sql.Expire, 3}, "key_find": {s.sql.KeyFind, 4}, "job": {s.sql.Job, 1}, "set_step": {s.sql.StepSet, 5},
		"jobs_ended_badly": {s.sql.JobsEndedBadly, 5}, "answer_effect": {s.sql.AnswerEffect, 8}, "effects": {s.sql.Effects, 1}, "open_effects": {s.sql.OpenEffects, 4},
	} {
		got := plan(t, s, c.query, c.parameters)
		for line := range strings.Lines(got) {
			if strings.Contains(line, "SCAN") && !strings.Contains(line, "SCAN json_each") && !strings.Contains(line, "SCAN b VIRTUAL") && !strings.Contains(line, "SCAN c VIRTUAL") && !strings.Contains(line, "SCAN (subquery") {
				t.Errorf("%s reads from end to end: %s\n%s", name, line, got)
			}
		}
		if name == "open_effects" && !strings.Contains(got, "pacht_effects_open") {
			t.Errorf("%s reads those with an answer too:\n%s", name, got)
		}
		if name == "claim" || name == "claim_look" {
			for _, walk := range []string{"run_at=? AND job_id>?", "run_at>? AND run_at<?"} {
				if strings.Contains(got, "TEMP B-TREE") || strings.Count(got, "pacht_leases_claim (queue=? AND priority=? AND "+walk+")") != 1 {
					t.Errorf("%s:\n%s", name, got)
				}
			}
		}
	}
}

// R1: a better priority goes first, rows that are parked or not due are passed over, and no
// more are taken than asked.
func TestAClaimStopsAtItsLimitBesideManyRowsItMayNotTake(t *testing.T) {
	s := newStore(t)
	columns := "(job_id, run_at, status, max_attempts, ttl_ms, max_crashes, priority, crash_policy, queue, kind)"
	fill := "INSERT INTO pacht_leases " + columns + " WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 3000) SELECT %d + i, %s, '%s', 5, 60000, 3, 1, 'retry', 'default', 'charge' FROM n"
	tamper(t, s,
		fmt.Sprintf(fill, 1_000_000, "253402300799999", "Stuck"),
		fmt.Sprintf(fill, 2_000_000, "4000000000000", "Pending"))
	var want []pacht.ID
	for _, priority := range []int{4, 2, 3, 1} {
		j := newJob(priority)
		j.Priority = priority
		answers, err := s.Enqueue(t.Context(), []pacht.NewJob{j, j})
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, answers[0].ID, answers[1].ID)
	}
	want = []pacht.ID{want[6], want[7], want[2], want[3], want[4]}
	jobs := mustClaim(t, s, "a", 5)
	var got []pacht.ID
	for _, j := range jobs {
		got = append(got, j.ID)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("claimed %v, want %v", got, want)
	}
}

// Ids are never reused: an old key, a report or a log line cannot mean another job.
func TestIDsAreNotReusedAfterAPrune(t *testing.T) {
	s := newStore(t)
	ids := mustEnqueue(t, s, 3)
	for _, j := range mustClaim(t, s, "a", 3) {
		mustSettle(t, s, j.Ref(), pacht.OutcomeCompleted)
	}
	n, err := s.Prune(t.Context(), pacht.PruneRequest{Status: pacht.Completed, Limit: 10})
	if err != nil || n != 3 {
		t.Fatalf("pruned %d, %v", n, err)
	}
	if next := mustEnqueue(t, s, 1)[0]; next <= ids[2] {
		t.Errorf("id %d again, after %v", next, ids)
	}
	mustCheck(t, s)
}
