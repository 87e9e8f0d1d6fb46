package pgserver

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Bouncer is a PgBouncer in front of a database.
type Bouncer struct {
	dir     string
	url     string
	program string
	proc    *process
}

// StartBouncer starts a PgBouncer in transaction mode in front of a database, with 3 server
// connections and no support for prepared statements. Settings are lines of its
// configuration. End it with Remove.
func StartBouncer(ctx context.Context, database string, settings ...string) (*Bouncer, error) {
	program, err := findBouncer()
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(database)
	if err != nil {
		return nil, fmt.Errorf("pgserver: the URL of the database does not parse: %w", err)
	}
	dir, err := makeFolder()
	if err != nil {
		return nil, err
	}
	b := &Bouncer{dir: dir, program: program}
	err = b.configure(u, settings)
	if err == nil {
		err = b.Start(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, b.Remove())
	}
	return b, nil
}

// URL leads through it to the database.
func (b *Bouncer) URL() string { return b.url }

// Kill ends it as a crash does: all connections break. Start starts it again.
func (b *Bouncer) Kill() error { return b.end(syscall.SIGKILL) }

// Remove ends it and removes its files.
func (b *Bouncer) Remove() error { return errors.Join(b.end(syscall.SIGTERM), os.RemoveAll(b.dir)) }

func (b *Bouncer) end(sig syscall.Signal) error {
	if b.proc == nil {
		return nil
	}
	err := b.proc.end(sig)
	b.proc = nil
	return err
}

// configure writes what it is to be, on a free port.
func (b *Bouncer) configure(u *url.URL, settings []string) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	name := filepath.Base(u.Path)
	server := fmt.Sprintf("host=%s port=%s dbname=%s user=%s", u.Hostname(), u.Port(), name, u.User.Username())
	if password, ok := u.User.Password(); ok {
		server += " password=" + password
	}
	config := filepath.Join(b.dir, "pgbouncer.ini")
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
`, name, server, port, filepath.Join(b.dir, "log"), strings.Join(settings, "\n"))
	b.url = fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s?sslmode=disable", u.User.Username(), port, name)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return err
	}
	return giveAway(b.dir, config)
}

// Start starts it again after Kill, on the same port.
func (b *Bouncer) Start(ctx context.Context) error {
	cmd := exec.Command(b.program, "-q", filepath.Join(b.dir, "pgbouncer.ini"))
	cmd.Dir, cmd.SysProcAttr = b.dir, unprivileged()
	cmd.Env = []string{"HOME=" + b.dir, "LC_ALL=C.UTF-8"}
	if libraries := librariesOf(b.program); libraries != "" {
		cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+libraries)
	}
	proc, err := startProcess(cmd)
	if err != nil {
		return fmt.Errorf("pgserver: start pgbouncer: %w", err)
	}
	b.proc = proc
	if err := answers(ctx, b.url, proc.done); err != nil {
		said, _ := os.ReadFile(filepath.Join(b.dir, "log"))
		return fmt.Errorf("pgserver: pgbouncer does not answer: %w\n%s", err, tail(string(said)))
	}
	return nil
}

func findBouncer() (string, error) {
	if path, err := exec.LookPath("pgbouncer"); err == nil {
		return path, nil
	}
	for _, dir := range append([]string{"/usr/sbin"}, private("pgbouncer")...) {
		if path, err := exec.LookPath(filepath.Join(dir, "pgbouncer")); err == nil {
			return path, nil
		}
	}
	return "", errors.New(`pgserver: no pgbouncer found: install the package "pgbouncer" of your system`)
}
