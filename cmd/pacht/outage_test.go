package main

import (
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/pgtest"
)

// S042: a worker that is started before its database waits for it, checks the schema late, and
// does not flood the log.
func TestWorkWaitsForADatabaseThatIsDown(t *testing.T) {
	t.Parallel()
	server := pgtest.NewServer(t)
	s := &shell{t: t, dir: t.TempDir(), url: server.Database(t)}
	s.ok("migrate", "up")
	id := s.enqueue("k")
	server.Stop(t)
	w := s.work(s.script("exit 0"), "--kind", "k")
	watcher := s.start("watch")
	for _, p := range []*process{w, watcher} {
		until(t, "it says that it waits", func() bool { return strings.Contains(p.errs.String(), "waiting for it") })
	}
	if r := s.run("jobs", "list"); r.code != exitFailed || r.err == "" {
		t.Errorf("jobs list: exit code %d: %s", r.code, r.err)
	}
	if n := strings.Count(w.errs.String(), "\n"); n > 3 {
		t.Errorf("%d lines of log:\n%s", n, w.errs.String())
	}
	server.Start(t)
	becomes(t, s.store(), id, pacht.Completed)
	w.stop()
	until(t, "the watcher watches", func() bool { return strings.Contains(watcher.errs.String(), `"watching"`) })
	watcher.stop()
}

// A server that has answered will answer the same for ever.
func TestServerThatRefusesTheUserOrTheDatabaseIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	s := &shell{t: t, dir: t.TempDir(), url: pgtest.Database(t)}
	s.ok("migrate", "up")
	there, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	role := strings.ToLower("poor_" + rand.Text())
	s.onServer(`CREATE ROLE ` + role + ` LOGIN`)
	t.Cleanup(func() { s.onServer(`DROP ROLE ` + role) })
	as := func(user, database string) string {
		u := *there
		u.User, u.Path = url.UserPassword(user, "s3cret"), database
		return u.String()
	}
	for _, c := range []struct{ word, url string }{
		{"does not exist", as(there.User.Username(), "/no_such_database")},
		{"does not exist", as("no_such_role", there.Path)},
		{"what a role needs", as(role, there.Path)},
	} {
		for _, args := range [][]string{{"work", "--kind", "k", "--", "true"}, {"watch"}, {"jobs", "list"}} {
			s := &shell{t: t, dir: s.dir, url: c.url}
			if r := s.run(args...); r.code != exitFailed || !strings.Contains(r.err, c.word) || strings.Contains(r.err, "waiting for it") {
				t.Fatalf("pacht %q: exit code %d, want %d and %q, without waiting:\n%s", args, r.code, exitFailed, c.word, r.err)
			}
		}
	}
}

// onServer runs one statement by hand on PostgreSQL.
func (s *shell) onServer(statement string) {
	s.t.Helper()
	conn, err := pgx.Connect(context.Background(), s.url)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(context.Background(), statement); err != nil {
		s.t.Fatalf("%s: %v", statement, err)
	}
}

func TestWaitingForADatabaseEndsWithTheSignal(t *testing.T) {
	t.Parallel()
	s := &shell{t: t, dir: t.TempDir(), url: "postgres://nobody@127.0.0.1:1/none?connect_timeout=1"}
	w := s.work("true", "--kind", "k")
	until(t, "it says that it waits", func() bool { return strings.Contains(w.errs.String(), "waiting for it") })
	w.stop()
}

// Without C in it, CGO_ENABLED=0 makes one static binary. Building it here would compile all
// of SQLite once more, beside the build for the race detector.
func TestNothingInTheCommandNeedsC(t *testing.T) {
	t.Parallel()
	needsC := func(cgo string) string {
		list := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{if or .CgoFiles .SwigFiles .Incomplete}}{{.ImportPath}}{{end}}{{end}}", ".")
		list.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
		out, err := list.Output()
		if err != nil {
			t.Fatalf("go list with CGO_ENABLED=%s: %v", cgo, err)
		}
		return strings.TrimSpace(string(out))
	}
	for _, cgo := range []string{"0", "1"} {
		if found := needsC(cgo); found != "" {
			t.Errorf("with CGO_ENABLED=%s these packages need C, or do not load: %s", cgo, found)
		}
	}
}
