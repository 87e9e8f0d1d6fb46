package pgtest

import (
	"context"
	"testing"

	"github.com/pacht-queue/pacht/internal/pgserver"
)

// settings of servers for tests: nothing of them needs to survive the machine.
var settings = []string{
	"fsync=off", "full_page_writes=off", "max_connections=200",
	"shared_buffers=64MB", "max_wal_size=512MB",
}

// Server is a private cluster. Tests of outages take one of their own.
type Server struct{ *pgserver.Server }

// NewServer starts a cluster for one test, with settings such as "fsync=on" on top of the
// harness's own. It is removed at the end of the test.
func NewServer(t testing.TB, more ...string) *Server {
	t.Helper()
	s, err := newServer(t.Context(), more...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Remove(); err != nil {
			t.Errorf("pgtest: remove the server: %v", err)
		}
	})
	return s
}

func newServer(ctx context.Context, more ...string) (*Server, error) {
	s, err := pgserver.Start(ctx, append(settings[:len(settings):len(settings)], more...)...)
	if err != nil {
		return nil, err
	}
	return &Server{s}, nil
}

// Standby starts a hot standby of the server, that streams over an address of the server or of
// a proxy in front of it. It is removed at the end of the test.
func (s *Server) Standby(t testing.TB, name, through string, more ...string) *Server {
	t.Helper()
	b, err := s.StartStandby(t.Context(), name, through, more...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Remove(); err != nil {
			t.Errorf("pgtest: remove the standby: %v", err)
		}
	})
	return &Server{b}
}

// Promote makes a standby a primary, which takes writes then.
func (s *Server) Promote(t testing.TB) { t.Helper(); must(t, s.Server.Promote(t.Context())) }

// Database makes an empty database, dropped at the end of the test.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	return createDatabase(t, s.URL("postgres"))
}

// Start starts the server again after Stop or Kill, on the same port.
func (s *Server) Start(t testing.TB) { t.Helper(); must(t, s.Server.Start(t.Context())) }

// Stop shuts the server down in order: clients are cut, what was committed stays.
func (s *Server) Stop(t testing.TB) { t.Helper(); must(t, s.Server.Stop()) }

// Kill ends the server as a crash does: no checkpoint, recovery at the next start.
func (s *Server) Kill(t testing.TB) { t.Helper(); must(t, s.Server.Kill()) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
