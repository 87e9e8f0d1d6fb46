package postgres

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
)

func sweepAll(t *testing.T, s *Store, target pacht.Target) (removed, refused, pages int) {
	t.Helper()
	for {
		got, err := s.Sweep(t.Context(), pacht.SweepRequest{By: "m", Target: target, Limit: 100, Period: time.Second, Force: true})
		if err != nil {
			t.Fatal(err)
		}
		removed, refused, pages = removed+got.Removed, refused+got.Refused, pages+1
		if !got.More {
			return removed, refused, pages
		}
	}
}

func TestRowsThatTheDatabaseRefusesToDeleteStopNoSweep(t *testing.T) { // R12
	s, pool := newStore(t)
	ids := enqueue(t, s, 40)
	complete(t, s, claim(t, s, 40))
	execute(t, pool, fmt.Sprintf(`CREATE TABLE receipts (job_id bigint REFERENCES pacht.jobs (job_id));
		INSERT INTO receipts VALUES (%d), (%d)`, ids[0], ids[23]))
	if removed, refused, _ := sweepAll(t, s, pacht.SweepCompleted); removed != 38 || refused != 2 {
		t.Errorf("removed %d, refused %d", removed, refused)
	}
	for _, id := range []pacht.ID{ids[0], ids[23]} { // whole, with their ledger
		if list, err := s.Attempts(t.Context(), id); err != nil || len(list) != 1 {
			t.Errorf("job %d: %v, %v", id, list, err)
		}
	}
	check(t, s)
}

func TestSweepsReadNoTableFromEndToEnd(t *testing.T) { // S062
	s, pool := stale(t, 3000)
	complete(t, s, claim(t, s, 1000))
	execute(t, pool, `INSERT INTO pacht.keys (scope, key, fingerprint, job_id, expires_at)
		SELECT '', 'k' || i, '\x00', 1, now() + interval '1 hour' FROM generate_series(1, 20000) AS i; ANALYZE pacht.keys`)
	for name, each := range map[string]struct{ sql, args, uses string }{
		"completed":   {s.sql.PruneCompleted, "500, 100, 0, 100", `jobs_pkey`},
		"ended badly": {s.sql.PruneBadly, "'Dead', 0, 0, 100, 0, 100", "attempts_ended_badly"},
		"delete":      {s.sql.Prune, "ARRAY[1, 2, 3], 'Completed', 0", "attempts_pkey on attempts a_2"},
		"keys":        {s.sql.SweepKeys, `0, 10, 0, 100, '"pacht"."keys"'`, "Tid Range Scan on keys"},
	} {
		conn, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; PREPARE p AS "+each.sql); err != nil {
			t.Fatal(err)
		}
		rows, err := conn.Query(t.Context(), "EXPLAIN EXECUTE p ("+each.args+")")
		if err != nil {
			t.Fatal(err)
		}
		var plan strings.Builder
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				t.Fatal(err)
			}
			plan.WriteString(line + "\n")
		}
		if _, err := conn.Exec(t.Context(), "DEALLOCATE p"); err != nil || rows.Err() != nil {
			t.Fatal(err, rows.Err())
		}
		conn.Release()
		if got := plan.String(); !strings.Contains(got, each.uses) || strings.Contains(got, "Seq Scan") {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}

// A look of keys goes slice by slice, and finds all that has expired.
func TestExpiredKeysGoSliceBySlice(t *testing.T) { // R11
	s, pool := newStore(t)
	open := enqueue(t, s, 1)[0]
	execute(t, pool, fmt.Sprintf(`INSERT INTO pacht.keys (scope, key, fingerprint, job_id, expires_at)
		SELECT '', 'k' || i, '\x00', CASE WHEN i %% 10 = 0 THEN %d ELSE %d END, now() + (i %% 2 * 2 - 1) * interval '1 hour' FROM generate_series(1, 10000) AS i`, open, open+1000))
	removed, _, pages := sweepAll(t, s, pacht.SweepKeys)
	if removed != 4000 || pages < 40 { // of the 5,000 with an even number a fifth belongs to the open job
		t.Errorf("removed %d in %d pages", removed, pages)
	}
	if n := value(t, pool, "SELECT count(*) FROM pacht.keys"); n != "6000" {
		t.Errorf("%s keys are left", n)
	}
}

func TestSweepIsBoundedIfItsClientStopsInTheMiddle(t *testing.T) {
	s, pool := newStore(t)
	enqueue(t, s, 1)
	complete(t, s, claim(t, s, 1))
	execute(t, pool, `CREATE TABLE seen (idle text);
		CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO seen VALUES (current_setting('idle_in_transaction_session_timeout')); RETURN OLD; END $$;
		CREATE TRIGGER see BEFORE DELETE ON pacht.jobs FOR EACH ROW EXECUTE FUNCTION see()`)
	sweepAll(t, s, pacht.SweepCompleted)
	if got := value(t, pool, "SELECT idle FROM seen"); got != "10s" {
		t.Errorf("a stopped client would hold the turn for %s", got)
	}
}
