package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/pgtest"
)

// Bad input is refused at the edge, naming field, value and bound, before the database is
// asked: there is none here.
func TestBadInputIsRefusedNamingFieldValueAndBound(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	long := strings.Repeat("k", 129)
	by := []string{"--by", "ann", "--reason", "why"}
	with := func(args ...string) []string { return append(args, by...) }
	for _, c := range []struct {
		words []string
		args  []string
	}{
		{[]string{"kind", "1 to 128"}, []string{"enqueue", ""}},
		{[]string{"kind", "kkkk", "1 to 128"}, []string{"enqueue", long}},
		{[]string{"kind", `bad kind`}, []string{"enqueue", "bad kind"}},
		{[]string{"args", "JSON"}, []string{"enqueue", "k", "{"}},
		{[]string{"args", "JSON"}, []string{"enqueue", "k", ""}},
		{[]string{"args", `\u0000`}, []string{"enqueue", "k", `"\u0000"`}},
		{[]string{"args", "1048576"}, []string{"enqueue", "k", "-"}}, // see below: 2 MiB come in
		{[]string{"KIND", "3 arguments"}, []string{"enqueue", "k", "{", "}"}},
		{[]string{"queue", `""`}, []string{"enqueue", "k", "--queue", ""}},
		{[]string{"queue", "1 to 128"}, []string{"enqueue", "k", "--queue", long}},
		{[]string{"priority", "0", "1 (first) to 4"}, []string{"enqueue", "k", "--priority", "0"}},
		{[]string{"priority", "5", "1 (first) to 4"}, []string{"enqueue", "k", "--priority", "5"}},
		{[]string{"priority", `"high"`, "1 (first) to 4"}, []string{"enqueue", "k", "--priority", "high"}},
		{[]string{"max_attempts", "0", "1 to 30000"}, []string{"enqueue", "k", "--max-attempts", "0"}},
		{[]string{"max_attempts", "30001", "1 to 30000"}, []string{"enqueue", "k", "--max-attempts", "30001"}},
		{[]string{"max_crashes", "-1", "1 to 1000"}, []string{"enqueue", "k", "--max-crashes", "-1"}},
		{[]string{"ttl", "1ms", "100ms to 24h"}, []string{"enqueue", "k", "--ttl", "1ms"}},
		{[]string{"ttl", "25h", "100ms to 24h"}, []string{"enqueue", "k", "--ttl", "25h"}},
		{[]string{"ttl", `"soon"`, "100ms to 24h"}, []string{"enqueue", "k", "--ttl", "soon"}},
		{[]string{"ttl", `"60"`, "a number with a unit"}, []string{"enqueue", "k", "--ttl", "60"}},
		{[]string{"crash_policy", `"explode"`, "retry"}, []string{"enqueue", "k", "--on-crash", "explode"}},
		{[]string{"key", `""`, "512"}, []string{"enqueue", "k", "--key", ""}},
		{[]string{"key", "512"}, []string{"enqueue", "k", "--key", strings.Repeat("x", 513)}},
		{[]string{"key", "scope"}, []string{"enqueue", "k", "--scope", "s"}},
		{[]string{"key life", "1ms", "1s"}, []string{"enqueue", "k", "--key", "x", "--key-life", "1ms"}},
		{[]string{"delay", "10 years"}, []string{"enqueue", "k", "--in", "4000d"}},
		{[]string{"run_at", "2999", "10 years"}, []string{"enqueue", "k", "--at", "2999-01-01T00:00:00Z"}},
		{[]string{"at", `"tomorrow"`, "2006-01-02T15:04:05Z"}, []string{"enqueue", "k", "--at", "tomorrow"}},
		{[]string{"in", "at"}, []string{"enqueue", "k", "--in", "1s", "--at", "2006-01-02T15:04:05Z"}},
		{[]string{"metadata", "object"}, []string{"enqueue", "k", "--metadata", "[1]"}},
		{[]string{"metadata", "object"}, []string{"enqueue", "k", "--metadata", ""}},
		{[]string{"batch", "standard input"}, []string{"enqueue", "k", "--batch"}},
		{[]string{"batch", "queue"}, []string{"enqueue", "--batch", "--queue", "q"}},

		{[]string{"kind", "at least one"}, []string{"work", "--", "true"}},
		{[]string{"kind", `"a b"`}, []string{"work", "--kind", "a b", "--", "true"}},
		{[]string{"COMMAND", "--"}, []string{"work", "--kind", "k"}},
		{[]string{"extra", "--"}, []string{"work", "--kind", "k", "extra", "--", "true"}},
		{[]string{"queue", "q=x", "1 to 100000"}, []string{"work", "--kind", "k", "--queue", "q=x", "--", "true"}},
		{[]string{"queue", "q", "0", "1 to 100000"}, []string{"work", "--kind", "k", "--queue", "q=0", "--", "true"}},
		{[]string{"queue", "once"}, []string{"work", "--kind", "k", "--queue", "q", "--queue", "q=2", "--", "true"}},
		{[]string{"handlers", "one handler"}, []string{"work", "--kind", "k", "--kind", "k", "--", "true"}},
		{[]string{"timeout", "-1s", "0"}, []string{"work", "--kind", "k", "--timeout", "-1s", "--", "true"}},
		{[]string{"grace", "-1s", "0"}, []string{"work", "--kind", "k", "--grace", "-1s", "--", "true"}},
		{[]string{"kill-after", "-1s", "0"}, []string{"work", "--kind", "k", "--kill-after", "-1s", "--", "true"}},
		{[]string{"snooze", "0s", "365 days"}, []string{"work", "--kind", "k", "--snooze", "0s", "--", "true"}},
		{[]string{"snooze-max", "1s", "30s"}, []string{"work", "--kind", "k", "--snooze-max", "1s", "--", "true"}},
		{[]string{"poll", "0s", "1ms to 1h"}, []string{"work", "--kind", "k", "--poll", "0", "--", "true"}},
		{[]string{"poll", "2h", "1h"}, []string{"work", "--kind", "k", "--poll", "2h", "--", "true"}},
		{[]string{"log-level", `"loud"`, "debug"}, []string{"work", "--kind", "k", "--log-level", "loud", "--", "true"}},
		{[]string{"command", "no-such-program", "there"}, []string{"work", "--kind", "k", "--", "no-such-program"}},
		{[]string{"period", "2h", "1h"}, []string{"watch", "--period", "2h"}},
		{[]string{"period", "0s", "1h"}, []string{"watch", "--period", "0s"}},
		{[]string{"retention of completed jobs", "10ms", "1s to 100 years"}, []string{"watch", "--keep-completed", "10ms"}},
		{[]string{"retention of dead jobs", "-1h", "1s to 100 years"}, []string{"work", "--kind", "k", "--keep-dead", "-1h", "--", "true"}},

		{[]string{"keep-dead", "no-sweep"}, []string{"watch", "--keep-dead", "1d", "--no-sweep"}},
		{[]string{"keep-completed", "no-sweep"}, []string{"work", "--kind", "k", "--no-sweep", "--keep-completed", "1d", "--", "true"}},

		{[]string{"db", `""`, "not empty"}, []string{"jobs", "list", "--db", ""}},
		{[]string{"status", `"Done"`, "Pending, Processing"}, []string{"jobs", "list", "--status", "Done"}},
		{[]string{"limit", "1001", "1 to 1000"}, []string{"jobs", "list", "--limit", "1001"}},
		{[]string{"limit: 0 is", "1 to 1000"}, []string{"jobs", "list", "--limit", "0"}},
		{[]string{"limit: -1 is", "1 to 1000"}, []string{"jobs", "list", "--limit", "-1"}},
		{[]string{"owner", `""`, "1 to 256"}, []string{"jobs", "list", "--owner", ""}},
		{[]string{"kind", `""`}, []string{"jobs", "list", "--kind", ""}},
		{[]string{"queue", `""`}, []string{"jobs", "list", "--queue", ""}},
		{[]string{"status", `""`}, []string{"jobs", "list", "--status", ""}},
		{[]string{"before", `"x"`, "greater than zero"}, []string{"jobs", "list", "--before", "x"}},
		{[]string{"kind", "1 to 128"}, []string{"jobs", "list", "--kind", "a b"}},
		{[]string{"job id", `"0"`, "greater than zero"}, []string{"jobs", "show", "0"}},
		{[]string{"job id", `"9223372036854775808"`}, []string{"jobs", "show", "9223372036854775808"}},
		{[]string{"by", `""`, "your name"}, []string{"jobs", "retry", "1", "--reason", "why"}},
		{[]string{"reason", `""`, "1 to 1000"}, []string{"jobs", "cancel", "1", "--by", "ann"}},
		{[]string{"reason", "1 to 1000"}, []string{"jobs", "release", "1", "--by", "ann", "--reason", strings.Repeat("x", 1001)}},
		{[]string{"resolution", `"Pending"`, "Completed or Dead"}, with("jobs", "resolve", "1", "--as", "Pending")},
		{[]string{"resolution", `""`, "Completed or Dead"}, with("jobs", "resolve", "1")},
		{[]string{"output", "JSON"}, with("jobs", "resolve", "1", "--as", "Completed", "--output", "{")},
		{[]string{"error", "Dead"}, with("jobs", "resolve", "1", "--as", "Completed", "--error", "no")},
		{[]string{"status", "Completed, Dead, Cancelled"}, []string{"jobs", "prune", "--older-than", "1d"}},
		{[]string{"status", "Pending", "never pruned"}, []string{"jobs", "prune", "--older-than", "1d", "--status", "Pending"}},
		{[]string{"older-than", "30d"}, []string{"jobs", "prune", "--status", "Dead"}},
		{[]string{"older than", "-24h", "0 or more"}, []string{"jobs", "prune", "--status", "Dead", "--older-than", "-1d"}},
		{[]string{"limit", "-1", "0"}, []string{"jobs", "prune", "--status", "Dead", "--older-than", "1d", "--limit", "-1"}},
		{[]string{"limit", "10001", "10000"}, []string{"jobs", "prune", "--status", "Dead", "--older-than", "1d", "--batch", "10001"}},
		{[]string{"limit", "0", "1 to 1000"}, []string{"stuck", "--limit", "0"}},
		{[]string{"break status", `"done"`, "waiting, person"}, []string{"breaks", "list", "--status", "done"}},
		{[]string{"limit", "0", "1 to 1000"}, []string{"breaks", "list", "--limit", "0"}},
		{[]string{"class", `"a b"`, "1 to 128"}, []string{"breaks", "list", "--class", "a b"}},
		{[]string{"after", `"p1"`, "REFERENCE CLASS"}, []string{"breaks", "list", "--after", "p1"}},
		{[]string{"reference", `""`, "1 to 512"}, []string{"breaks", "show", ""}},
		{[]string{"reason", "1 to 1000"}, []string{"breaks", "close", "p1", "c", "--by", "ann"}},
		{[]string{"class", `"a b"`, "1 to 128"}, with("breaks", "close", "p1", "a b")},
		{[]string{"sample", "0", "1 to 1000000"}, []string{"doctor", "--sample", "0"}},
		{[]string{"settings", "--ttl"}, with("queues", "set", "q")},
		{[]string{"ttl", "1ms", "100ms to 24h"}, with("queues", "set", "q", "--ttl", "1ms")},
		{[]string{"queue", "1 to 128"}, with("queues", "set", "a b", "--ttl", "1m")},
		{[]string{"by", "your name"}, []string{"queues", "set", "q", "--ttl", "1m"}},

		{[]string{"jobz", "jobs"}, []string{"jobz"}},
		{[]string{"lst", "list"}, []string{"jobs", "lst"}},
		{[]string{"--nope"}, []string{"jobs", "list", "--nope"}},
		{[]string{"db", `"mysql:..."`, "postgres://", "sqlite:FILE"}, []string{"--db", "mysql://root:s3cret@host/db", "jobs", "list"}},
		{[]string{"prefix", `"A-B"`, "a-z"}, []string{"--db", "sqlite:x.db?prefix=A-B", "jobs", "list"}},
		{[]string{"prefix", `"A-B"`, "a-z"}, []string{"--db", "sqlite:x.db?prefix=A-B", "work", "--kind", "k", "--", "true"}},
		{[]string{"prefix", `"A-B"`, "a-z"}, []string{"--db", "sqlite:x.db?prefix=A-B", "doctor"}},
		{[]string{"db", "sslmode"}, []string{"--db", "postgres://ann:s3cret@127.0.0.1:1/db?sslmode=nonsense", "jobs", "list"}},
		{[]string{"db", "sslmode"}, []string{"--db", "postgres://ann:s3cret@127.0.0.1:1/db?sslmode=nonsense", "watch"}},
		{[]string{"db", `"pacht.db"`, "sqlite:FILE"}, []string{"--db", "pacht.db", "jobs", "list"}},
	} {
		r := s.feed(strings.Repeat("1", 3<<20), c.args...)
		if r.code != exitUsage || r.out != "" {
			t.Errorf("pacht %.100q: exit code %d, want %d\n%.500s%.500s", c.args, r.code, exitUsage, r.out, r.err)
		}
		for _, w := range c.words {
			if !strings.Contains(r.err, w) {
				t.Errorf("pacht %.100q does not say %q:\n%.500s", c.args, w, r.err)
			}
		}
		if strings.Contains(r.err, "s3cret") {
			t.Errorf("pacht %q shows the password:\n%s", c.args, r.err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(s.dir, "*")); len(left) > 0 {
		t.Errorf("refused commands left %v behind", left)
	}
}

func TestDatabaseWithoutMigrationsSaysWhatToRunAndStaysUntouched(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	for _, args := range [][]string{
		{"enqueue", "k"}, {"work", "--kind", "k", "--", "true"}, {"watch"}, {"jobs", "list"}, {"jobs", "show", "1"},
		{"stuck"}, {"doctor"}, {"queues", "list"}, {"workers"}, {"migrate", "status"},
	} {
		s.refused(exitSchema, []string{`run "pacht migrate up"`}, args...)
	}
	if _, err := os.Stat(filepath.Join(s.dir, "pacht.db")); err == nil {
		t.Error("a command that only reads made the file")
	}
	if err := os.WriteFile(filepath.Join(s.dir, "pacht.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.refused(exitSchema, []string{`run "pacht migrate up"`}, "enqueue", "k")
	s.refused(exitSchema, []string{`run "pacht migrate up"`}, "work", "--kind", "k", "--", "true")
}

// A worker waits for a server that is down, and not for tables that somebody has to make.
func TestServerWithoutMigrationsIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	s := &shell{t: t, dir: t.TempDir(), url: pgtest.Database(t)}
	for _, args := range [][]string{{"work", "--kind", "k", "--", "true"}, {"watch"}, {"enqueue", "k"}, {"doctor"}} {
		s.refused(exitSchema, []string{`run "pacht migrate up"`}, args...)
	}
}

func TestFileThatIsNoSQLiteDatabaseIsRefused(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	file := filepath.Join(s.dir, "pacht.db")
	const content = "this is a letter to my landlord, and no database at all; it has to be left alone.\n"
	if err := os.WriteFile(file, []byte(strings.Repeat(content, 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"migrate", "up"}, {"jobs", "list"}, {"enqueue", "k"}, {"work", "--kind", "k", "--", "true"}} {
		r := s.run(args...)
		if r.code == exitOK || !strings.Contains(r.err, "pacht.db") || !strings.Contains(r.err, "SQLite") {
			t.Errorf("pacht %q: exit code %d: %s", args, r.code, r.err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != strings.Repeat(content, 100) {
		t.Errorf("the file was changed: %v", err)
	}
}

func TestNewerSchemaIsRefusedWithBothVersionsNamed(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	db := s.store()
	_, wanted, err := db.Schema(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.sql(`INSERT INTO pacht_schema_version (version, name, checksum, applied_at) SELECT 99, 'later', checksum, applied_at FROM pacht_schema_version LIMIT 1`)
	for _, args := range [][]string{{"enqueue", "k"}, {"doctor"}, {"migrate", "up"}, {"work", "--kind", "k", "--", "true"}} {
		s.refused(exitSchema, []string{"99", fmt.Sprint(wanted), "newer"}, args...)
	}
}

func TestErrorsOfThePostgresURLShowNoPassword(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	for _, url := range []string{
		"postgres://ann:s3cret@127.0.0.1:1/db?connect_timeout=1",
		"postgres://ann:s3%3Acret@127.0.0.1:1/db?connect_timeout=1",
		"postgres://127.0.0.1:1/db?user=ann&password=s3cret&connect_timeout=1",
		"postgres://ann:s3cret%@127.0.0.1:1/db",
		"postgres://ann:s3cret@127.0.0.1:port/db",
		"postgres://ann:s3cret@127.0.0.1:1/db?sslmode=nonsense",
		"postgres://ann:s3cret@127.0.0.1:1/db?schema=" + strings.Repeat("x", 100),
		"s3cret:mysql://", "host=h password=s3cret",
	} {
		r := s.feed("", "--db", url, "jobs", "list")
		if r.code == exitOK || strings.Contains(r.err, "s3cret") && !strings.HasPrefix(url, "s3cret") || strings.Contains(r.err, "s3:cret") {
			t.Errorf("%s: exit code %d: %s", url, r.code, r.err)
		}
	}
}

func TestExitCodeFollowsTheErrorBehindIt(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, exitOK},
		{errFound, exitFailed},
		{&pacht.InvalidError{}, exitUsage},
		{fmt.Errorf("x: %w", &pacht.LeaseLostError{}), exitRefused},
		{&pacht.KeyConflictError{}, exitRefused},
		{&pacht.StatusError{}, exitRefused},
		{pacht.ErrNotFound, exitRefused},
		{pacht.ErrBusy, exitRefused},
		{&pacht.SchemaError{}, exitSchema},
		{fmt.Errorf("x: %w", pacht.ErrUnknown), exitUnknown},
		{os.ErrPermission, exitFailed},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}

// The process ends as run says, for each code, and finds its database by the environment.
func TestProcessEndsWithTheCodeOfItsCommand(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	check := func(want int, args ...string) {
		t.Helper()
		if r := s.real("", args...); r.code != want {
			t.Errorf("pacht %q: exit code %d, want %d\n%s%s", args, r.code, want, r.out, r.err)
		}
	}
	check(exitSchema, "jobs", "list")
	check(exitOK, "migrate", "up")
	check(exitUsage, "jobs", "lst")
	check(exitRefused, "jobs", "show", "1")
	check(exitFailed, "--db", "sqlite:"+s.dir, "migrate", "up")
	if r := s.real(`{"n":1}`, "enqueue", "k", "-"); r.code != exitOK || r.out != "job 1\n" {
		t.Errorf("%+v", r)
	}
}

// A forgotten PACHT_DB, or a mistyped prefix, looks like a fresh database: the answer says which one
// was looked at.
func TestTablesThatAreNotThereAreNamed(t *testing.T) {
	s := migrated(t)
	s.refused(exitSchema, []string{"migrate up", s.url, "tables mine_"}, "stuck", "--db", s.url+"?prefix=mine_")
	t.Setenv("PACHT_DB", "")
	t.Chdir(t.TempDir())
	_, err := (&globals{}).open(t.Context())
	if err == nil || !strings.Contains(err.Error(), "neither --db nor PACHT_DB") {
		t.Errorf("%v", err)
	}
}

// The text of the migrations is for those who cannot reach the database.
func TestMigrationsArePrintedWithoutAServer(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	if out := s.ok("migrate", "sql", "--db", "postgres://x@127.0.0.1:1/y?schema=mine"); !strings.Contains(out, `CREATE TABLE "mine".leases`) {
		t.Errorf("%.300s", out)
	}
}
