package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/netfault"
	"github.com/pacht-queue/pacht/internal/pgtest"
)

// faulty is a store behind a proxy that breaks connections, and a pool beside it.
func faulty(t *testing.T, change ...func(*pgxpool.Config)) (*Store, *netfault.Proxy, *pgxpool.Pool) {
	t.Helper()
	database := pgtest.Database(t)
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	p := netfault.New(t, u.Host)
	u.Host = p.Addr()
	s, _ := storeAt(t, u.String(), Config{}, change...)
	return s, p, poolAt(t, database)
}

func TestEnqueueWithoutKeyWhoseAnswerIsLostIsUnknownAndNeverRepeated(t *testing.T) { // R11, S046
	s, proxy, pool := faulty(t)
	enqueue(t, s, 1)
	trap := proxy.CutAnswer([]byte(`"n":4711`), netfault.Committed)
	_, err := s.Enqueue(t.Context(), []pacht.NewJob{pacht.New(charge{4711})})
	trap.Wait(t)
	if !errors.Is(err, pacht.ErrUnknown) {
		t.Errorf("error %v", err)
	}
	if n := value(t, pool, "SELECT count(*) FROM pacht.jobs WHERE args->>'n' = '4711'"); n != "1" {
		t.Errorf("%s jobs are stored", n)
	}
}

func TestEnqueueWithKeysWhoseAnswerIsLostAnswersTheFirstJob(t *testing.T) { // R11, S046
	for name, batch := range map[string]int{"one": 1, "many": 3} {
		t.Run(name, func(t *testing.T) {
			s, proxy, pool := faulty(t)
			jobs := func(n int) []pacht.NewJob {
				list := make([]pacht.NewJob, batch)
				for i := range list {
					list[i] = pacht.New(charge{n + i}, pacht.IdempotencyKey(fmt.Sprint("key", n+i)))
				}
				return list
			}
			if _, err := s.Enqueue(t.Context(), jobs(100)); err != nil { // so that all is described
				t.Fatal(err)
			}
			mark := `"n":4711` // one job goes out with its commit, several have it sent after them
			if batch > 1 {
				mark = "COMMIT\x00" // and not READ COMMITTED
			}
			trap := proxy.CutAnswer([]byte(mark), netfault.Committed)
			answers, err := s.Enqueue(t.Context(), jobs(4711))
			trap.Wait(t)
			if err != nil || len(answers) != batch {
				t.Fatalf("answers %+v, %v", answers, err)
			}
			for i, a := range answers {
				if stored := value(t, pool, "SELECT job_id FROM pacht.keys WHERE key = $1", fmt.Sprint("key", 4711+i)); a.Err != nil || a.ID.String() != stored || !a.Duplicate {
					t.Errorf("answer %d: %+v, stored as %s", i, a, stored)
				}
			}
			if n := value(t, pool, "SELECT count(*) FROM pacht.jobs WHERE args->>'n' LIKE '471%'"); n != fmt.Sprint(batch) {
				t.Errorf("%s jobs are stored, want %d", n, batch)
			}
		})
	}
}

func TestSettleWhoseAnswerIsLostIsAnsweredFromTheLedger(t *testing.T) { // R4, S046
	s, proxy, _ := faulty(t)
	job := held(t, s)
	trap := proxy.CutAnswer([]byte("a mark to cut at"), netfault.Committed)
	answers, err := s.Settle(t.Context(), []pacht.Settlement{{Ref: job.Ref(), Outcome: pacht.OutcomeFailed, Error: "a mark to cut at"}})
	trap.Wait(t)
	if err != nil || answers[0].Err != nil || !answers[0].Repeated || answers[0].Status != pacht.Pending {
		t.Errorf("answer %+v, %v", answers, err)
	}
	ledger, err := s.Attempts(t.Context(), job.ID)
	if err != nil || len(ledger) != 1 {
		t.Errorf("ledger %+v, %v", ledger, err)
	}
}

func TestClaimWhoseAnswerIsLostIsFoundByItsOwner(t *testing.T) { // R4
	s, proxy, _ := faulty(t)
	id := enqueue(t, s, 2)[0]
	trap := proxy.CutAnswer([]byte("unlucky owner"), netfault.Committed)
	_, err := s.Claim(t.Context(), request("unlucky owner", 1))
	trap.Wait(t)
	if !errors.Is(err, pacht.ErrUnknown) {
		t.Errorf("claim: %v", err)
	}
	mine, err := s.HeldBy(t.Context(), "unlucky owner")
	if err != nil || len(mine.Jobs) != 1 || mine.Jobs[0].ID != id || mine.Jobs[0].Token != 1 {
		t.Errorf("held %+v, %v", mine, err)
	}
}

