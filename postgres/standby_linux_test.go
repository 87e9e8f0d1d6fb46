package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/netfault"
	"github.com/pacht-queue/pacht/internal/pgserver"
	"github.com/pacht-queue/pacht/internal/pgtest"
)

// within bounds one call that is expected to get no answer.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// onMachine says of a test's settings: a crash of it leaves nothing in the machine's memory.
const onMachine = "dynamic_shared_memory_type=mmap"

// S025: a node in recovery is not available, and what it says of leases is old: a worker that
// asked there what it holds would take up jobs that it has completed long ago. Once it is
// promoted the same store goes on, without a restart.
func TestStandbyIsNotAvailableUntilItIsPromoted(t *testing.T) {
	primary := pgtest.NewServer(t, onMachine)
	url := primary.Database(t)
	s, _ := openAt(t, url, Config{})
	standby := primary.Standby(t, "b", primary.Addr())
	there := openThere(t, standby.URL(databaseOf(url)))
	job := held(t, s)
	until(t, "the standby knows of the lease", func() bool {
		j, err := there.Job(t.Context(), job.ID)
		return err == nil && j.Status == pacht.Processing
	})
	admin := poolAt(t, standby.URL("postgres"))
	execute(t, admin, "SELECT pg_wal_replay_pause()")
	until(t, "replay is paused", func() bool { return value(t, admin, "SELECT pg_get_wal_replay_pause_state()") == "paused" })
	complete(t, s, []pacht.JobInfo{job})
	if mine, err := there.HeldBy(t.Context(), "owner"); code(err) != "25006" || len(mine.Jobs) > 0 { // R4
		t.Errorf("a standby that is behind says what is held: %d jobs, %v", len(mine.Jobs), err)
	}
	_, claimErr := there.Claim(t.Context(), request("owner", 1))
	_, renewErr := there.Renew(t.Context(), []pacht.Ref{{}}) // what the watcher asks, R7
	_, enqueueErr := there.Enqueue(t.Context(), []pacht.NewJob{pacht.New(charge{1})})
	_, expireErr := there.Expire(t.Context(), pacht.ExpireRequest{By: "w", Limit: 1, Period: time.Second})
	if enqueueErr == nil || errors.Is(enqueueErr, pacht.ErrUnknown) { // in the server's own words: it does not even look for sleepers
		t.Errorf("enqueue on a standby: %v", enqueueErr)
	}
	for verb, err := range map[string]error{"claim": claimErr, "renew": renewErr, "expire": expireErr} {
		if code(err) != "25006" || errors.Is(err, pacht.ErrUnknown) || !strings.Contains(err.Error(), "takes no writes") {
			t.Errorf("%s on a standby: %v", verb, err)
		}
	}
	until(t, "no connection to a server that takes no writes is kept", func() bool { return there.own.Stat().TotalConns() == 0 })
	primary.Kill(t)
	standby.Promote(t) // which replays what had come
	if mine, err := there.HeldBy(t.Context(), "owner"); err != nil || len(mine.Jobs) > 0 {
		t.Errorf("after the promotion: %+v, %v", mine.Jobs, err)
	}
	complete(t, there, []pacht.JobInfo{held(t, there)})
	check(t, there)
}

