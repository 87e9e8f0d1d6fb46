package bench

import (
	"os"
	"strings"
	"testing"
	"time"
)

func small() Drain {
	return Drain{Jobs: 120, ArgsBytes: 60, Concurrency: 20, Workers: 1, Rounds: 1}
}

func TestDrainCountsEachJobOnceInStatesThatMustNotHurt(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		d := small()
		d.Rounds, d.State = 2, State{Finished: 7, Future: 6, Foreign: 5, Parked: 4, Held: 3}
		p := open(t, Where{URL: url})
		d.Snapshot = p.onPostgres()
		res, err := d.Run(t.Context(), p)
		if err != nil || !res.ExactlyOnce || len(res.Rounds) != 2 || res.Jobs != 120 || res.JobsPerS <= 0 {
			t.Fatalf("%+v, %v", res, err)
		}
		if (res.WAL == nil) == p.onPostgres() || (p.onPostgres() && *res.WAL < 50) {
			t.Errorf("WAL: %v", res.WAL)
		}
		// What the state's SQL wrote is what the product would have left (R1 to R12).
		if found, err := p.store.Check(t.Context()); err != nil || len(found) > 0 {
			t.Errorf("check: %+v, %v", found, err)
		}
		counts := map[string]int64{}
		all, err := p.store.Counts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range all {
			counts[string(c.Status)] += c.Jobs
		}
		if counts["Pending"] != 11 || counts["Stuck"] != 4 || counts["Processing"] != 3 {
			t.Errorf("what the state wrote is not left alone: %v", counts)
		}
	})
}

func TestThreeProcessesShareADrain(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		d := small()
		d.Workers = 3
		var err error
		if d.Executable, err = os.Executable(); err != nil {
			t.Fatal(err)
		}
		res, err := d.Run(t.Context(), open(t, Where{URL: url}))
		if err != nil || !res.ExactlyOnce {
			t.Errorf("%+v, %v: %s", res, err, res.Why)
		}
		if res.ClientCPU == nil || *res.ClientCPU <= 0 {
			t.Errorf("the CPU of the processes: %v", res.ClientCPU)
		}
	})
}

func TestWorkerProcessThatDiesEndsTheDrain(t *testing.T) {
	d := small()
	d.Workers, d.Executable = 2, "/bin/false"
	url := "sqlite:" + t.TempDir() + "/p.db"
	if _, err := openStore(t, url).MigrateUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Run(t.Context(), open(t, Where{URL: url})); err == nil || !strings.Contains(err.Error(), "worker process") {
		t.Errorf("%v", err)
	}
}

// The books are what a drain is judged by: each way in which they can be wrong is seen.
func TestVerdictSeesJobsThatDidNotRunExactlyOnce(t *testing.T) {
	good := func() (*runs, books) {
		r := newRuns(5)
		for n := range 3 {
			r.ran(n)
		}
		return r, books{jobs: 3, once: 3}
	}
	if r, b := good(); verdict(r, 3, b, false) != "" {
		t.Errorf("good books: %s", verdict(r, 3, b, false))
	}
	for name, spoil := range map[string]func(*runs, *books){
		"ran twice":               func(r *runs, _ *books) { r.ran(1) },
		"one twice, one never":    func(r *runs, _ *books) { r.of[0].Add(1); r.of[2].Store(0) },
		"never ran":               func(r *runs, _ *books) { r.of[2].Store(0) },
		"ran beyond the run":      func(r *runs, _ *books) { r.ran(4) },
		"a job of somebody else":  func(r *runs, _ *books) { r.ran(-1) },
		"no completed attempt":    func(_ *runs, b *books) { b.once-- },
		"a lease is left":         func(_ *runs, b *books) { b.left++ },
		"a job is missing":        func(_ *runs, b *books) { b.jobs--; b.once-- },
		"a job too many":          func(_ *runs, b *books) { b.jobs++; b.once++ },
		"another process twice":   func(r *runs, _ *books) { r.add([]byte{0, 1}, 0) },
		"another process strange": func(r *runs, _ *books) { r.add(nil, 1) },
	} {
		r, b := good()
		spoil(r, &b)
		if verdict(r, 3, b, false) == "" {
			t.Errorf("not seen: %s", name)
		}
	}
	r, b := good()
	b.jobs, b.once = 1, 1
	if why := verdict(r, 3, b, true); why != "" {
		t.Errorf("pruned books: %s", why)
	}
	if b.once = 0; verdict(r, 3, b, true) == "" {
		t.Error("pruned books with a job that is not completed are good")
	}
}

