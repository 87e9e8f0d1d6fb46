package watch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/sqlite"
	"github.com/pacht-queue/pacht/watch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "test.db"), sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if _, err := s.MigrateUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// expired makes jobs whose holders are gone.
func expired(t *testing.T, s *sqlite.Store, n int) {
	t.Helper()
	jobs := make([]pacht.NewJob, n)
	for i := range jobs {
		jobs[i] = pacht.NewJob{Kind: "task", Args: []byte(`{}`)}
	}
	if _, err := s.Enqueue(t.Context(), jobs); err != nil {
		t.Fatal(err)
	}
	claims, err := s.Claim(t.Context(), pacht.ClaimRequest{Owner: "gone", Queue: pacht.DefaultQueue, Kinds: []string{"task"}, Limit: n})
	if err != nil || len(claims.Jobs) != n {
		t.Fatalf("claimed %d of %d: %v", len(claims.Jobs), n, err)
	}
	if err := s.Age(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
}

// run watches until done says so, and returns what the watcher did and logged.
func run(t *testing.T, s watch.Store, cfg watch.Config, done func([]pacht.Pass) bool) ([]pacht.Pass, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var passes []pacht.Pass
	cfg.OnPass = func(p pacht.Pass) {
		if passes = append(passes, p); done(passes) {
			cancel()
		}
	}
	var log bytes.Buffer
	cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	w, err := watch.New(s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Run(ctx); err != nil {
		t.Error(err)
	}
	if !errors.Is(ctx.Err(), context.Canceled) {
		t.Fatalf("not done after %d passes; log:\n%s", len(passes), log.String())
	}
	return passes, log.String()
}

func closed(passes []pacht.Pass) (n int) {
	for _, p := range passes {
		n += len(p.Expired)
	}
	return n
}

// R6, R9: all that is expired is closed in one turn, page by page, and each lease is logged
// with its owner.
func TestOneTurnClosesAllPages(t *testing.T) {
	s := open(t)
	expired(t, s, 25)
	passes, log := run(t, s, watch.Config{Limit: 10}, func(p []pacht.Pass) bool { return closed(p) == 25 })
	if len(passes) != 3 || passes[0].More == 0 || passes[2].More != 0 {
		t.Errorf("%d passes: %+v", len(passes), passes)
	}
	if n := strings.Count(log, "owner=gone"); n != 25 {
		t.Errorf("%d leases logged with their owner:\n%s", n, log)
	}
	if now, err := s.Counts(t.Context()); err != nil || len(now) != 1 || now[0].Status != pacht.Pending || now[0].Jobs != 25 {
		t.Errorf("counts: %+v, %v", now, err)
	}
}

// unreachable fails a number of times before it reaches the real store.
type unreachable struct {
	watch.Store
	mu    sync.Mutex
	fails int
	last  time.Time
	first time.Time // call that got through
}

func (u *unreachable) Expire(ctx context.Context, req pacht.ExpireRequest) (pacht.Pass, error) {
	u.mu.Lock()
	u.fails--
	failed := u.fails >= 0
	if failed {
		u.last = time.Now()
	} else if u.first.IsZero() {
		u.first = time.Now()
	}
	u.mu.Unlock()
	if failed {
		return pacht.Pass{}, fmt.Errorf("injected: connection refused")
	}
	return u.Store.Expire(ctx, req)
}

// R7, S042: after a time without database the first pass waits, so that holders who come back
// settle first; and the outage is one line in the log, however long it is.
func TestAfterAnOutageHoldersComeFirst(t *testing.T) {
	s := open(t)
	expired(t, s, 1)
	u := &unreachable{Store: s, fails: 3}
	cfg := watch.Config{Period: 10 * time.Second, Poll: 10 * time.Millisecond, AfterOutage: 300 * time.Millisecond}
	_, log := run(t, u, cfg, func(p []pacht.Pass) bool { return closed(p) == 1 })
	if waited := u.first.Sub(u.last); waited < 250*time.Millisecond {
		t.Errorf("the first pass after the outage came %s after the last failure", waited)
	}
	if n := strings.Count(log, "cannot reach the database"); n != 1 {
		t.Errorf("%d lines for one outage:\n%s", n, log)
	}
}

func TestConfigurationsThatMakeNoSenseAreRefused(t *testing.T) {
	for says, cfg := range map[string]watch.Config{
		"watch period: 1ms is not allowed, want 10ms to 1h":                              {Period: time.Millisecond},
		"watch period: -1s is not allowed":                                               {Period: -time.Second},
		"limit: 10001 is not allowed, want 1 to 10000":                                   {Limit: pacht.MaxBatch + 1},
		"watch poll: 2s is not allowed, want 10ms to the watch period, which is 1s":      {Period: time.Second, Poll: 2 * time.Second},
		"watch wait after an outage: 1m0s is not allowed, want 0 to the watch period":    {AfterOutage: time.Minute},
		"owner: \"" + strings.Repeat("x", 40) + "...\" is not allowed, want 1 to 256 by": {By: strings.Repeat("x", 300)},
	} {
		if _, err := watch.New(nil, cfg); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("want %q, got %v", says, err)
		}
	}
}
