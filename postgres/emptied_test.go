package postgres

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pacht-queue/pacht"
)

// S062: a queue that is steadily emptied is vacuumed at a moment when there is no row in it.
// The planner then takes each of its indexes for one page, whatever comes afterwards, and all
// plans for equally good. None may be one that reads the queue for each job.
func TestPlansHoldAfterAVacuumOfAnEmptyQueue(t *testing.T) {
	s, pool := newStore(t)
	execute(t, pool, `ALTER TABLE pacht.leases SET (autovacuum_enabled = off, vacuum_truncate = off)`)
	enqueue(t, s, 4000)
	execute(t, pool, "DELETE FROM pacht.leases; DELETE FROM pacht.jobs")
	execute(t, pool, "VACUUM ANALYZE pacht.leases")
	if n := value(t, pool, "SELECT reltuples::int FROM pg_class WHERE oid = 'pacht.leases'::regclass"); n != "0" {
		t.Fatalf("the planner knows of %s rows", n)
	}
	enqueue(t, s, 4000)
	plansHold(t, s)
}

// S062: the same, where the statistics come from a moment when workers held all there was. The
// planner then expects no Pending row, and a scan of the whole table and a sort of what it finds
// cost it nothing.
func TestPlansHoldAfterAnAnalyzeWhileEverythingWasHeld(t *testing.T) {
	s, pool := newStore(t)
	execute(t, pool, `ALTER TABLE pacht.leases SET (autovacuum_enabled = off)`)
	enqueue(t, s, 6000)
	execute(t, pool, `UPDATE pacht.leases SET status = 'Processing', token = 1, attempt = 1, lease_owner = 'x', claimed_at = now(), lease_until = now() + interval '1 minute'`)
	execute(t, pool, "VACUUM ANALYZE pacht.leases, pacht.jobs")
	enqueue(t, s, 4000)
	plansHold(t, s)
}

// plansHold claims some jobs and looks at the plans of the hot statements.
func plansHold(t *testing.T, s *Store) {
	t.Helper()
	var jobs, tokens []int64
	for _, j := range claim(t, s, 500) {
		jobs, tokens = append(jobs, int64(j.ID)), append(tokens, int64(j.Token))
	}
	same := func(text string) []string { return strings.Split(strings.Repeat(text+" ", len(jobs)-1)+text, " ") }
	none := make([]string, len(jobs))
	no := make([]bool, len(jobs))
	for name, st := range map[string]stmt{
		"claim":    {sql: s.sql.Claim, args: append(append([]any{"o", pacht.DefaultQueue, []string{"charge"}, int64(500)}, floorArgs(fromBottom())...), int64(0), int64(1), nil, int64(0), int64(0))},
		"claim id": {sql: s.sql.ClaimID, args: []any{"o", jobs[0], int64(0), int64(1)}},
		"renew":    {sql: s.sql.Renew, args: []any{jobs, tokens}},
		"complete": {sql: s.sql.Complete, args: []any{jobs, tokens}},
		"settle":   {sql: s.sql.Settle, args: []any{jobs, tokens, same("Failed"), make([]int64, len(jobs)), no, no, none, none}},
		"settled":  {sql: s.sql.Settled, args: []any{jobs, tokens, same("Failed"), none, false}},
		"prune":    {sql: s.sql.Prune, args: []any{jobs, "Completed", int64(0)}},
	} {
		text := bounded(t, s, st)
		for line := range strings.Lines(text) {
			byJob := strings.Contains(line, "leases_claim") && name != "claim"
			whole := strings.Contains(line, "Seq Scan on leases") || strings.Contains(line, "Seq Scan on jobs")
			if byJob || whole || strings.Contains(line, "Bitmap") || strings.Contains(line, "Sort Key: c.run_at") {
				t.Errorf("%s: %s\n%s", name, strings.TrimSpace(line), text)
				break
			}
		}
	}
}

// bounded explains a statement as a transaction of the store's own runs it, and undoes it.
func bounded(t *testing.T, s *Store, st stmt) string {
	t.Helper()
	var text strings.Builder
	err := pgx.BeginFunc(t.Context(), s.own, func(tx pgx.Tx) error {
		on := pgxSession{on: tx, mode: pgx.QueryExecModeCacheDescribe}
		if err := on.query(t.Context(), s.sql.Bounds, s.bounds(lockTimeout, 0, false), nil); err != nil {
			return err
		}
		// A plan that had to sort all the same looks dear enough to be compiled.
		if err := on.query(t.Context(), "SHOW jit", nil, func(scan scanner) error {
			var jit string
			err := scan(&jit)
			if jit != "off" {
				t.Error("statements of the store are compiled")
			}
			return err
		}); err != nil {
			return err
		}
		err := on.query(t.Context(), "EXPLAIN (ANALYZE, COSTS off, TIMING off) "+st.sql, st.args, func(scan scanner) error {
			var line string
			err := scan(&line)
			text.WriteString(line + "\n")
			return err
		})
		if err != nil {
			return err
		}
		return context.Canceled // undoes it
	})
	if err != context.Canceled {
		t.Fatal(err)
	}
	return text.String()
}