func TestWrongLedgerIsSeen(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		p := open(t, Where{URL: url})
		if res, err := small().Run(t.Context(), p); err != nil || !res.ExactlyOnce {
			t.Fatalf("%+v, %v", res, err)
		}
		const first = "(SELECT min(job_id) FROM ${t}jobs)"
		const copied = "INSERT INTO ${t}attempts (job_id, token, claimed_at, ended_at, attempt, outcome, next_status, owner) " +
			"SELECT job_id, 2, claimed_at, ended_at, 2, outcome, next_status, owner FROM ${t}attempts WHERE job_id = " + first
		for _, step := range []struct {
			sql  string
			want books
		}{
			{"DELETE FROM ${t}reports", books{120, 120, 0}},
			{copied, books{120, 119, 0}},                                             // completed twice
			{"DELETE FROM ${t}attempts WHERE job_id = " + first, books{120, 119, 0}}, // and not at all
			{"INSERT INTO ${t}leases (job_id, run_at, max_attempts, ttl_ms, max_crashes, priority, crash_policy, queue, kind) " +
				"SELECT job_id, run_at, 25, 60000, 3, 3, 'retry', queue, kind FROM ${t}jobs WHERE job_id = " + first, books{120, 119, 1}},
		} {
			run(t, p, step.sql)
			if b, err := p.books(t.Context(), 0); err != nil || b != step.want {
				t.Errorf("after %s: %+v, %v; want %+v", step.sql, b, err, step.want)
			}
		}
	})
}

func TestMedianIsOfEachFigureByItself(t *testing.T) {
	f := func(v float64) *float64 { return &v }
	m := medianOf([]DrainRound{
		{Jobs: 5, Seconds: 3, JobsPerS: 1, ClientCPU: f(9), ExactlyOnce: true, WAL: f(1)},
		{Jobs: 5, Seconds: 1, JobsPerS: 3, ClientCPU: f(7), Why: "lost one", WAL: f(4)},
		{Jobs: 5, Seconds: 2, JobsPerS: 2, ClientCPU: f(8), ExactlyOnce: true, WAL: nil},
	})
	if m.Seconds != 2 || m.JobsPerS != 2 || *m.ClientCPU != 8 || m.WAL != nil || m.ExactlyOnce || m.Why != "lost one" {
		t.Errorf("%+v", m)
	}
}

func TestBoundsNameValueAndBound(t *testing.T) {
	f := func(v float64) *float64 { return &v }
	r := DrainRound{ClientCPU: f(1.5), ServerCPU: f(2.5), WAL: f(400)}
	if broken := (Bounds{CPU: 4, ClientCPU: 1.5, WAL: 400}).Exceeded(r); len(broken) > 0 {
		t.Errorf("kept bounds: %q", broken)
	}
	broken := strings.Join(Bounds{CPU: 3.9, ClientCPU: 1.4, WAL: 399}.Exceeded(r), "\n")
	for _, want := range []string{"4.000, bound 3.9", "1.500, bound 1.4", "400.0, bound 399"} {
		if !strings.Contains(broken, want) {
			t.Errorf("%q is not in %q", want, broken)
		}
	}
	if len(Bounds{CPU: 9, WAL: 999}.Exceeded(DrainRound{ClientCPU: f(1)})) != 2 {
		t.Error("bounds of what cannot be measured are taken for kept")
	}
}

func TestLooksForTheEndAreFewInTheMiddleAndSoonAtTheEnd(t *testing.T) {
	for _, c := range []struct {
		elapsed time.Duration
		ran     int64
		want    time.Duration
	}{
		{0, 0, look}, {time.Second, 0, 100 * time.Millisecond}, {time.Second, 50_000, 100 * time.Millisecond},
		{time.Second, 99_000, 1_000_000_000 / 99 / 2}, {time.Second, 99_990, look},
	} {
		if got := pause(c.elapsed, c.ran, 100_000); got < c.want*9/10 || got > c.want*11/10 {
			t.Errorf("after %s with %d of 100000 done: %s, want %s", c.elapsed, c.ran, got, c.want)
		}
	}
}
