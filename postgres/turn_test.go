package postgres

import (
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/pgtest"
)

// inARow yields n jobs with the numbers from 0.
func inARow(n int) iter.Seq[pacht.NewJob] {
	return func(yield func(pacht.NewJob) bool) {
		for i := 0; i < n && yield(pacht.New(charge{i})); i++ {
		}
	}
}

// three batches and a bit.
const manyJobs = 3*chunkJobs + copyLeast + 5

// turnsOn is a store on so many connections. At the commit of the first batch the server waits
// until the next one has drawn its ids, so long at most, and then runs PL/pgSQL.
func turnsOn(t *testing.T, connections int32, wait time.Duration, then string) (*Store, *pgxpool.Pool) {
	t.Helper()
	url := pgtest.Database(t)
	s, _ := storeAt(t, url, Config{}, func(c *pgxpool.Config) { c.MaxConns = connections })
	pool := poolAt(t, url)
	execute(t, pool, fmt.Sprintf(`
		CREATE SEQUENCE tries;
		CREATE FUNCTION at_commit() RETURNS trigger LANGUAGE plpgsql AS $$
		DECLARE
			drawn bool;
		BEGIN
			FOR i IN 1..%d LOOP
				SELECT last_value > %d INTO drawn FROM pacht.jobs_job_id_seq;
				EXIT WHEN drawn;
				PERFORM pg_sleep(0.01);
			END LOOP;
			%s
			RETURN NULL;
		END $$;
		CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON pacht.jobs DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW WHEN (NEW.args->>'n' = '7') EXECUTE FUNCTION at_commit()`, wait.Milliseconds()/10, chunkJobs, then))
	return s, pool
}

// inOrder asserts that the first n numbers are stored, with ids and times in their order.
func inOrder(t *testing.T, pool *pgxpool.Pool, n int) {
	t.Helper()
	got := value(t, pool, `SELECT concat_ws(' ', count(*), count(*) FILTER (WHERE n = place), count(*) FILTER (WHERE run_at < before))
		FROM (
			SELECT (args->>'n')::int AS n, row_number() OVER (ORDER BY job_id) - 1 AS place, run_at, lag(run_at) OVER (ORDER BY job_id) AS before
			FROM pacht.jobs
		) AS j`)
	if want := fmt.Sprintf("%d %d 0", n, n); got != want {
		t.Errorf("jobs, those in their place, those of a time before the last one's: %s, want %s", got, want)
	}
}

func TestTwoBatchesAreOnTheirWayIfAConnectionIsLeftAndCommittedInOrder(t *testing.T) {
	for connections, wait := range map[int32]time.Duration{1: 100 * time.Millisecond, 2: 100 * time.Millisecond, 3: 5 * time.Second, 8: 5 * time.Second} {
		t.Run(fmt.Sprintf("%d connections", connections), func(t *testing.T) {
			s, pool := turnsOn(t, connections, wait, fmt.Sprintf("ASSERT drawn = %t, 'the second batch';", connections > 2))
			n, err := pacht.NewClient(s).EnqueueMany(t.Context(), inARow(manyJobs))
			if err != nil || n != manyJobs {
				t.Errorf("%d stored, %v", n, err)
			}
			inOrder(t, pool, manyJobs)
		})
	}
}

func TestNothingIsCommittedAfterABatchThatFailed(t *testing.T) {
	s, pool := turnsOn(t, 4, 5*time.Second, "ASSERT drawn; RAISE 'the first batch';")
	n, err := pacht.NewClient(s).EnqueueMany(t.Context(), inARow(manyJobs))
	if n != 0 || err == nil || !strings.Contains(err.Error(), "the first batch") || strings.Contains(err.Error(), "before") {
		t.Errorf("%d stored, %v", n, err)
	}
	inOrder(t, pool, 0)
	if n := value(t, pool, "SELECT last_value FROM pacht.jobs_job_id_seq"); n != fmt.Sprint(2*chunkJobs) {
		t.Errorf("ids were drawn up to %s: the second batch had begun, and no third", n)
	}
	if n, err := pacht.NewClient(s).EnqueueMany(t.Context(), inARow(7)); n != 7 || err != nil {
		t.Errorf("a store that cannot be used any more: %d, %v", n, err)
	}
}

func TestABatchThatIsTriedAgainIsStillCommittedBeforeTheNext(t *testing.T) {
	s, pool := turnsOn(t, 4, 5*time.Second, "ASSERT drawn; IF nextval('tries') = 1 THEN RAISE SQLSTATE '40001'; END IF; ASSERT (SELECT count(*) FROM pacht.jobs) = 5000;")
	n, err := pacht.NewClient(s).EnqueueMany(t.Context(), inARow(manyJobs))
	if err != nil || n != manyJobs {
		t.Errorf("%d stored, %v", n, err)
	}
	allStored(t, pool)
}

// allStored asserts that each number is stored once, in whatever order.
func allStored(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	if n := value(t, pool, "SELECT count(DISTINCT args->>'n') || ' ' || count(*) FROM pacht.jobs"); n != fmt.Sprintf("%d %d", manyJobs, manyJobs) {
		t.Errorf("different jobs and jobs: %s, want %d of each", n, manyJobs)
	}
}

// Whoever waits for its turn with a connection gives it back, if its turn does not come: the batch
// before may have lost its own.
func TestABatchWhoseTurnDoesNotComeGivesItsConnectionBack(t *testing.T) {
	s, pool := turnsOn(t, 3, 5*time.Second, "ASSERT drawn; IF nextval('tries') = 1 THEN PERFORM pg_sleep(0.5); RAISE SQLSTATE '40001'; END IF;")
	type result struct {
		n   int64
		err error
	}
	done := make(chan result, 1)
	go func() {
		n, err := pacht.NewClient(s).EnqueueMany(t.Context(), inARow(manyJobs))
		done <- result{n, err}
	}()
	// Others take the third connection, and the one that the first batch loses.
	until(t, "the first batch is at its commit", func() bool { return value(t, pool, "SELECT is_called FROM tries") == "true" })
	for range 2 {
		conn, err := s.pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
	}
	if got := <-done; got.err != nil || got.n != manyJobs {
		t.Errorf("%d stored, %v", got.n, got.err)
	}
	allStored(t, pool)
	if n := value(t, pool, "SELECT sessions_fatal FROM pg_stat_database WHERE datname = current_database()"); n != "0" {
		t.Errorf("the server ended %s sessions: they waited too long", n)
	}
}

// With keys two batches could wait for each other: one that has them waits for its turn with nothing.
func TestABatchWithKeysBeginsWhenItsTurnHasCome(t *testing.T) {
	s, pool := turnsOn(t, 4, 100*time.Millisecond, "ASSERT NOT drawn, 'the second batch'; RAISE 'the first batch';")
	n, err := pacht.NewClient(s).EnqueueMany(t.Context(), func(yield func(pacht.NewJob) bool) {
		n := 0
		for j := range inARow(manyJobs) {
			if n++; n > chunkJobs {
				j.Key = string(j.Args)
			}
			if !yield(j) {
				return
			}
		}
	})
	if n != 0 || err == nil || !strings.Contains(err.Error(), "the first batch") {
		t.Errorf("%d stored, %v", n, err)
	}
	inOrder(t, pool, 0)
}