func TestClaimWhoseLookBehindTheFloorIsUnansweredIsUnknown(t *testing.T) { // R4
	s, proxy, _ := faulty(t)
	ids := enqueue(t, s, 3)
	last, err := s.Job(t.Context(), ids[2])
	if err != nil {
		t.Fatal(err)
	}
	floorAt(s, last)
	const limit = 0x2345
	trap := proxy.CutAnswer([]byte("\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x23\x44"), netfault.Committed) // one less
	if got, err := s.Claim(t.Context(), request("owner", limit)); !errors.Is(err, pacht.ErrUnknown) {
		t.Errorf("claimed %d, %v", len(got.Jobs), err)
	}
	trap.Wait(t)
	if mine, err := s.HeldBy(t.Context(), "owner"); err != nil || len(mine.Jobs) != 3 {
		t.Errorf("held %+v, %v", mine, err)
	}
}

func TestSilentConnectionKeepsNoOwnConnectionForEver(t *testing.T) { // S010
	database := pgtest.Database(t)
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	proxy := netfault.New(t, u.Host)
	u.Host = proxy.Addr()
	s, _ := storeAt(t, u.String(), Config{StatementTimeout: 100 * time.Millisecond})
	job := held(t, s)
	if _, err := s.Renew(t.Context(), []pacht.Ref{job.Ref()}); err != nil {
		t.Fatal(err)
	}
	proxy.Blackhole(true)
	calls := map[string]func() error{
		"renew": func() error { _, err := s.Renew(t.Context(), []pacht.Ref{job.Ref()}); return err },
		"steps": func() error { _, err := s.Steps(t.Context(), job.ID); return err },
		"settle": func() error {
			_, err := s.Settle(t.Context(), settlements([]pacht.JobInfo{job}, pacht.OutcomeCompleted))
			return err
		},
	}
	done := make(chan string, len(calls))
	for name, call := range calls {
		go func() {
			if call() == nil {
				name += ", without an error"
			}
			done <- name
		}()
	}
	deadline := time.After(10 * time.Second)
	for range calls {
		select {
		case name := <-done:
			if calls[name] == nil {
				t.Error(name)
			}
		case <-deadline:
			proxy.Cut()
			t.Fatal("a call still waits after 10 seconds")
		}
	}
	proxy.Cut() // else the pools wait at their close for the end of what was given up
	proxy.Blackhole(false)
}

// S025: a session that began while the database was set read-only stays read-only.
func TestASessionThatCannotWriteIsNotUsedAgain(t *testing.T) {
	database := pgtest.Database(t)
	openAt(t, database, Config{})
	pool := poolAt(t, database)
	name := value(t, pool, "SELECT quote_ident(current_database())")
	set := func(what string) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), "ALTER DATABASE "+name+" "+what); err != nil {
			t.Fatal(err)
		}
	}
	set("SET default_transaction_read_only = on")
	s, err := New(poolAt(t, database), Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Enqueue(t.Context(), []pacht.NewJob{pacht.New(charge{1})}); !readOnly(err) {
		t.Errorf("enqueue: %v", err)
	}
	if _, err := s.Claim(t.Context(), request("owner", 1)); !readOnly(err) {
		t.Errorf("claim: %v", err)
	}
	set("RESET default_transaction_read_only")
	enqueue(t, s, 1)
	if got, err := s.Claim(t.Context(), request("owner", 1)); err != nil || len(got.Jobs) != 1 {
		t.Errorf("claimed %d, %v", len(got.Jobs), err)
	}
}

