package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// drainKeys are the interface: others read them.
var drainKeys = []string{
	"client_cpu_s_per_100k", "exactly_once", "jobs", "jobs_per_s", "seconds", "server_cpu_s_per_100k", "wal_bytes_per_job",
}

func TestBenchDrainPrintsOneObjectWithTheseKeys(t *testing.T) {
	onBoth(t, func(t *testing.T, s *shell) {
		out := s.ok("bench", "drain", "--jobs", "60", "--concurrency", "10", "--json")
		if keys := keysOf(t, out); !slices.Equal(keys, drainKeys) {
			t.Errorf("keys %q, want %q", keys, drainKeys)
		}
		var res struct {
			Jobs        int      `json:"jobs"`
			ExactlyOnce bool     `json:"exactly_once"`
			WAL         *float64 `json:"wal_bytes_per_job"`
		}
		if err := json.Unmarshal([]byte(out), &res); err != nil || res.Jobs != 60 || !res.ExactlyOnce {
			t.Errorf("%+v, %v", res, err)
		}
		if strings.HasPrefix(s.url, "sqlite:") == (res.WAL != nil) {
			t.Errorf("WAL: %v", res.WAL)
		}
		if out = s.ok("jobs", "list"); strings.Contains(out, "bench") {
			t.Errorf("the benchmark's jobs are left behind: %s", out)
		}
	})
}

func TestBenchDrainPrintsATableAndWhatItWasMeasuredOn(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	out := s.ok("bench", "drain", "--jobs", "30", "--rounds", "3")
	for _, want := range []string{"JOBS/S", "\n3 ", "\nmedian ", "SQLite 3", "synchronous full", "args 200 bytes", "concurrency 1000", "CPUs"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

// The rest of the scenarios are tested in internal/bench; here, that they can be called.
func TestBenchScenariosRunFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	for first, args := range map[string][]string{
		"bulk":              {"enqueue", "--singles", "5", "--jobs", "50"},
		"exactly_once":      {"pickup", "--jobs", "3", "--every", "1ms"},
		"claim_last_to_fir": {"steady", "--rate", "50", "--for", "300ms", "--interval", "100ms"},
		"hot_ratio":         {"heartbeat", "--leases", "5", "--for", "100ms"},
	} {
		if out := s.ok(append([]string{"bench", "--json"}, args...)...); !strings.Contains(strings.Join(keysOf(t, out), " "), first) {
			t.Errorf("%q: %s", args, out)
		}
	}
}

func TestBenchWithProcessesRunsEachJobOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, s *shell) {
		r := s.real("", "--db", s.url, "bench", "drain", "--jobs", "90", "--workers", "3", "--json")
		if r.code != exitOK || !strings.Contains(r.out, `"exactly_once": true`) {
			t.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
		}
	})
}

func TestBenchRefusesADatabaseInUse(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	s.ok("enqueue", "k", "{}")
	r := s.run("bench", "drain", "--jobs", "10")
	if r.code != exitUsage || !strings.Contains(r.err, "1 unfinished") || !strings.Contains(r.err, "--force") {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
	s.ok("bench", "drain", "--jobs", "10", "--force")
	if out := s.ok("jobs", "list", "--json"); !strings.Contains(out, `"kind": "k"`) || strings.Contains(out, "bench") {
		t.Errorf("left are %s", out)
	}
}

func TestBenchExitsWithOneWhenABoundIsExceeded(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	if r := s.run("bench", "drain", "--jobs", "50", "--max-client-cpu-s-per-100k", "1e6"); r.code != exitOK {
		t.Errorf("a bound that is kept: %d, %s", r.code, r.err)
	}
	r := s.run("bench", "drain", "--jobs", "50", "--max-client-cpu-s-per-100k", "0.001")
	if r.code != exitFailed || !strings.Contains(r.err, "client") || !strings.Contains(r.err, "bound 0.001") || !strings.Contains(r.out, "JOBS/S") {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
	}
	if r := s.run("bench", "drain", "--max-wal-bytes-per-job", "-1"); r.code != exitUsage || !strings.Contains(r.err, "max-wal-bytes-per-job") {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
}

func TestBenchRefusesValuesOutOfBoundsBeforeItStarts(t *testing.T) {
	s := onSQLite(t)
	for _, args := range [][]string{
		{"drain", "--jobs", "0"}, {"drain", "--workers", "0"}, {"drain", "--held", "-1"}, {"enqueue", "--clients", "0"},
		{"pickup", "--every", "-1s"}, {"steady", "--interval", "11m"}, {"heartbeat", "--ttl", "1ms"},
	} {
		if r := s.run(append([]string{"bench"}, args...)...); r.code != exitUsage {
			t.Errorf("%q: exit code %d: %s", args, r.code, r.err)
		}
	}
}

// A private server, worker processes and folders: none of them survives Ctrl-C.
func TestBenchThatIsInterruptedLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	temp, err := os.MkdirTemp("", "pacht-interrupted-") // the server runs as somebody else, who must get there
	if err == nil {
		err = os.Chmod(temp, 0o777)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(temp) }) // a folder of a failed test
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "bench", "steady", "--postgres", "--for", "10m", "--interval", "200ms", "--rate", "20")
	cmd.Env = append(os.Environ(), asPacht+"=1", "TMPDIR="+temp)
	var out, errs lockedBuffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(patience)
	for !strings.Contains(errs.String(), " in, ") {
		if time.Now().After(deadline) {
			_ = cmd.Process.Kill()
			t.Fatalf("it does not begin: %s%s", out.String(), errs.String())
		}
		time.Sleep(10 * time.Millisecond)
	}
	pid := postmaster(t, temp)
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the exit code is what counts
	if cmd.ProcessState.ExitCode() != exitFailed || !strings.Contains(errs.String(), "interrupted") {
		t.Errorf("exit code %d: %s", cmd.ProcessState.ExitCode(), errs.String())
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if server, err := os.FindProcess(pid); err == nil && server.Signal(syscall.Signal(0)) == nil {
		t.Errorf("the server, process %d, is left behind", pid)
	}
}

// postmaster is the server in a folder of temporary ones.
func postmaster(t *testing.T, temp string) (pid int) {
	t.Helper()
	folders, err := os.ReadDir(temp)
	if err != nil || len(folders) != 1 {
		t.Fatalf("folders of the benchmark: %v, %v", folders, err)
	}
	text, err := os.ReadFile(temp + "/" + folders[0].Name() + "/data/postmaster.pid")
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := bytes.Cut(text, []byte("\n"))
	if err := json.Unmarshal(first, &pid); err != nil {
		t.Fatal(err)
	}
	return pid
}
