package meter

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pacht-queue/pacht/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// What a session burns is counted while it lives and after it has ended, once.
func TestServerCPUCountsLiveAndEndedSessions(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // where the answer is "unknown"
	}
	server := pgtest.NewServer(t)
	watcher := connect(t, server.URL("postgres"))
	m, err := Start(t.Context(), Subject{Conn: watcher})
	if err != nil {
		t.Fatal(err)
	}
	if m.subject.ServerPID != server.PID() {
		t.Fatalf("found the postmaster %d, want %d", m.subject.ServerPID, server.PID())
	}
	busy, err := pgx.Connect(t.Context(), server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	session := int(busy.PgConn().PID())
	for burnt := time.Duration(0); burnt < 300*time.Millisecond; burnt, _ = ProcessCPU(session) {
		if _, err := busy.Exec(t.Context(), "SELECT count(*) FROM generate_series(1, 200000)"); err != nil {
			t.Fatal(err)
		}
	}
	burnt, _ := ProcessCPU(session)
	live, err := m.Stop(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = busy.Close(t.Context())
	for _, ok := ProcessCPU(session); ok; _, ok = ProcessCPU(session) {
		runtime.Gosched()
	}
	ended, err := m.Stop(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, u := range map[string]Usage{"live": live, "ended": ended} {
		// Above it by the start of the session and by the server's other processes.
		if got := *u.ServerCPU; got < burnt.Seconds()-0.02 || got > burnt.Seconds()+0.25 {
			t.Errorf("%s: the server used %.2f s, the session alone %s", name, got, burnt)
		}
	}
}

func TestWALIsCountedInBytes(t *testing.T) {
	conn := connect(t, pgtest.Database(t))
	if _, err := conn.Exec(t.Context(), "CREATE TABLE t (v text)"); err != nil {
		t.Fatal(err)
	}
	m, err := Start(t.Context(), Subject{Conn: conn})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "INSERT INTO t SELECT repeat(md5(i::text), 20) FROM generate_series(1, 1000) i"); err != nil {
		t.Fatal(err)
	}
	u, err := m.Stop(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if per := *u.WALPerJob(1000); per < 640 || per > 1500 {
		t.Errorf("%.0f bytes for each row of 640", per)
	}
}

func TestUnknownIsNil(t *testing.T) {
	m, err := Start(t.Context(), Subject{})
	if err != nil {
		t.Fatal(err)
	}
	u, err := m.Stop(t.Context())
	if err != nil || u.ServerCPU != nil || u.WAL != nil || u.ServerPer100k(7) != nil || u.WALPerJob(7) != nil {
		t.Errorf("without a server: %+v, %v", u, err)
	}
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if d, ok := ServerCPU(cmd.Process.Pid); ok {
		t.Errorf("the CPU of a process that has ended: %s", d)
	}
}

// A server elsewhere may name the number of a process here, even of another PostgreSQL.
func TestProcessOfAnotherServerIsNotTakenForOurs(t *testing.T) {
	if pid := postmasterOf(os.Getpid(), nil); pid != 0 {
		t.Errorf("this test was taken for a session of %d", pid)
	}
	conn := connect(t, pgtest.Database(t))
	session := int(conn.PgConn().PID())
	if pid := postmasterOf(session, []string{"(1)"}); pid != 0 {
		t.Errorf("a session of another client was taken for ours, of %d", pid)
	}
}

func TestOwnCPUGrowsByWhatWeBurn(t *testing.T) {
	m, err := Start(t.Context(), Subject{})
	if err != nil {
		t.Fatal(err)
	}
	for from, _ := OwnCPU(); ; {
		if now, ok := OwnCPU(); !ok || now-from > 50*time.Millisecond {
			break
		}
	}
	u, err := m.Stop(t.Context())
	if err != nil || *u.ClientCPU < 0.05 || *u.ClientPer100k(10_000) < 0.5 {
		t.Errorf("%+v, %v", u, err)
	}
	if rss, ok := PeakRSS(); !ok || rss < 1<<20 || rss > 1<<36 {
		t.Errorf("a peak of %d bytes resident", rss)
	}
}
