package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
)

// visit runs doctor and answers its verdicts by key.
func (s *shell) visit(code int, flags ...string) map[string]verdict {
	s.t.Helper()
	var d diagnosis
	s.document(&d, code, append([]string{"doctor"}, flags...)...)
	if d.OK != (code == exitOK) {
		s.t.Errorf("ok is %v, and the exit code %d", d.OK, code)
	}
	verdicts := map[string]verdict{}
	for _, f := range append(d.Questions, d.More...) {
		verdicts[f.Key] = f.Verdict
	}
	if len(d.Questions) != 6 {
		s.t.Errorf("%d questions", len(d.Questions))
	}
	return verdicts
}

func (s *shell) verdicts(got map[string]verdict, want map[string]verdict) {
	s.t.Helper()
	for key, v := range want {
		if got[key] != v {
			s.t.Errorf("%s: %q, want %q", key, got[key], v)
		}
	}
}

func TestDoctorOfAnEmptyDatabaseSaysThatThereIsNotEnoughData(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shell) {
		s.verdicts(s.visit(exitOK), map[string]verdict{
			"claim_atomic": good, "ttl_longer": unclear, "long_renew": unclear, "watcher_runs": unclear, "owner_recorded": unclear,
			"attempt_kept": unclear, "schema": good, "rules": good, "clock_skew": good, "unserved": good, "parked": good, "workers": unclear,
		})
		out := s.ok("doctor")
		for _, want := range []string{"UPDATE", "not enough data", "no bad verdict"} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in\n%s", want, out)
			}
		}
	})
}

func TestDoctorFindsAHealthyFleetGood(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shell) {
		if r := s.feed(strings.Repeat(`{"kind":"k"}`+"\n", enoughLeases), "enqueue", "--batch"); r.code != exitOK {
			t.Fatal(r)
		}
		long := s.enqueue("long", "--ttl", "400ms")
		w := s.work(s.script(`test $PACHT_KIND = k && exit 0; while ! test -e go; do sleep 0.05; done`), "--kind", "k", "--kind", "long", "--queue", "default=4")
		db := s.store()
		until(t, "all short ones are done, and the long one is renewed", func() bool {
			left, err := db.Jobs(t.Context(), pacht.Filter{Status: pacht.Pending})
			j := jobOf(t, db, long)
			return err == nil && len(left) == 0 && j.Status == pacht.Processing && j.LeaseUntil.Sub(j.ClaimedAt) > 2*j.TTL
		})
		s.verdicts(s.visit(exitOK), map[string]verdict{
			"claim_atomic": good, "ttl_longer": good, "long_renew": good, "watcher_runs": good, "owner_recorded": good,
			"attempt_kept": good, "rules": good, "unserved": good, "workers": good,
		})
		w.signal(syscall.SIGTERM)
		if err := os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		w.ends()
	})
}

func TestDoctorFindsHeldLeasesThatNobodyRenewsOrWatches(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shell) {
		id := s.enqueue("k", "--ttl", "100ms")
		s.claim(id)
		db := s.store()
		until(t, "the lease ends", func() bool {
			now, err := db.Now(t.Context())
			return err == nil && now.After(jobOf(t, db, id).LeaseUntil)
		})
		s.verdicts(s.visit(exitFailed), map[string]verdict{"long_renew": look, "watcher_runs": bad, "owner_recorded": good, "attempt_kept": good})
		if r := s.run("doctor"); !strings.Contains(r.out, "BAD") || !strings.Contains(r.out, "job "+id) || !strings.Contains(r.out, "somebody") {
			t.Errorf("%s", r.out)
		}
		watcher := s.start("watch", "--period", "50ms")
		attempts(t, db, id, 1)
		watcher.stop()
		s.verdicts(s.visit(exitOK), map[string]verdict{"long_renew": unclear, "watcher_runs": good})
	})
}

func TestDoctorFindsWorkThatOutranItsLease(t *testing.T) { // R7
	t.Parallel()
	s := migrated(t)
	id := s.enqueue("k", "--ttl", "100ms")
	j := s.claim(id)
	db := s.store()
	until(t, "the lease ends", func() bool {
		now, err := db.Now(t.Context())
		return err == nil && now.After(j.LeaseUntil)
	})
	if got, err := db.Settle(t.Context(), []pacht.Settlement{{Ref: j.Ref(), Outcome: pacht.OutcomeCompleted}}); err != nil || !got[0].Late {
		t.Fatal(got, err)
	}
	s.verdicts(s.visit(exitFailed), map[string]verdict{"ttl_longer": bad})
}