func TestClosedStoreSaysSo(t *testing.T) {
	s, pool := openAt(t, pgtest.Database(t), Config{})
	job := held(t, s)
	tx, commit := pgxTx(t, s, pool)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	_, enqueueErr := s.Enqueue(ctx, []pacht.NewJob{pacht.New(charge{1})})
	_, claimErr := s.Claim(ctx, request("owner", 1))
	_, jobErr := s.Job(ctx, job.ID)
	_, settleErr := s.Settle(ctx, settlements([]pacht.JobInfo{job}, pacht.OutcomeCompleted))
	_, _, schemaErr := s.Schema(ctx)
	_, expireErr := s.Expire(ctx, pacht.ExpireRequest{By: "w", Limit: 1, Period: time.Second})
	_, migrateErr := s.MigrateUp(ctx)
	_, enqueueTxErr := tx.EnqueueTx(ctx, []pacht.NewJob{pacht.New(charge{1})})
	for verb, err := range map[string]error{
		"enqueue": enqueueErr, "claim": claimErr, "job": jobErr, "settle": settleErr, "schema": schemaErr, "expire": expireErr, "migrate": migrateErr,
		"cancel": s.Retry(ctx, job.ID, byHand), "enqueue in a transaction": enqueueTxErr,
		"step in a transaction":   tx.SetStepTx(ctx, job.Ref(), "a", nil),
		"settle in a transaction": tx.SettleTx(ctx, pacht.Settlement{Ref: job.Ref(), Outcome: pacht.OutcomeCompleted}),
	} {
		if !errors.Is(err, pacht.ErrClosed) {
			t.Errorf("%s: %v", verb, err)
		}
	}
	if commit() == nil { // R4
		t.Error("the transaction was committed")
	}
}

func TestOpenRefusesWhatIsNoURLAndSaysTheRealReason(t *testing.T) {
	for _, url := range []string{"postgres://", "postgres://me:s3cret@127.0.0.1:1/x?sslmode=bad", "postgres://me:s3cret@127.0.0.1:port/x"} {
		_, err := Open(t.Context(), url, Config{})
		var invalid *pacht.InvalidError
		if !errors.As(err, &invalid) || invalid.Field != "db" || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", url, err)
		}
	}
	u, err := url.Parse(pgtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	u.Path, u.RawQuery = "/no_such_database", "sslmode=prefer"
	_, err = Open(t.Context(), u.String(), Config{})
	if err == nil || strings.ContainsAny(err.Error(), "\t\n") || strings.Contains(err.Error(), "TLS") || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("error %q", err)
	}
}

func TestCancelledCallLeavesNoLockAndNoOpenTransaction(t *testing.T) {
	s, pool := newStore(t)
	job := held(t, s)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if _, err := tx.Exec(t.Context(), "SELECT 1 FROM pacht.leases WHERE job_id = $1 FOR UPDATE", int64(job.ID)); err != nil {
		t.Fatal(err)
	}
	// The step waits for the row; its caller gives up.
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := s.SetStep(ctx, job.Ref(), "late", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("set step: %v", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, "the server has let go of it", func() bool {
		return value(t, pool, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state <> 'idle' AND pid <> pg_backend_pid()") == "0"
	})
	complete(t, s, []pacht.JobInfo{job})
}

func TestStoreOutlivesARestartOfTheServer(t *testing.T) {
	server := pgtest.NewServer(t)
	s, _ := storeAt(t, server.Database(t), Config{})
	job := held(t, s)
	server.Kill(t)
	if _, err := s.Renew(t.Context(), []pacht.Ref{job.Ref()}); err == nil {
		t.Error("renewed without a server")
	}
	server.Start(t)
	until(t, "it renews again", func() bool {
		r, err := s.Renew(t.Context(), []pacht.Ref{job.Ref()})
		return err == nil && r.Rows[0].State == pacht.RenewExtended
	})
	until(t, "it settles again", func() bool {
		answers, err := s.Settle(t.Context(), settlements([]pacht.JobInfo{job}, pacht.OutcomeCompleted))
		return err == nil && answers[0].Err == nil && answers[0].Status == pacht.Completed
	})
}

func TestOpenErrorsAreReadableAndHideThePassword(t *testing.T) {
	for _, url := range []string{
		"postgres://me:s3cret@127.0.0.1:1/x?connect_timeout=1",
		"postgres://me:s3cret@127.0.0.1:port/x",
		"postgres://me:s3cret@127.0.0.1:1/x?sslmode=nonsense",
	} {
		s, err := Open(t.Context(), url, Config{})
		if err == nil {
			_ = s.Close()
			t.Fatalf("%s opened", url)
		}
		if strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), "PostgreSQL") {
			t.Errorf("error %q", err)
		}
	}
}

// until polls for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 seconds: %s", what)
		}
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}
