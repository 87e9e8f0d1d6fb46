package postgres

import (
	"fmt"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/pgtest"
)

// A pass reads the leases from end to end. Where millions of jobs wait it takes its time, and so
// comes less often; but not where a worker died, whose leases are to be found at once.
func TestPassesThatTakeLongComeLessOften(t *testing.T) {
	s, pool := openAt(t, pgtest.Database(t), Config{})
	const period = 30 * time.Second
	passed := func(ago time.Duration, took time.Duration) {
		execute(t, pool, fmt.Sprintf(`UPDATE pacht.watch SET took_ms = %[2]d, passed_at = now() - %[1]d * interval '1 ms',
			next_at = now() + (100::bigint * %[2]d - %[1]d) * interval '1 ms'`, ago.Milliseconds(), took.Milliseconds()))
	}
	due := func() pacht.Pass {
		t.Helper()
		pass, err := s.Expire(t.Context(), pacht.ExpireRequest{By: "w", Limit: 10, Period: period})
		if err != nil {
			t.Fatal(err)
		}
		return pass
	}
	passed(31*time.Second, 10*time.Millisecond)
	if pass := due(); !pass.Turn || pass.NextIn < period-time.Second || pass.NextIn > period {
		t.Errorf("a quick pass is due every period: %+v", pass)
	}
	passed(31*time.Second, 2*time.Second)
	if pass := due(); pass.Turn || pass.NextIn < 160*time.Second || pass.NextIn > 169*time.Second {
		t.Errorf("a pass of two seconds is due 200 s after the last one: %+v", pass)
	}
	execute(t, pool, `INSERT INTO pacht.workers (owner, host, pid, queues, kinds, beat_every_ms, started_at, beat_at)
		VALUES ('dead', 'h', 1, '{}', '{}', 1000, now() - interval '1 hour', now() - interval '10 seconds')`)
	if pass := due(); !pass.Turn {
		t.Errorf("a worker missed its beats, and may have claimed after the last one: %+v", pass)
	}
	if pass := due(); pass.Turn {
		t.Errorf("it brings one pass and no more: %+v", pass)
	}
	passed(8*time.Second, 2*time.Second)
	execute(t, pool, `UPDATE pacht.workers SET beat_at = now() - interval '1 minute', last_until = now() - interval '1 second'`)
	if pass := due(); !pass.Turn {
		t.Errorf("the last lease that it told of has ended: %+v", pass)
	}
	passed(201*time.Second, 2*time.Second)
	if pass := due(); !pass.Turn {
		t.Errorf("200 s are over: %+v", pass)
	}
	// A machine that slept in the middle of a pass.
	execute(t, pool, "DELETE FROM pacht.workers")
	passed(299*time.Second, 8*time.Hour)
	if pass := due(); pass.Turn {
		t.Errorf("five minutes are not over: %+v", pass)
	}
	passed(301*time.Second, 8*time.Hour)
	if pass := due(); !pass.Turn {
		t.Errorf("five minutes are over: %+v", pass)
	}
}

// A lease that is known to end is waited for, by a pass or a beat: not for longer than a period.
func TestALeaseThatIsKnownToEndIsNotPutOff(t *testing.T) {
	s, pool := openAt(t, pgtest.Database(t), Config{})
	next := func() time.Duration {
		t.Helper()
		watch, err := s.Watch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return watch.NextAt.Sub(watch.PassedAt)
	}
	for took, want := range map[time.Duration]time.Duration{10 * time.Millisecond: 200 * time.Millisecond, time.Second: 20 * time.Second, 8 * time.Hour: 30 * time.Second} {
		execute(t, pool, fmt.Sprintf(`UPDATE pacht.watch SET passed_at = now(), took_ms = %d, next_at = now() + interval '5 minutes'`, took.Milliseconds()))
		beat := pacht.WorkerInfo{Owner: "o", Host: "h", PID: 1, BeatEvery: time.Second, FirstUntil: time.Now().Add(-time.Hour), LastUntil: time.Now()}
		if err := s.Beat(t.Context(), beat); err != nil {
			t.Fatal(err)
		}
		if got := next(); got != want {
			t.Errorf("a beat with a lease that has ended, after a pass of %s: the next one comes %s later, want %s", took, got, want)
		}
	}
}
