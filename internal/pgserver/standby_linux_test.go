package pgserver

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func scalar(t *testing.T, s *Server, sql string) (answer string) {
	t.Helper()
	err := s.session(t.Context(), func(conn *pgx.Conn) error {
		return conn.QueryRow(t.Context(), sql, pgx.QueryExecModeSimpleProtocol).Scan(&answer)
	})
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return answer
}

func primary(t *testing.T) *Server {
	t.Helper()
	s, err := Start(t.Context(), "fsync=off", "dynamic_shared_memory_type=mmap")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Remove(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestStandbyFollowsItsPrimaryAndTakesOver(t *testing.T) {
	a := primary(t)
	if err := Execute(t.Context(), a.URL("postgres"), "CREATE TABLE kept AS SELECT 'before'::text AS v"); err != nil {
		t.Fatal(err)
	}
	b, err := a.StartStandby(t.Context(), "b", a.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Remove(); err != nil {
			t.Error(err)
		}
	}()
	if got := scalar(t, b, "SELECT pg_is_in_recovery()::text"); got != "true" {
		t.Errorf("in recovery: %s", got)
	}
	if err := Execute(t.Context(), a.URL("postgres"), "UPDATE kept SET v = 'after'"); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); scalar(t, b, "SELECT v FROM kept") != "after"; {
		if time.Now().After(deadline) {
			t.Fatal("the standby does not follow")
		}
	}
	pid := a.PID()
	all, err := family(pid)
	if err != nil || len(all) < 3 {
		t.Errorf("processes of the server: %d, %v", len(all), err)
	}
	if err := a.Crash(); err != nil {
		t.Error(err)
	}
	for _, one := range all {
		for deadline := time.Now().Add(20 * time.Second); !gone(one); {
			if time.Now().After(deadline) {
				t.Fatalf("process %d outlived the crash", one)
			}
		}
	}
	if err := b.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := Execute(t.Context(), b.URL("postgres"), "UPDATE kept SET v = 'promoted'"); err != nil {
		t.Error(err)
	}
	if err := a.Start(t.Context()); err != nil { // nobody fences it
		t.Fatal(err)
	}
	if got := scalar(t, a, "SELECT v FROM kept"); got != "after" {
		t.Errorf("the old primary has %q", got)
	}
}

func TestFrozenServerAnswersNobodyUntilItIsThawed(t *testing.T) {
	s := primary(t)
	if err := s.Freeze(); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() { answered <- Execute(t.Context(), s.URL("postgres"), "SELECT 1") }()
	select {
	case err := <-answered:
		t.Errorf("it answered: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	if err := s.Thaw(); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
}
