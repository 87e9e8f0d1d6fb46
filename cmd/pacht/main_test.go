package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/database"
	"github.com/pacht-queue/pacht/internal/pgtest"
)

// asPacht makes the test binary be the command: tests start real processes of it.
const asPacht = "PACHT_TEST_BE_THE_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asPacht) != "" {
		main()
	}
	os.Unsetenv("PACHT_DB")
	pgtest.Main(m)
}

// shell is a user at a prompt, with a database.
type shell struct {
	t   *testing.T
	dir string
	url string
}

// onSQLite is a shell in an empty folder, with the default database not yet made.
func onSQLite(t *testing.T) *shell {
	dir := t.TempDir()
	return &shell{t: t, dir: dir, url: "sqlite:" + filepath.Join(dir, "pacht.db")}
}

// migrated is onSQLite after "migrate up".
func migrated(t *testing.T) *shell {
	s := onSQLite(t)
	s.ok("migrate", "up")
	return s
}

// onBoth runs a test on both databases, with tables.
func onBoth(t *testing.T, test func(t *testing.T, s *shell)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, migrated(t))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		s := &shell{t: t, dir: t.TempDir(), url: pgtest.Database(t)}
		s.ok("migrate", "up")
		test(t, s)
	})
}

func (s *shell) command(args ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), asPacht+"=1", "PACHT_DB="+s.url)
	return cmd
}

// result is how a command ended.
type result struct {
	code     int
	out, err string
}

func (s *shell) run(args ...string) result { s.t.Helper(); return s.feed("", args...) }

// feed runs a command to its end within this process, with something on its standard input.
// What runs for long or gets signals is a real process: see start and real.
func (s *shell) feed(in string, args ...string) result {
	s.t.Helper()
	var out, errs lockedBuffer
	if args[0] != "--db" {
		args = append([]string{"--db", s.url}, args...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	code := run(ctx, args, strings.NewReader(in), &out, &errs)
	return result{code, out.String(), errs.String()}
}

// real runs a command to its end in a process of its own.
func (s *shell) real(in string, args ...string) result {
	s.t.Helper()
	cmd := s.command(args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(in), &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatalf("pacht %v: %v", args, err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// ok runs a command that must succeed, and answers its output.
func (s *shell) ok(args ...string) string {
	s.t.Helper()
	r := s.run(args...)
	if r.code != exitOK {
		s.t.Fatalf("pacht %q: exit code %d\n%s%s", args, r.code, r.out, r.err)
	}
	return r.out
}

// refused runs a command that must end with a code and name all of these words.
func (s *shell) refused(code int, words []string, args ...string) {
	s.t.Helper()
	r := s.run(args...)
	if r.code != code {
		s.t.Errorf("pacht %q: exit code %d, want %d\n%s%s", args, r.code, code, r.out, r.err)
	}
	for _, w := range words {
		if !strings.Contains(r.err, w) {
			s.t.Errorf("pacht %q does not say %q:\n%s", args, w, r.err)
		}
	}
}

// document runs a command with --json that must end with a code, and decodes its output.
func (s *shell) document(into any, code int, args ...string) {
	s.t.Helper()
	r := s.run(append([]string{"--json"}, args...)...)
	if r.code != code {
		s.t.Fatalf("pacht --json %q: exit code %d, want %d\n%s%s", args, r.code, code, r.out, r.err)
	}
	if err := json.Unmarshal([]byte(r.out), into); err != nil {
		s.t.Fatalf("pacht --json %q printed no JSON: %v\n%s", args, err, r.out)
	}
}

// enqueue stores a job and answers its id.
func (s *shell) enqueue(args ...string) string {
	s.t.Helper()
	var made struct {
		ID string `json:"id"`
	}
	s.document(&made, exitOK, append([]string{"enqueue"}, args...)...)
	return made.ID
}

// store opens the database beside the commands.
func (s *shell) store() database.Database {
	s.t.Helper()
	db, err := database.Open(s.t.Context(), s.url)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = db.Close() })
	return db
}

// process is a command that runs in the background.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	errs *lockedBuffer
	done chan struct{}
}

func (s *shell) start(args ...string) *process {
	s.t.Helper()
	p := &process{t: s.t, cmd: s.command(args...), errs: &lockedBuffer{}, done: make(chan struct{})}
	p.cmd.Stderr = p.errs
	if err := p.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // how it ended stands in its state
	}()
	s.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
		if s.t.Failed() {
			s.t.Logf("pacht %q said:\n%s", args, p.errs.String())
		}
	})
	return p
}

func (p *process) signal(sig os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// ends waits for the end and answers the exit code, or minus the signal.
func (p *process) ends() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatal("the process did not end")
	}
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return -int(status.Signal())
	}
	return p.cmd.ProcessState.ExitCode()
}

// stop ends a worker in order.
func (p *process) stop() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	if code := p.ends(); code != exitOK {
		p.t.Errorf("exit code %d after SIGTERM:\n%s", code, p.errs.String())
	}
}

// patience is how long a test waits for what must come.
const patience = 30 * time.Second

// until polls for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); {
		if time.Now().After(end) {
			t.Fatalf("in vain: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// becomes waits until a job has a status, and answers it.
func becomes(t *testing.T, db pacht.Reader, id string, want pacht.Status) pacht.JobInfo {
	t.Helper()
	var j pacht.JobInfo
	until(t, "job "+id+" becomes "+string(want), func() bool {
		j = jobOf(t, db, id)
		return j.Status == want
	})
	return j
}

func jobOf(t *testing.T, db pacht.Reader, id string) pacht.JobInfo {
	t.Helper()
	n, err := pacht.ParseID(id)
	if err != nil {
		t.Fatal(err)
	}
	j, err := db.Job(context.Background(), n)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// attempts waits until the ledger of a job has n rows.
func attempts(t *testing.T, db pacht.Reader, id string, n int) []pacht.Attempt {
	t.Helper()
	var rows []pacht.Attempt
	until(t, "job "+id+" has its history", func() bool {
		var err error
		if rows, err = db.Attempts(context.Background(), jobOf(t, db, id).ID); err != nil {
			t.Fatal(err)
		}
		return len(rows) >= n
	})
	return rows
}

// sql runs one statement by hand on the SQLite file.
func (s *shell) sql(statement string, args ...any) {
	s.t.Helper()
	db, err := sql.Open("sqlite", strings.TrimPrefix(s.url, "sqlite:"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(s.t.Context(), statement, args...); err != nil {
		s.t.Fatalf("%s: %v", statement, err)
	}
}
