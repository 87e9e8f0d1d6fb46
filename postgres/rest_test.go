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
			next_at = now() + (50 * %[2]d - %[1]d) * interval '1 ms'`, ago.Milliseconds(), took.Milliseconds()))
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
	if pass := due(); pass.Turn || pass.NextIn < 60*time.Second || pass.NextIn > 69*time.Second {
		t.Errorf("a pass of two seconds is due 100 s after the last one: %+v", pass)
	}
	execute(t, pool, `INSERT INTO pacht.workers (owner, host, pid, queues, kinds, beat_every_ms, started_at, beat_at, last_until)
		VALUES ('dead', 'h', 1, '{}', '{}', 1000, now() - interval '1 hour', now() - interval '10 seconds', now() - interval '1 second')`)
	if pass := due(); !pass.Turn {
		t.Errorf("a worker died, and its leases have ended: %+v", pass)
	}
	passed(101*time.Second, 2*time.Second)
	if pass := due(); !pass.Turn {
		t.Errorf("100 s are over: %+v", pass)
	}
}
