package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/netfault"
	"github.com/pacht-queue/pacht/internal/pgtest"
)

// R4, S046: what HeldBy tells after a claim that went unanswered is all that there will be.
func TestClaimThatArrivesAfterItsOwnerHasAskedTakesNothing(t *testing.T) {
	late := &netfault.Late{}
	s, pool := storeAt(t, pgtest.Database(t), Config{}, mode(pgx.QueryExecModeExec), func(cfg *pgxpool.Config) { cfg.ConnConfig.DialFunc = late.Dial })
	ids := enqueue(t, s, gateFrom+1)
	for name, claim := range map[string]func() (int, error){
		"claim": func() (int, error) { c, err := s.Claim(t.Context(), request("owner", 1)); return len(c.Jobs), err },
		"claim in turn": func() (int, error) {
			c, err := s.Claim(t.Context(), request("owner", gateFrom))
			return len(c.Jobs), err
		},
		"claim by id": func() (int, error) {
			_, ok, err := s.ClaimID(t.Context(), "owner", ids[0])
			if ok {
				return 1, err
			}
			return 0, err
		},
	} {
		late.Catch("SET status = 'Processing'", 1)
		if _, err := claim(); !errors.Is(err, pacht.ErrUnknown) {
			t.Fatalf("%s: %v", name, err)
		}
		if mine, err := s.HeldBy(t.Context(), "owner"); err != nil || len(mine.Jobs) > 0 {
			t.Errorf("%s: held %d, %v", name, len(mine.Jobs), err)
		}
		late.Deliver()
		if n := value(t, pool, "SELECT count(*) FROM pacht.leases WHERE status <> 'Pending' OR token > 0"); n != "0" {
			t.Errorf("%s: %s leases were taken after that", name, n)
		}
		n, err := claim()
		if err != nil || n == 0 {
			t.Fatalf("%s: the next claim took %d, %v", name, n, err)
		}
		mine, err := s.HeldBy(t.Context(), "owner")
		if err != nil || len(mine.Jobs) != n {
			t.Errorf("%s: held %d of %d, %v", name, len(mine.Jobs), n, err)
		}
		if _, err := s.Settle(t.Context(), settlements(mine.Jobs, pacht.OutcomeReleased)); err != nil {
			t.Fatal(err)
		}
		execute(t, pool, "TRUNCATE pacht.attempts; UPDATE pacht.leases SET token = 0, rev = rev + 1")
	}
	other, err := s.Claim(t.Context(), request("another owner", 1))
	if err != nil || len(other.Jobs) != 1 {
		t.Errorf("another owner's claim: %d, %v", len(other.Jobs), err)
	}
	// A store that is opened later, by a process whose owner has a fixed name, counts from one again.
	again, err := New(pool, Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { again.Close() })
	if mine, err := again.Claim(t.Context(), request("owner", 1)); err != nil || len(mine.Jobs) != 1 {
		t.Errorf("a claim of another store: %d, %v", len(mine.Jobs), err)
	}
}

// locking42 is a transaction that keeps whoever asks for that lock waiting, until it is rolled back.
func locking42(t *testing.T, pool *pgxpool.Pool) pgx.Tx {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) }) // it was, unless the test has failed
	if _, err := tx.Exec(t.Context(), "SELECT pg_advisory_xact_lock(42)"); err != nil {
		t.Fatal(err)
	}
	return tx
}

// R4, S025: a claim whose commit waits, for its log or for a standby, is seen by nobody yet. Whoever
// asks what it holds waits for it.
func TestHeldByWaitsForAClaimThatWaitsForItsCommit(t *testing.T) {
	late := &netfault.Late{}
	s, pool := storeAt(t, pgtest.Database(t), Config{}, func(cfg *pgxpool.Config) { cfg.ConnConfig.DialFunc = late.Dial })
	id := enqueue(t, s, 1)[0]
	execute(t, pool, `CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(42); RETURN NULL; END $$;
		CREATE CONSTRAINT TRIGGER wait AFTER UPDATE ON pacht.leases DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait()`)
	tx := locking42(t, pool)
	late.Catch("nothing", 0) // its request to cancel is lost
	const waiting = `SELECT count(*)::text FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	claimed := make(chan error, 1)
	go func() {
		_, err := s.Claim(ctx, request("owner", 1))
		claimed <- err
	}()
	until(t, "the claim waits in its commit", func() bool { return value(t, pool, waiting) == "1" })
	giveUp()
	if err := <-claimed; !errors.Is(err, pacht.ErrUnknown) {
		t.Fatalf("claim: %v", err)
	}
	type answer struct {
		jobs []pacht.JobInfo
		err  error
	}
	told := make(chan answer, 1)
	go func() {
		mine, err := s.HeldBy(t.Context(), "owner")
		told <- answer{mine.Jobs, err}
	}()
	until(t, "HeldBy waits for the claim", func() bool {
		select {
		case a := <-told:
			t.Fatalf("it said %+v", a)
		default:
		}
		return value(t, pool, waiting) == "2" // as the claim does
	})
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a := <-told; a.err != nil || len(a.jobs) != 1 || a.jobs[0].ID != id {
		t.Errorf("held %+v", a)
	}
}

// R4: what HeldBy looks for may take its time; that a claim waits for it must not, or a worker with many
// leases takes nothing meanwhile.
func TestClaimsGoOnWhileHeldByLooks(t *testing.T) {
	s, pool := openAt(t, pgtest.Database(t), Config{})
	enqueue(t, s, 2)
	if mine, err := s.Claim(t.Context(), request("owner", 1)); err != nil || len(mine.Jobs) != 1 {
		t.Fatalf("claim: %d, %v", len(mine.Jobs), err)
	}
	s.sql.HeldBy = strings.Replace(s.sql.HeldBy, "ORDER BY", "AND pg_advisory_xact_lock(42) IS NOT NULL\nORDER BY", 1)
	tx := locking42(t, pool)
	told := make(chan error, 1)
	go func() {
		_, err := s.HeldBy(t.Context(), "owner")
		told <- err
	}()
	until(t, "HeldBy is in its look", func() bool {
		return value(t, pool, `SELECT count(*)::text FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`) == "1"
	})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if mine, err := s.Claim(ctx, request("owner", 1)); err != nil || len(mine.Jobs) != 1 {
		t.Errorf("the claim meanwhile: %d, %v", len(mine.Jobs), err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-told; err != nil {
		t.Error(err)
	}
}
