package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Bouncer starts a PgBouncer in transaction mode in front of a database, with 3 server
// connections and no support for prepared statements, and returns the URL through it. Settings
// are lines of its configuration.
func Bouncer(t testing.TB, database string, settings ...string) string {
	t.Helper()
	program := findBouncer(t)
	u, err := url.Parse(database)
	if err != nil {
		t.Fatalf("pgtest: database URL: %v", err)
	}
	dir, err := os.MkdirTemp("", fmt.Sprintf("pacht-pg-%d-", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // swept later if it fails
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(u.Path)
	server := fmt.Sprintf("host=%s port=%s dbname=%s user=%s", u.Hostname(), u.Port(), name, u.User.Username())
	if password, ok := u.User.Password(); ok {
		server += " password=" + password
	}
	config := filepath.Join(dir, "pgbouncer.ini")
	text := fmt.Sprintf(`[databases]
%s = %s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 3
max_client_conn = 500
ignore_startup_parameters = extra_float_digits
logfile = %s
%s
`, name, server, port, filepath.Join(dir, "log"), strings.Join(settings, "\n"))
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := giveAway(dir, config); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-q", config)
	cmd.Dir, cmd.SysProcAttr = dir, unprivileged()
	cmd.Env = []string{"HOME=" + dir, "LC_ALL=C.UTF-8"}
	if libraries := librariesOf(program); libraries != "" {
		cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+libraries)
	}
	proc, err := startProcess(cmd)
	if err != nil {
		t.Fatalf("pgtest: start pgbouncer: %v", err)
	}
	t.Cleanup(func() {
		if err := proc.end(syscall.SIGTERM); err != nil {
			t.Errorf("pgtest: pgbouncer: %v", err)
		}
	})
	through := fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s?sslmode=disable", u.User.Username(), port, name)
	if err := answers(through, proc.done); err != nil {
		said, _ := os.ReadFile(filepath.Join(dir, "log"))
		t.Fatalf("pgtest: pgbouncer does not answer: %v\n%s", err, tail(string(said)))
	}
	return through
}

func findBouncer(t testing.TB) string {
	t.Helper()
	if path, err := exec.LookPath("pgbouncer"); err == nil {
		return path
	}
	for _, dir := range append([]string{"/usr/sbin"}, private("pgbouncer")...) {
		if path, err := exec.LookPath(filepath.Join(dir, "pgbouncer")); err == nil {
			return path
		}
	}
	t.Fatal(`pgtest: no pgbouncer found: install the package "pgbouncer" of your system`)
	return ""
}

// answers waits until a server takes connections, or its process has ended.
func answers(url string, ended <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, url)
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-ctx.Done():
			return err
		case <-ended:
			return fmt.Errorf("it ended: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
