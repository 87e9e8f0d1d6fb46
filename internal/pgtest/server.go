package pgtest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Server is a private cluster. Tests of outages take one of their own.
type Server struct {
	dir      string // holds data, log and socket
	port     int
	settings []string
	bin      programs
	proc     *process
}

// NewServer starts a cluster for one test, with settings such as "fsync=on" on top of the
// harness's own. It is removed at the end of the test.
func NewServer(t testing.TB, settings ...string) *Server {
	t.Helper()
	s, err := newServer(settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.remove(); err != nil {
			t.Errorf("pgtest: remove the server: %v", err)
		}
	})
	return s
}

func newServer(settings []string) (*Server, error) {
	bin, err := findPrograms()
	if err != nil {
		return nil, err
	}
	sweep()
	dir, err := os.MkdirTemp("", fmt.Sprintf("pacht-pg-%d-", os.Getpid()))
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, settings: settings, bin: bin}
	if err := s.init(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	// The free port may be taken before the server has it: then another one.
	for range 5 {
		if s.port, err = freePort(); err != nil {
			break
		}
		if err = s.start(); err == nil {
			return s, nil
		}
	}
	return nil, errors.Join(err, s.remove())
}

func (s *Server) init() error {
	data := filepath.Join(s.dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	if err := giveAway(s.dir, data); err != nil {
		return err
	}
	cmd := s.command("initdb", "-N", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "-D", data)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pgtest: initdb in %s: %w\n%s", s.bin.dir, err, out)
	}
	return nil
}

func (s *Server) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin.dir, program), args...)
	cmd.Dir = s.dir
	// libpq inside the server looks at HOME, and fails on one that it may not read.
	cmd.Env = []string{"HOME=" + s.dir, "LC_ALL=C.UTF-8", "PATH=" + os.Getenv("PATH"), "TZ=UTC"}
	if s.bin.libraries != "" {
		cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+s.bin.libraries)
	}
	cmd.SysProcAttr = unprivileged()
	return cmd
}

// URL is the address of a database of this server.
func (s *Server) URL(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", s.port, database)
}

// Addr is host and port, for a proxy in between.
func (s *Server) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// Database makes an empty database, dropped at the end of the test.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	return createDatabase(t, s.URL("postgres"))
}

// Start starts the server again after Stop or Kill, on the same port.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
}

// Stop shuts the server down in order: clients are cut, what was committed stays.
func (s *Server) Stop(t testing.TB) { t.Helper(); s.end(t, syscall.SIGINT) }

// Kill ends the server as a crash does: no checkpoint, recovery at the next start.
func (s *Server) Kill(t testing.TB) { t.Helper(); s.end(t, syscall.SIGQUIT) }

func (s *Server) end(t testing.TB, sig syscall.Signal) {
	t.Helper()
	if err := s.proc.end(sig); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	s.proc = nil
}

func (s *Server) start() error {
	logName := filepath.Join(s.dir, "log")
	log, err := os.OpenFile(logName, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	args := []string{
		"-D", filepath.Join(s.dir, "data"), "-p", fmt.Sprint(s.port),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=" + s.dir,
		"-c", "fsync=off", "-c", "full_page_writes=off", "-c", "max_connections=200",
		"-c", "shared_buffers=64MB", "-c", "max_wal_size=512MB", "-c", "log_min_messages=warning",
	}
	for _, set := range s.settings {
		args = append(args, "-c", set)
	}
	cmd := s.command("postgres", args...)
	cmd.Stdout, cmd.Stderr = log, log
	if s.proc, err = startProcess(cmd); err != nil {
		return fmt.Errorf("pgtest: start the server: %w", err)
	}
	if err := answers(s.URL("postgres"), s.proc.done); err != nil {
		said, _ := os.ReadFile(logName)
		return fmt.Errorf("pgtest: the server did not start: %w\n%s", err, tail(string(said)))
	}
	return nil
}

func (s *Server) remove() error {
	var err error
	if s.proc != nil {
		err = s.proc.end(syscall.SIGQUIT)
	}
	return errors.Join(err, os.RemoveAll(s.dir))
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
