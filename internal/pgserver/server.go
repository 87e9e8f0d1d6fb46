// Package pgserver starts private PostgreSQL servers, and PgBouncers in front of them: a
// cluster in a temporary folder, on a free port of this machine, as an unprivileged user if
// we are root, with the settings that the caller gives. It dies with this process. Nothing
// is downloaded: the programs must be there.
package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// Server is a private cluster.
type Server struct {
	dir      string // holds data, log and socket
	port     int
	settings []string
	env      []string // of the server, besides what it needs
	bin      programs
	proc     *process
}

// Start makes a cluster and starts its server, with settings such as "fsync=on" on top of
// PostgreSQL's own defaults. The user is "postgres", without a password. End it with Remove.
func Start(ctx context.Context, settings ...string) (*Server, error) {
	return StartWith(ctx, nil, settings...)
}

// StartWith is Start with variables in the server's environment: a library to load first, say.
func StartWith(ctx context.Context, env []string, settings ...string) (*Server, error) {
	bin, err := findPrograms()
	if err != nil {
		return nil, err
	}
	sweep()
	dir, err := makeFolder()
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, settings: settings, env: env, bin: bin}
	if err := s.init(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	// The free port may be taken before the server has it: then another one.
	for range 5 {
		if s.port, err = freePort(); err != nil {
			break
		}
		if err = s.Start(ctx); err == nil {
			return s, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(err, s.Remove())
}

func (s *Server) init(ctx context.Context) error {
	data := filepath.Join(s.dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	if err := giveAway(s.dir, data); err != nil {
		return err
	}
	cmd := s.command(ctx, "initdb", "-N", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "-D", data)
	out, err := cmd.CombinedOutput()
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("pgserver: initdb in %s: %w: may the user that the server runs as enter %s and run it?", s.bin.dir, err, s.dir)
	}
	if err != nil {
		return fmt.Errorf("pgserver: initdb in %s: %w\n%s", s.bin.dir, err, out)
	}
	return nil
}

func (s *Server) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin.dir, program), args...)
	cmd.Dir = s.dir
	// libpq inside the server looks at HOME, and fails on one that it may not read.
	cmd.Env = []string{"HOME=" + s.dir, "LC_ALL=C.UTF-8", "PATH=" + os.Getenv("PATH"), "TZ=UTC"}
	if s.bin.libraries != "" {
		cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+s.bin.libraries)
	}
	cmd.SysProcAttr = unprivileged()
	return cmd
}

// URL is the address of a database of this server; "postgres" is always there.
func (s *Server) URL(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", s.port, database)
}

// Addr is host and port, for a proxy in between.
func (s *Server) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// PID is the process of the postmaster, whose children are the sessions; 0 if it is stopped.
func (s *Server) PID() int {
	if s.proc == nil {
		return 0
	}
	return s.proc.cmd.Process.Pid
}

// Create makes an empty database, in UTF-8, and returns its URL.
func (s *Server) Create(ctx context.Context, database string) (string, error) {
	err := Execute(ctx, s.URL("postgres"), "CREATE DATABASE "+pgx.Identifier{database}.Sanitize()+" TEMPLATE template0 ENCODING 'UTF8'")
	if err != nil {
		return "", fmt.Errorf("pgserver: make the database %q: %w", database, err)
	}
	return s.URL(database), nil
}

// Start starts the server again after Stop or Kill, on the same port. It returns when the
// server answers. A server that was started outlives ctx.
func (s *Server) Start(ctx context.Context) error {
	logName := filepath.Join(s.dir, "log")
	log, err := os.OpenFile(logName, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	args := []string{
		"-D", filepath.Join(s.dir, "data"), "-p", fmt.Sprint(s.port),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=" + s.dir,
	}
	for _, set := range s.settings {
		args = append(args, "-c", set)
	}
	cmd := s.command(context.WithoutCancel(ctx), "postgres", args...)
	cmd.Env = append(cmd.Env, s.env...)
	cmd.Stdout, cmd.Stderr = log, log
	proc, err := startProcess(cmd)
	if err != nil {
		return fmt.Errorf("pgserver: start the server: %w", err)
	}
	s.proc = proc
	if err := answers(ctx, s.URL("postgres"), proc.done); err != nil {
		said, _ := os.ReadFile(logName)
		return fmt.Errorf("pgserver: the server did not start: %w\n%s", err, tail(string(said)))
	}
	return nil
}

// Stop shuts the server down in order: clients are cut, what was committed stays.
func (s *Server) Stop() error { return s.end(syscall.SIGINT) }

// Kill ends the server as a crash does: no checkpoint, recovery at the next start.
func (s *Server) Kill() error { return s.end(syscall.SIGQUIT) }

func (s *Server) end(sig syscall.Signal) error {
	if s.proc == nil {
		return nil
	}
	err := s.proc.end(sig)
	s.proc = nil
	return err
}

// Remove ends the server, whoever is connected, and removes its files. It may be repeated.
func (s *Server) Remove() error { return errors.Join(s.Kill(), os.RemoveAll(s.dir)) }

// Execute runs SQL on a connection of its own.
func Execute(ctx context.Context, url, sql string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql)
	return errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func tail(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}
