package postgres

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pacht-queue/pacht"
)

// What a statement deals with is a matter of the jobs that it is asked about, and not of all that the
// tables hold, also where the planner has never counted their rows: by a join that loops over both,
// explaining a thousand busy rows took ten seconds, in which none of them left its slot.
func TestStatementsOfJobsReadNoHistory(t *testing.T) { // S063
	const rows, asked = 20000, 500
	list := func(each string) string {
		all := make([]string, asked)
		for i := range all {
			all[i] = strings.ReplaceAll(each, "N", strconv.Itoa(7*(i+1)))
		}
		return "'{" + strings.Join(all, ",") + "}'"
	}
	ids, tokens, texts, no := list("N"), list("1"), list(`""`), list("f")
	for _, analyzed := range []bool{false, true} {
		t.Run(fmt.Sprintf("counted when empty %t", analyzed), func(t *testing.T) {
			s, pool := newStore(t)
			for _, table := range []string{"jobs", "leases", "attempts", "keys", "reports"} {
				execute(t, pool, "ALTER TABLE pacht."+table+" SET (autovacuum_enabled = off)")
				if analyzed {
					execute(t, pool, "ANALYZE pacht."+table)
				}
			}
			for range rows / 5000 {
				enqueue(t, s, 5000)
			}
			// The first half is finished, but for each seventh; the second half waits.
			var done []pacht.JobInfo
			for _, j := range claim(t, s, rows/2) {
				if j.ID%7 != 0 {
					done = append(done, j)
				}
			}
			complete(t, s, done)
			execute(t, pool, `INSERT INTO pacht.keys (scope, key, fingerprint, job_id, expires_at)
				SELECT '', 'k' || job_id, decode(repeat('00', 32), 'hex'), job_id, now() - job_id % 2 * interval '1 day' FROM pacht.jobs`)
			statements := map[string]struct{ sql, args string }{
				"renew":    {s.sql.Renew, ids + ", " + tokens},
				"settle":   {s.sql.Settle, strings.Join([]string{ids, tokens, list("Failed"), list("0"), no, no, texts, texts}, ", ")},
				"complete": {s.sql.Complete, ids + ", " + tokens},
				"settled":  {s.sql.Settled, strings.Join([]string{ids, tokens, list("Failed"), texts, "true"}, ", ")},
				"keys":     {s.sql.Keys, texts + ", " + list("kN")},
				"prune":    {s.sql.Prune, ids + ", 'Completed', 0"},
				"cancel":   {s.sql.Cancel, "7, 'a', 'b'"},
				"retry":    {s.sql.Retry, "7, 'a', 'b'"},
				"job":      {s.sql.Job, "7"},
				"attempts": {s.sql.Attempts, "7"},
				"steps":    {s.sql.Steps, "7"},
				"effects":  {s.sql.Effects, "7"},
			}
			// These look for what they are to take or to show, once through a table at most.
			looks := map[string]struct{ sql, args string }{
				"prune keys":       {s.sql.PruneKeys, strconv.Itoa(asked)},
				"sweep keys":       {s.sql.SweepKeys, fmt.Sprintf("0, 1000, 0, %d, 'pacht.keys'", asked)},
				"unfinished jobs":  {s.sql.JobsUnfinished, "'', '', '', '', false, 0, 50"},
				"jobs":             {s.sql.JobsAny, "'', '', '', 0, 50"},
				"completed jobs":   {s.sql.JobsAny, "'Completed', '', '', 0, 50"},
				"jobs ended badly": {s.sql.JobsEndedBadly, "'Dead', '', '', 0, 50"},
			}
			for name, st := range statements {
				for _, mode := range planModes {
					if n, plan := rowsIn(t, s, pool, mode, st.sql, st.args); n > 30*asked {
						t.Errorf("%s of %d jobs, %s, deals with %d rows:\n%s", name, asked, mode, n, plan)
					}
				}
			}
			for name, st := range looks {
				for _, mode := range planModes {
					if n, plan := rowsIn(t, s, pool, mode, st.sql, st.args); n > 10*rows {
						t.Errorf("%s, %s, deals with %d rows:\n%s", name, mode, n, plan)
					}
				}
			}
		})
	}
}

var planModes = []string{"force_generic_plan", "force_custom_plan"}

var (
	rowsOf  = regexp.MustCompile(`actual rows=([\d.]+) loops=(\d+)`) // since PostgreSQL 18 with decimals
	removed = regexp.MustCompile(`Rows Removed by .*: (\d+)`)
)

// rowsIn answers how many rows the steps of a statement deal with, within the bounds of the store's
// own transactions. What it changes is undone.
func rowsIn(t *testing.T, s *Store, pool *pgxpool.Pool, mode, sql, args string) (n int, plan string) {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	if _, err := tx.Exec(t.Context(), s.sql.Bounds, s.bounds(lockTimeout, 0, false)...); err != nil {
		t.Fatal(err)
	}
	lines := "SET LOCAL plan_cache_mode = " + mode + "; PREPARE p AS " + sql
	if _, err := tx.Exec(t.Context(), lines, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	defer tx.Exec(t.Context(), "DEALLOCATE p", pgx.QueryExecModeSimpleProtocol)
	rows, err := tx.Query(t.Context(), "EXPLAIN (ANALYZE, COSTS off, TIMING off) EXECUTE p("+args+")", pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	loops := 0.0
	var all float64
	for _, line := range list {
		if m := rowsOf.FindStringSubmatch(line); m != nil {
			each, _ := strconv.ParseFloat(m[1], 64)
			loops, _ = strconv.ParseFloat(m[2], 64)
			all += each * loops
		}
		if m := removed.FindStringSubmatch(line); m != nil {
			each, _ := strconv.ParseFloat(m[1], 64)
			all += each * loops // of the step that stands above
		}
	}
	if loops == 0 {
		t.Fatalf("no step can be read in:\n%s", strings.Join(list, "\n"))
	}
	return int(all), strings.Join(list, "\n")
}