// openThere is a store on a server that need not take writes.
func openThere(t *testing.T, url string) *Store {
	t.Helper()
	s, err := Open(t.Context(), url, Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// R4, R11: with a synchronous standby a commit is answered when the standby has it. A client
// that gives up makes the server give up waiting, and the commit stands on the primary alone.
// Whoever asks again must not hear that it is done, because a promotion undoes it: two owners
// would have one token.
func TestWhatNoStandbyHasIsNotAnsweredWhenAskedAgain(t *testing.T) {
	primary := pgtest.NewServer(t, onMachine)
	s, pool := storeAt(t, primary.Database(t), Config{})
	link := netfault.New(t, primary.Addr())
	primary.Standby(t, "b", link.Addr())
	execute(t, pool, "ALTER SYSTEM SET synchronous_standby_names = 'b'")
	execute(t, pool, "SELECT pg_reload_conf()")
	t.Cleanup(func() { // else the end of the test would wait for a standby that is gone
		for _, sql := range []string{"ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()"} {
			if err := pgserver.Execute(context.Background(), primary.URL("postgres"), sql); err != nil {
				t.Errorf("%s: %v", sql, err)
			}
		}
	})
	until(t, "the standby is synchronous", func() bool {
		return value(t, pool, "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == "1"
	})
	job, waits := held(t, s), enqueue(t, s, 1)[0]
	called := held(t, s)
	if _, err := s.BeginEffect(t.Context(), called.Ref(), pacht.EffectIntent{Name: "pay", Key: "k", Reference: "r"}); err != nil {
		t.Fatal(err)
	}
	keyed := []pacht.NewJob{pacht.New(charge{7}, pacht.IdempotencyKey("once"), pacht.RunIn(time.Hour))}
	settle := []pacht.Settlement{{Ref: job.Ref(), Outcome: pacht.OutcomeFailed, Error: "declined"}}
	answer := pacht.EffectAnswer{Job: called.ID, Name: "pay", Rev: 1, State: pacht.EffectSucceeded}
	ask := func(fn func(context.Context) error) func() error {
		return func() error { return fn(within(t, 300*time.Millisecond)) }
	}
	enqueueOnce := ask(func(ctx context.Context) error { _, err := s.Enqueue(ctx, keyed); return err })
	settleIt := ask(func(ctx context.Context) error { _, err := s.Settle(ctx, settle); return err })
	claimIt := ask(func(ctx context.Context) error { _, err := s.Claim(ctx, request("unlucky owner", 1)); return err })
	heldBy := ask(func(ctx context.Context) error { _, err := s.HeldBy(ctx, "unlucky owner"); return err })
	answerIt := ask(func(ctx context.Context) error { _, err := s.AnswerEffect(ctx, answer); return err })
	link.Blackhole(true)
	for name, c := range map[string]struct {
		first, again func() error
		stands       string // counts what the first has left on the primary
	}{
		"enqueue with a key": {enqueueOnce, enqueueOnce, "SELECT count(*) FROM pacht.keys WHERE key = 'once'"},
		"settle":             {settleIt, settleIt, fmt.Sprintf("SELECT count(*) FROM pacht.attempts WHERE job_id = %d", job.ID)},
		"claim": {claimIt, heldBy,
			fmt.Sprintf("SELECT count(*) FROM pacht.leases WHERE job_id = %d AND lease_owner = 'unlucky owner'", waits)},
		"answer of an effect": {answerIt, answerIt,
			fmt.Sprintf("SELECT count(*) FROM pacht.effects WHERE job_id = %d AND state = 'succeeded'", called.ID)},
	} {
		if c.first() == nil {
			t.Errorf("%s: answered, and no standby has it", name)
		}
		until(t, name+" stands on the primary", func() bool { return value(t, pool, c.stands) == "1" })
		if c.again() == nil {
			t.Errorf("%s: answered when it was asked for again, and no standby has it", name)
		}
	}
	link.Blackhole(false)
	link.Cut() // what was swallowed is lost to this connection; the next one begins where it was
	dup, err := s.Enqueue(t.Context(), keyed)
	if err != nil || !dup[0].Duplicate {
		t.Errorf("enqueued again: %+v, %v", dup, err)
	}
	settled, err := s.Settle(t.Context(), settle)
	if err != nil || !settled[0].Repeated {
		t.Errorf("settled again: %+v, %v", settled, err)
	}
	mine, err := s.HeldBy(t.Context(), "unlucky owner")
	if err != nil || len(mine.Jobs) != 1 || mine.Jobs[0].ID != waits {
		t.Errorf("held: %+v, %v", mine.Jobs, err)
	}
	if e, err := s.AnswerEffect(t.Context(), answer); err != nil || e.State != pacht.EffectSucceeded {
		t.Errorf("answered again: %+v, %v", e, err)
	}
}

// A name or an address that leads to another server now: once one connection has reached the
// promoted server, none of the process stays at or goes to the old one, which nobody has fenced.
func TestProcessThatHasSeenThePromotedServerDoesNotGoBack(t *testing.T) {
	primary := pgtest.NewServer(t, onMachine)
	var addr atomic.Value // where the name leads to
	addr.Store(primary.Addr())
	move := func(cfg *pgxpool.Config) {
		cfg.ConnConfig.DialFunc = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, addr.Load().(string))
		}
	}
	url := primary.Database(t)
	s, _ := openAt(t, url, Config{}, move)
	standby := primary.Standby(t, "b", primary.Addr())
	job := held(t, s)
	waitFor(t, standby, primary)
	standby.Promote(t)
	addr.Store(standby.Addr())
	// The connection for renewals is opened only now. The others are still at the old one.
	if r, err := s.Renew(t.Context(), []pacht.Ref{job.Ref()}); err != nil || r.Rows[0].State != pacht.RenewExtended {
		t.Fatalf("renewed at the promoted server: %+v, %v", r, err)
	}
	complete(t, s, []pacht.JobInfo{job})
	for where, server := range map[string]*pgtest.Server{"promoted": standby, "old": primary} {
		there := openThere(t, server.URL(databaseOf(url)))
		want := pacht.Completed
		if where == "old" {
			want = pacht.Processing
		}
		if j, err := there.Job(t.Context(), job.ID); err != nil || j.Status != want {
			t.Errorf("at the %s server the job is %s, %v; want %s", where, j.Status, err, want)
		}
	}
	addr.Store(primary.Addr())
	s.own.Reset()
	_, err := s.Claim(t.Context(), request("owner", 1))
	var replaced *replacedError
	if !errors.As(err, &replaced) || replaced.found >= replaced.seen {
		t.Errorf("a claim at the old primary: %v", err)
	}
	addr.Store(standby.Addr())
	if _, err := s.Claim(t.Context(), request("owner", 1)); err != nil {
		t.Error(err)
	}
}

func TestRoleThatMayAskForNothingIsTakenAsItIs(t *testing.T) {
	server := pgtest.NewServer(t)
	url := server.Database(t)
	pool := poolAt(t, url)
	execute(t, pool, "REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC; CREATE ROLE plain LOGIN")
	s := openThere(t, strings.Replace(url, "postgres@", "plain@", 1))
	if _, _, err := s.Schema(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestOfSeveralHostsTheOneThatTakesWritesIsUsed(t *testing.T) {
	primary := pgtest.NewServer(t, onMachine)
	url := primary.Database(t)
	openAt(t, url, Config{})
	standby := primary.Standby(t, "b", primary.Addr())
	waitFor(t, standby, primary)
	both := fmt.Sprintf("postgres://postgres@%s,%s/%s?sslmode=disable", standby.Addr(), primary.Addr(), databaseOf(url))
	s := openThere(t, both)
	complete(t, s, []pacht.JobInfo{held(t, s)})
	if d := s.pool.Config().ConnConfig.ConnectTimeout; d != 3*time.Second {
		t.Errorf("a host that says nothing is waited for %s, want 3s", d)
	}
	s = openThere(t, both+"&connect_timeout=1")
	if err := standby.Freeze(); err != nil {
		t.Fatal(err)
	}
	defer standby.Thaw()
	until(t, "a claim goes to the host that answers", func() bool {
		_, err := s.Claim(within(t, 10*time.Second), request("owner", 1))
		return err == nil
	})
}

// waitFor waits until the standby has replayed all that the primary has written so far.
func waitFor(t *testing.T, standby, primary *pgtest.Server) {
	t.Helper()
	a, b := poolAt(t, primary.URL("postgres")), poolAt(t, standby.URL("postgres"))
	at := value(t, a, "SELECT pg_current_wal_lsn()::text")
	until(t, "the standby has followed", func() bool {
		return value(t, b, "SELECT (pg_last_wal_replay_lsn() >= $1::pg_lsn)::text", at) == "true"
	})
}

// databaseOf is the name of the database in a URL.
func databaseOf(url string) string {
	return url[strings.LastIndex(url, "/")+1 : strings.LastIndex(url, "?")]
}
