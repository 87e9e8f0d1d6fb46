package postgres

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/pgtest"
)

func TestEnqueueBySQLIsTheLibrarysEnqueue(t *testing.T) { // R6, R11
	for _, schema := range []string{"pacht", `o'ne"il`} {
		s, pool := storeAt(t, pgtest.Database(t), Config{Schema: schema})
		call := func(args string) string {
			t.Helper()
			return value(t, pool, "SELECT "+s.quoted+"enqueue("+args+")")
		}
		if err := s.SetQueue(t.Context(), "slow", pacht.QueueSettings{MaxAttempts: 7}, pacht.Act{By: "me", Reason: "test"}); err != nil {
			t.Fatal(err)
		}
		ours := enqueue(t, s, 1, pacht.IdempotencyKey("ours"))[0]
		if got := call(`'charge', '{"n":0}', key => 'ours'`); got != ours.String() {
			t.Errorf("the key of job %d answers %s", ours, got)
		}
		theirs := call(`'charge', '{"n":0}', 'slow', 1, key => 'theirs', ttl => interval '2 seconds', metadata => '{"a": 1}'`)
		if again := enqueue(t, s, 1, pacht.IdempotencyKey("theirs"))[0]; again.String() != theirs {
			t.Errorf("the key of job %s answers %d", theirs, again)
		}
		id, err := pacht.ParseID(theirs)
		if err != nil {
			t.Fatal(err)
		}
		j, err := s.Job(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintln(j.Queue, j.Priority, j.MaxAttempts, j.MaxCrashes, j.TTL, j.CrashPolicy, string(j.Args), string(j.Metadata)); got != "slow 1 7 3 2s retry {\"n\":0} {\"a\": 1}\n" {
			t.Errorf("job %s", got)
		}
		// An expired key of a finished job is free again; one of an unfinished job is not.
		if err := s.Age(t.Context(), 2*pacht.DefaultKeyLife); err != nil {
			t.Fatal(err)
		}
		if got := call(`'charge', '{"n":0}', key => 'theirs'`); got != theirs {
			t.Errorf("the key of an unfinished job answers %s, want %s", got, theirs)
		}
		complete(t, s, claim(t, s, 10))
		if got := call(`'charge', '{"n":1}', key => 'ours'`); got == ours.String() {
			t.Error("the expired key of a finished job was not free")
		}
	}
}

func TestEnqueueBySQLRefusesWhatTheLibraryRefuses(t *testing.T) {
	s, pool := newStore(t)
	enqueue(t, s, 1, pacht.IdempotencyKey("k"))
	for args, says := range map[string]string{
		`'', '{}'`:                                        "kind",
		`'-a', '{}'`:                                      "kind",
		`'a', NULL`:                                       "args",
		`'a', '{"a":"\u0000"}'`:                           "Unicode",
		`'a', '{}', 'q q'`:                                "queue",
		`'a', '{}', priority => 5`:                        "1 (first) to 4",
		`'a', '{}', run_at => 'infinity'`:                 "10 years",
		`'a', '{}', max_attempts => 0`:                    "30000",
		`'a', '{}', max_crashes => 1001`:                  "1000",
		`'a', '{}', ttl => interval '25 hours'`:           "24h",
		`'a', '{}', crash_policy => 'x'`:                  "retry or hold",
		`'a', '{}', key => ''`:                            "512",
		`'a', '{}', metadata => '[1]'`:                    "object",
		`'a', '{}', key => 'a', key_life => interval '0'`: "10 years",
		`'charge', '{"n":1}', key => 'k'`:                 "already stands for job",
		`'a', ('"' || repeat('x', 1048576) || '"')::json`: "1048576",
	} {
		_, err := pool.Exec(t.Context(), "SELECT pacht.enqueue("+args+")", pgx.QueryExecModeSimpleProtocol)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", args, err)
		}
	}
	if n := value(t, pool, "SELECT count(*) FROM pacht.jobs"); n != "1" {
		t.Errorf("%s jobs", n)
	}
}

func TestEnqueueBySQLWorksInATriggerAndRollsBackWithIt(t *testing.T) {
	s, pool := newStore(t)
	execute(t, pool, `CREATE TABLE payments (id text);
		CREATE FUNCTION charge() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			PERFORM pacht.enqueue('charge', json_build_object('id', NEW.id), key => NEW.id);
			RETURN NULL;
		END $$;
		CREATE TRIGGER charge AFTER INSERT ON payments FOR EACH ROW EXECUTE FUNCTION charge()`)
	execute(t, pool, "BEGIN; INSERT INTO payments VALUES ('a'); ROLLBACK")
	execute(t, pool, "INSERT INTO payments VALUES ('b'), ('c')")
	jobs := claim(t, s, 10)
	if len(jobs) != 2 || !strings.Contains(string(jobs[0].Args), `"b"`) {
		t.Errorf("claimed %+v", jobs)
	}
	complete(t, s, jobs)
}
