package pgserver

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestServerHasTheSettingsAskedForAndLeavesNothing(t *testing.T) {
	s, err := Start(t.Context(), "work_mem=3MB")
	if err != nil {
		t.Fatal(err)
	}
	url, err := s.Create(t.Context(), `a "name"`)
	if err != nil {
		t.Error(err)
	}
	url = strings.Replace(url, `a "name"`, "a%20%22name%22", 1)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	var memory, fsync string
	if err := conn.QueryRow(t.Context(), "SELECT current_setting('work_mem'), current_setting('fsync')").Scan(&memory, &fsync); err != nil {
		t.Error(err)
	}
	if memory != "3MB" || fsync != "on" {
		t.Errorf("work_mem %s, fsync %s; want 3MB, and PostgreSQL's own default, on", memory, fsync)
	}
	_ = conn.Close(t.Context())
	pid := s.PID()
	if pid == 0 || gone(pid) {
		t.Errorf("pid %d is no running process", pid)
	}
	if err := s.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(s.dir); err == nil || !gone(pid) || s.PID() != 0 {
		t.Errorf("left behind: folder %s (%v), process %d", s.dir, err, pid)
	}
}

func TestStartThatIsCancelledLeavesNothing(t *testing.T) {
	temp := t.TempDir()
	if err := os.Chmod(temp, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", temp)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if s, err := Start(ctx); err == nil {
		t.Error("a server was started", s.Remove())
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestMissingServerSaysWhatToInstall(t *testing.T) {
	t.Setenv("PACHT_PG_BIN", t.TempDir())
	if _, err := findPrograms(); err == nil || errors.Is(err, ErrNoPrograms) {
		t.Errorf("an empty PACHT_PG_BIN: %v", err)
	}
}
