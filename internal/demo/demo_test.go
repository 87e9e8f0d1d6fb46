package demo

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/pgtest"
)

// program is the real command, built once.
var program string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "pacht-demo-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "pacht")
	if out, err := exec.Command("go", "build", "-o", program, "../../cmd/pacht").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the command: %v\n%s", err, out)
		return 1
	}
	// The demos wait for leases to run out, most of the time, and so may do that all at once.
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return pgtest.Run(m)
}

// The promise of the whole: R1, R3, R5, R7, R9 with real processes and real signals.
func TestDemoLosesNothingAndChargesNothingTwiceThroughKillsAndPauses(t *testing.T) {
	t.Parallel()
	r := start(t, "--payments", "120", "--json")
	code, res := r.wait(), r.result()
	if code != 0 || !res.OK || res.Payments != 120 || res.Completed+res.BreaksOpen != 120 || res.Lost != 0 || res.DoubleCharged != 0 || !res.LedgerEqual {
		t.Errorf("exit %d, %+v\n%s", code, res, r.err.String())
	}
	if res.Kills < 3 || res.Pauses < 2 || res.Expired < 5 || res.RefusedLate < 2 || res.Unknown < 1 || res.Healed < 1 || res.Attempts < res.Payments+res.Expired {
		t.Errorf("too little happened: %+v", res)
	}
	r.nothingIsLeft()
}

// One payment has to take every kill and every pause by itself.
func TestDemoOfOnePaymentIsDisturbedAllTheSame(t *testing.T) {
	t.Parallel()
	r := start(t, "--payments", "1", "--seed", "1")
	code := r.wait()
	if code != 0 || !strings.Contains(r.out.String(), "OK: every payment was charged exactly once or not at all") {
		t.Errorf("exit %d\n%s%s", code, r.out.String(), r.err.String())
	}
	for _, line := range []string{"leases of 2s", "seed       1\n", "SIGKILL", "SIGSTOP", "SIGCONT", "charged twice", "repeated calls", "late writes refused", "healed", "breaks open"} {
		if !strings.Contains(r.out.String(), line) {
			t.Errorf("%q is not on the screen:\n%s", line, r.out.String())
		}
	}
	r.nothingIsLeft()
}

// A provider that ignores keys cannot be made safe by retrying: the demo must see it, else its
// "OK" is worth nothing.
func TestDoubleChargesOfASabotagedProviderAreFoundOut(t *testing.T) {
	t.Parallel()
	r := start(t, "--payments", "60", "--json", "--ignore-keys")
	code, res := r.wait(), r.result()
	if code != 1 || res.OK || res.DoubleCharged == 0 {
		t.Errorf("exit %d, %+v\n%s", code, res, r.err.String())
	}
	r.nothingIsLeft()
}

func TestInterruptEndsStoppedWorkersToo(t *testing.T) {
	t.Parallel()
	r := start(t, "--payments", "60")
	r.until("a worker is stopped", func() bool { return strings.Contains(r.out.String(), "SIGSTOP) with") })
	if n := len(r.processes()); n < 5 {
		t.Errorf("only %d processes, want this one, the provider and at least three workers", n)
	}
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := r.wait(); code != 1 || !strings.Contains(r.err.String(), "interrupt") {
		t.Errorf("exit %d, %s", code, r.err.String())
	}
	r.nothingIsLeft()
}

// Not even a kill that cannot be handled leaves a process behind, stopped ones included.
func TestKilledDemoTakesItsProcessesAlong(t *testing.T) {
	t.Parallel()
	r := start(t, "--payments", "60")
	r.until("a worker is stopped", func() bool { return strings.Contains(r.out.String(), "SIGSTOP) with") })
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	r.wait()
	r.until("all processes are gone", func() bool { return len(r.processes()) == 0 })
}

func TestDemoOnPostgresDropsItsSchema(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	r := start(t, "--payments", "60", "--json", "--db", url)
	code, res := r.wait(), r.result()
	if code != 0 || !res.OK || res.Completed+res.BreaksOpen != 60 || !res.LedgerEqual {
		t.Errorf("exit %d, %+v\n%s", code, res, r.err.String())
	}
	r.nothingIsLeft()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var schemas int
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'pacht%'`).Scan(&schemas); err != nil || schemas != 0 {
		t.Errorf("%d schemas left behind, %v", schemas, err)
	}
}

func TestBadOrdersAreRefusedBeforeAnythingIsMade(t *testing.T) {
	there := filepath.Join(t.TempDir(), "there.db")
	if err := os.WriteFile(there, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{Payments: 0}, "payments: 0 is not allowed, want 1 to 100,000"},
		{Config{Payments: 100_001}, "payments: 100001 is not allowed, want 1 to 100,000"},
		{Config{Payments: 1, Postgres: "sqlite:x.db"}, "--keep FILE"},
		{Config{Payments: 1, Keep: there}, "not there yet"},
	} {
		_, err := Run(t.Context(), c.cfg)
		var invalid *pacht.InvalidError
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.cfg, err)
		}
	}
}
