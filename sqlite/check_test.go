package sqlite

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
)

// tamper runs SQL by hand on a connection that checks no constraints, as old data would stand.
func tamper(t *testing.T, s *Store, queries ...string) {
	t.Helper()
	c, err := s.DB().Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	queries = append([]string{"PRAGMA ignore_check_constraints = 1"}, queries...)
	for _, q := range append(queries, "PRAGMA ignore_check_constraints = 0") {
		if _, err := c.ExecContext(t.Context(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

// Job 1 is Pending, 2 held, 3 Stuck, 4 Completed in its second attempt, 5 Dead.
func checkedStore(t *testing.T) *Store {
	s := newStore(t)
	mustEnqueue(t, s, 5)
	held := mustClaim(t, s, "a", 5)
	mustSettle(t, s, held[0].Ref(), pacht.OutcomeReleased)
	mustSettle(t, s, held[2].Ref(), pacht.OutcomeUnknown)
	mustSettle(t, s, held[3].Ref(), pacht.OutcomeSnoozed)
	if _, err := s.Settle(t.Context(), []pacht.Settlement{{Ref: held[4].Ref(), Outcome: pacht.OutcomeFailed, Permanent: true}}); err != nil {
		t.Fatal(err)
	}
	again, ok, err := s.ClaimID(t.Context(), "b", held[3].ID)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	mustSettle(t, s, again.Ref(), pacht.OutcomeCompleted)
	if err := s.SetStep(t.Context(), held[1].Ref(), "reached", nil); err != nil {
		t.Fatal(err)
	}
	mustCheck(t, s)
	return s
}

func mustSettle(t *testing.T, s *Store, ref pacht.Ref, outcome pacht.Outcome) pacht.Settled {
	t.Helper()
	answers, err := s.Settle(t.Context(), []pacht.Settlement{{Ref: ref, Outcome: outcome}})
	if err != nil || answers[0].Err != nil {
		t.Fatalf("settle %s as %s: %+v, %v", ref, outcome, answers, err)
	}
	return answers[0]
}

func TestCheckFindsEachRowThatNoRuleAllows(t *testing.T) {
	const ledger = "INSERT INTO pacht_attempts (job_id, token, claimed_at, ended_at, next_run_at, attempt, outcome, next_status, owner) VALUES "
	cases := []struct {
		rule string
		job  pacht.ID
		do   string
		says string
	}{
		{"R1", 1, "DELETE FROM pacht_leases WHERE job_id = 1", "neither a lease nor a closing"},
		{"R1", 9, "INSERT INTO pacht_leases (job_id, run_at, max_attempts, ttl_ms, max_crashes, priority, crash_policy, queue, kind) VALUES (9, 0, 5, 1000, 3, 3, 'retry', 'default', 'charge')", "no job"},
		{"R1", 4, "INSERT INTO pacht_leases (job_id, token, run_at, max_attempts, ttl_ms, max_crashes, priority, crash_policy, queue, kind) VALUES (4, 2, 0, 25, 60000, 3, 3, 'retry', 'default', 'charge')", "finished as Completed"},
		{"R1", 5, "INSERT INTO pacht_leases (job_id, token, run_at, max_attempts, ttl_ms, max_crashes, priority, crash_policy, queue, kind) VALUES (5, 1, 0, 25, 60000, 3, 3, 'retry', 'default', 'charge')", "finished as Dead"},
		{"R1", 2, "UPDATE pacht_leases SET lease_until = NULL WHERE job_id = 2", "impossible"},
		{"R1", 2, "UPDATE pacht_leases SET lease_owner = NULL WHERE job_id = 2", "impossible"},
		{"R1", 2, "UPDATE pacht_leases SET lease_until = 253402300799999 WHERE job_id = 2", "impossible"},
		{"R1", 1, "UPDATE pacht_leases SET lease_owner = 'x' WHERE job_id = 1", "impossible"},
		{"R1", 3, "UPDATE pacht_leases SET run_at = 5 WHERE job_id = 3", "impossible"},
		{"R2", 1, "UPDATE pacht_leases SET token = 0 WHERE job_id = 1", "behind token 1"},
		{"R2", 4, "UPDATE pacht_attempts SET token = 3 WHERE job_id = 4 AND token = 2", "not the one before"},
		{"R2", 4, "DELETE FROM pacht_jobs WHERE job_id = 4", "history without its job"},
		{"R3", 2, "UPDATE pacht_steps SET token = 7", "never taken"},
		{"R4", 2, ledger + "(2, 1, 0, 0, 0, 1, 'Released', 'Pending', 'a')", "which the ledger has closed"},
		{"R4", 2, "UPDATE pacht_leases SET token = 3 WHERE job_id = 2", "the ledger ends at 0"},
		{"R4", 1, "DELETE FROM pacht_attempts WHERE job_id = 1", "the ledger ends at 0"},
		{"R4", 3, "UPDATE pacht_leases SET status = 'Pending', run_at = 0 WHERE job_id = 3", "its last closing says Stuck"},
		{"R4", 4, ledger + "(4, 3, 0, 0, NULL, 1, 'Failed', 'Dead', 'a')", "after the job was Completed"},
		{"R4", 4, "UPDATE pacht_attempts SET outcome = 'Snoozed' WHERE job_id = 4 AND token = 2", "cannot lead to Completed"},
		{"R5", 2, "UPDATE pacht_leases SET attempt = 2 WHERE job_id = 2", "under token 1"},
		{"R5", 4, "UPDATE pacht_attempts SET attempt = 9 WHERE job_id = 4 AND token = 2", "attempt 9"},
		{"R6", 2, "UPDATE pacht_leases SET ttl_ms = 1000 WHERE job_id = 2", "not those of the job"},
		{"R7", 4, "INSERT INTO pacht_reports (job_id, token, at, outcome, owner) VALUES (4, 2, 0, 'Completed', 'a')", "never closed otherwise"},
		{"R9", 1, "UPDATE pacht_leases SET crashes = 3 WHERE job_id = 1", "crashes in a row"},
		{"R10", 3, "UPDATE pacht_attempts SET next_status = 'Dead' WHERE job_id = 3", "Unknown"},
		{"R3", 4, "INSERT INTO pacht_effects (job_id, name, first_called_at, key, reference, token, called_at) VALUES (4, 'charge', 0, 'k', 'r', 7, 0)", "never taken"},
		{"R10", 4, "INSERT INTO pacht_effects (job_id, name, first_called_at, key, reference, token, called_at) VALUES (4, 'charge', 0, 'k', 'r', 2, 0)", "has no answer"},
		{"R11", 1, "INSERT INTO pacht_keys VALUES ('', 'k', x'00', 1, 0)", "fingerprint"},
		{"R11", 77, "INSERT INTO pacht_keys VALUES ('', 'k', zeroblob(32), 77, 0)", "never stored"},
	}
	for i, c := range cases {
		t.Run(fmt.Sprintf("%s/%d", c.rule, i), func(t *testing.T) {
			t.Parallel()
			s := checkedStore(t)
			tamper(t, s, c.do)
			list, err := s.Check(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range list {
				if v.Rule == c.rule && v.Job == c.job && strings.Contains(v.Detail, c.says) {
					return
				}
			}
			t.Errorf("after %q it found %+v", c.do, list)
		})
	}
}

func TestCheckAllowsWhatRetryByHandLeavesBehind(t *testing.T) {
	s := checkedStore(t)
	for _, id := range []pacht.ID{3, 5} {
		if err := s.Retry(t.Context(), id, pacht.Act{By: "ann", Reason: "provider is back"}); err != nil {
			t.Fatal(err)
		}
	}
	mustCheck(t, s)
}

// R12, S024: one lease that the tables refuse to close stops neither the watcher nor a batch.
func TestOneBadRowStopsNeitherAPassNorASettle(t *testing.T) {
	s := newStore(t)
	mustEnqueue(t, s, 4)
	held := mustClaim(t, s, "a", 4)
	bad := held[1].Ref()
	tamper(t, s, fmt.Sprintf("INSERT INTO pacht_attempts (job_id, token, claimed_at, ended_at, next_run_at, attempt, outcome, next_status, owner) VALUES (%d, %d, 0, 0, 0, 1, 'Released', 'Pending', 'a')", bad.Job, bad.Token))
	answers, err := s.Settle(t.Context(), []pacht.Settlement{
		{Ref: held[0].Ref(), Outcome: pacht.OutcomeCompleted},
		{Ref: bad, Outcome: pacht.OutcomeCompleted},
		{Ref: held[2].Ref(), Outcome: pacht.OutcomeCompleted},
	})
	if err != nil || answers[0].Status != pacht.Completed || answers[1].Err == nil || answers[2].Status != pacht.Completed {
		t.Errorf("%+v, %v", answers, err)
	}
	if err := s.Age(t.Context(), 2*time.Minute); err != nil {
		t.Fatal(err)
	}
	pass, err := s.Expire(t.Context(), pacht.ExpireRequest{By: "w", Limit: 10, Period: time.Minute})
	if err != nil || len(pass.Expired) != 1 || pass.Expired[0].Ref != held[3].Ref() || len(pass.Locked) != 1 || pass.Locked[0] != bad {
		t.Errorf("%+v, %v", pass, err)
	}
}

// S024: a lease that never ends cannot be stored; if one stands there, the watcher repairs it.
func TestAPassClosesALeaseWithoutAnEnd(t *testing.T) {
	for _, change := range []string{"lease_until = NULL", "lease_until = 253402300799999", "lease_owner = NULL, lease_until = 5"} {
		s := newStore(t)
		mustEnqueue(t, s, 1)
		mustClaim(t, s, "a", 1)
		tamper(t, s, "UPDATE pacht_leases SET "+change)
		pass, err := s.Expire(t.Context(), pacht.ExpireRequest{By: "w", Limit: 10, Period: time.Minute, Force: true})
		if err != nil || len(pass.Expired) != 1 || pass.Expired[0].Next != pacht.Pending {
			t.Errorf("%s: %+v, %v", change, pass, err)
		}
		mustCheck(t, s)
	}
}