// Hand-made damage: each is found, and named with its rule and job.
func TestDoctorListsViolationsOfTheRules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule, key, statement string
	}{
		{"R4", "attempt_kept", `DELETE FROM pacht_attempts WHERE token = 1`},
		{"R1", "claim_atomic", `DELETE FROM pacht_jobs`},
		{"R5", "attempt_kept", `UPDATE pacht_attempts SET attempt = 7 WHERE token = 1`},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			s := migrated(t)
			id := s.enqueue("k")
			s.claim(id)
			s.ok(ann("jobs", "release", id)...)
			s.sql(c.statement)
			var d diagnosis
			s.document(&d, exitFailed, "doctor")
			found := false
			for _, v := range d.Violations {
				found = found || v.Rule == c.rule && v.Job.String() == id
			}
			if !found {
				t.Errorf("violations: %+v", d.Violations)
			}
			s.verdicts(s.visit(exitFailed), map[string]verdict{"rules": bad, c.key: bad})
			s.verdicts(s.visit(exitOK, "--skip-check"), map[string]verdict{"rules": unclear})
		})
	}
}

func TestDoctorFindsDueJobsThatNoWorkerTakesAndParkedOnes(t *testing.T) { // S083
	t.Parallel()
	s := migrated(t)
	id := s.enqueue("orphan", "--queue", "q")
	s.verdicts(s.visit(exitOK), map[string]verdict{"unserved": look, "parked": good})
	s.sql(`UPDATE pacht_leases SET run_at = run_at - 3600000`)
	s.sql(`UPDATE pacht_jobs SET run_at = run_at - 3600000, created_at = created_at - 3600000`)
	s.verdicts(s.visit(exitFailed), map[string]verdict{"unserved": bad})
	if r := s.run("doctor"); !strings.Contains(r.out, "queue q, kind orphan: 1 job") {
		t.Errorf("%s", r.out)
	}
	j := s.claim(id)
	if _, err := s.store().Settle(t.Context(), []pacht.Settlement{{Ref: j.Ref(), Outcome: pacht.OutcomeUnknown}}); err != nil {
		t.Fatal(err)
	}
	s.verdicts(s.visit(exitOK), map[string]verdict{"unserved": good, "parked": look})
}

// A difference between the books that nobody can mend but a person has no job, as often as not.
func TestDoctorCountsBreaksThatAreWithAPerson(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	for _, d := range []pacht.Decision{aBreak("p1", 0, pacht.BreakWaiting), aBreak("p2", 0, pacht.BreakPerson), aBreak("p3", 0, pacht.BreakHealed)} {
		if _, err := s.store().Decide(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	s.verdicts(s.visit(exitOK), map[string]verdict{"parked": look})
	if out := s.ok("doctor"); !strings.Contains(out, "1 break with a person") {
		t.Errorf("%s", out)
	}
}

// The forgotten one is older than more jobs than any list shows.
func TestDoctorFindsAKindWithoutAWorkerBehindManyNewerJobs(t *testing.T) { // S083
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shell) {
		s.enqueue("orphan")
		if r := s.feed(strings.Repeat(`{"kind":"busy"}`+"\n", 1001), "enqueue", "--batch"); r.code != exitOK {
			t.Fatal(r)
		}
		beat := pacht.WorkerInfo{Owner: "o", Host: "h", PID: 1, Queues: []string{"default"}, Kinds: []string{"busy"}, BeatEvery: time.Hour}
		if err := s.store().Beat(t.Context(), beat); err != nil {
			t.Fatal(err)
		}
		r := s.run("doctor")
		if !strings.Contains(r.out, "queue default, kind orphan: 1 job") || strings.Contains(r.out, "kind busy: 1") {
			t.Errorf("%s", r.out)
		}
	})
}

func TestDoctorFindsAForgottenLeaseBehindManyNewerOnes(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	db := s.store()
	claim := func(n int) {
		t.Helper()
		got, err := db.Claim(t.Context(), pacht.ClaimRequest{Owner: "o", Queue: "default", Kinds: []string{"k"}, Limit: n})
		if err != nil || len(got.Jobs) != n {
			t.Fatalf("claimed %d: %v", len(got.Jobs), err)
		}
	}
	s.enqueue("k")
	claim(1)
	const hour = 3600_000
	s.sql(`UPDATE pacht_leases SET claimed_at = claimed_at - ?1, lease_until = lease_until - ?1`, hour)
	if r := s.feed(strings.Repeat(`{"kind":"k"}`+"\n", page), "enqueue", "--batch"); r.code != exitOK {
		t.Fatal(r)
	}
	claim(page)
	s.verdicts(s.visit(exitFailed, "--skip-check"), map[string]verdict{"long_renew": bad, "owner_recorded": good})
}

