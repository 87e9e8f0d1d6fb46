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
func faulty(t *testing.T) (*Store, *netfault.Proxy, *pgxpool.Pool) {
	t.Helper()
	database := pgtest.Database(t)
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	p := netfault.New(t, u.Host)
	u.Host = p.Addr()
	s, _ := storeAt(t, u.String(), Config{})
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