func TestLeaseThatExpiredAMomentAgoIsWorthALookUntilNoWatcherCame(t *testing.T) {
	now := time.Now()
	every := func(d time.Duration) pacht.WatchInfo {
		return pacht.WatchInfo{PassedAt: now.Add(-d), NextAt: now}
	}
	for _, c := range []struct {
		name string
		left time.Duration
		w    pacht.WatchInfo
		want verdict
	}{
		{"in time", 50 * time.Second, every(time.Minute), unclear},
		{"a beat was missed", 10 * time.Second, every(time.Minute), look},
		{"just expired", -time.Second, every(time.Minute), look},
		{"before the period and the patience are over", -89 * time.Second, every(time.Minute), look},
		{"after them", -91 * time.Second, every(time.Minute), bad},
		{"a long period", -91 * time.Second, every(time.Hour), look},
		{"never watched, not for long", -59 * time.Second, pacht.WatchInfo{}, look},
		{"never watched", -61 * time.Second, pacht.WatchInfo{}, bad},
	} {
		held := pacht.JobInfo{ID: 7, TTL: time.Minute, ClaimedAt: now.Add(c.left - time.Minute), LeaseUntil: now.Add(c.left)}
		v := vitals{now: now, held: []pacht.JobInfo{held}, watch: c.w}
		if got := v.longRenew(); got.Verdict != c.want {
			t.Errorf("%s: %s (%s), want %s", c.name, got.Verdict, got.Answer, c.want)
		}
	}
}

func TestDoctorMeasuresTheSkewOfTheClocks(t *testing.T) {
	for _, c := range []struct {
		skew, trip time.Duration
		want       verdict
	}{
		{time.Second, time.Millisecond, good}, {-time.Minute, time.Millisecond, bad}, {time.Minute, time.Millisecond, bad},
		{10 * time.Second, 20 * time.Second, good}, // it may all be the way there and back
	} {
		v := vitals{skew: c.skew, roundTrip: c.trip}
		if got := v.clocks(); got.Verdict != c.want || got.Figures["skew_ns"] != c.skew {
			t.Errorf("%s: %+v, want %s", c.skew, got, c.want)
		}
	}
}

func TestSilentWorkersAreShown(t *testing.T) {
	now := time.Now()
	v := vitals{now: now, workers: []pacht.WorkerInfo{
		{Owner: "a", BeatAt: now, BeatEvery: time.Second},
		{Owner: "b", BeatAt: now.Add(-time.Minute), BeatEvery: time.Second},
		{Owner: "c", BeatAt: now.Add(-time.Minute), BeatEvery: time.Second, StoppedAt: now},
	}}
	f := v.workersLive()
	if f.Verdict != look || f.Figures["running"] != 1 || f.Figures["silent"] != 1 {
		t.Errorf("%+v", f)
	}
	if got := fmt.Sprint(workerState(v.workers[0], now), workerState(v.workers[1], now), workerState(v.workers[2], now)); got != "runningsilentstopped" {
		t.Errorf("%s", got)
	}
}

func TestWatcherIsMissedOnlyWhereThereIsWork(t *testing.T) {
	now := time.Now()
	held := []pacht.Count{{Status: pacht.Processing, Jobs: 1}}
	live := []pacht.WorkerInfo{{BeatAt: now, BeatEvery: time.Second}}
	late := pacht.WatchInfo{PassedAt: now.Add(-time.Hour), NextAt: now.Add(-time.Minute), PassedBy: "w"}
	inTime := pacht.WatchInfo{PassedAt: now.Add(-time.Hour), NextAt: now.Add(-time.Second), PassedBy: "w"}
	for _, c := range []struct {
		name string
		v    vitals
		want verdict
	}{
		{"never, idle", vitals{}, unclear},
		{"never, held", vitals{counts: held}, bad},
		{"never, a worker runs", vitals{workers: live}, bad},
		{"overdue, held", vitals{watch: late, counts: held}, bad},
		{"overdue, a worker runs", vitals{watch: late, workers: live}, bad},
		{"overdue, idle", vitals{watch: late}, unclear},
		{"in time", vitals{watch: inTime, counts: held}, good},
	} {
		c.v.now = now
		if got := c.v.watcherRuns(); got.Verdict != c.want {
			t.Errorf("%s: %s (%s), want %s", c.name, got.Verdict, got.Answer, c.want)
		}
	}
}
