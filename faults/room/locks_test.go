package room_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/faults/crew"
	"github.com/pacht-queue/pacht/faults/lab"
	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/internal/pgtest"
	"github.com/pacht-queue/pacht/postgres"
)

type counter struct{ n atomic.Int64 }

func (c *counter) add()       { c.n.Add(1) }
func (c *counter) value() int { return int(c.n.Load()) }

// raising is a trigger that fails statements by chance, with the codes of a server in trouble:
// deadlock, serialization failure, lock not available, cancelled, too many connections.
const raising = `
CREATE TABLE raised (code text);
CREATE SEQUENCE raised_in_all;
CREATE FUNCTION raise_by_chance() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    codes text[] := ARRAY['40P01', '40001', '55P03', '57014', '53300'];
BEGIN
    IF random() < 0.04 THEN
        PERFORM nextval('raised_in_all');  -- survives the rollback
        RAISE EXCEPTION 'forced by the test' USING ERRCODE = codes[1 + floor(random() * 5)::int];
    END IF;
    RETURN coalesce(NEW, OLD);
END $$;
CREATE TRIGGER forced BEFORE UPDATE OR DELETE ON pacht.leases FOR EACH ROW EXECUTE FUNCTION raise_by_chance();
CREATE TRIGGER forced BEFORE INSERT ON pacht.attempts FOR EACH ROW EXECUTE FUNCTION raise_by_chance();
`

// S059: claims, renewals, settles and passes fail with 40P01, 40001, 55P03, 57014 and 53300, and
// running statements are cancelled. None of it counts as a job's failure: each job has one
// attempt, which completed it.
func TestCodesOfAServerInTroubleAreNoFailureOfAJob(t *testing.T) {
	t.Parallel()
	database, base := crew.Database(t)
	const queue = "trouble"
	jobs := lab.Scale(150, 3000)
	tasks := make([]crew.Task, jobs)
	for i := range tasks {
		tasks[i].Ms = i % 7
	}
	ids := crew.EnqueueTasks(t, base, tasks, pacht.Queue(queue), pacht.MaxAttempts(1), pacht.MaxCrashes(1))
	execute(t, database, raising)
	var seen crew.Runs
	var workers []*crew.Running
	for range 3 {
		workers = append(workers, crew.Start(t, crew.Open(t, database, postgres.Config{}), crew.Config(queue, 4, seen.Handle)))
	}
	ctx, stop := context.WithCancel(t.Context())
	var canceller sync.WaitGroup
	canceller.Go(func() { cancelStatements(ctx, t, database) })
	crew.Finished(t, base, 90*time.Second, queue)
	stop()
	canceller.Wait()
	if got := crew.Outcomes(t, base, ids); got[pacht.OutcomeCompleted] != jobs || got[pacht.OutcomeFailed]+got[pacht.OutcomeExpired] > 0 {
		t.Errorf("leases ended as %v", got)
	}
	seen.Once(t, ids)
	crew.Checked(t, base)
	failed := int64(0)
	for _, w := range workers {
		failed += w.Status().Errors
	}
	raised := scalar[int64](t, database, "SELECT last_value FROM raised_in_all")
	if raised < int64(jobs/20) || failed == 0 {
		t.Errorf("%d errors raised, %d calls failed: nothing was proved", raised, failed)
	}
	lab.Report(t, "room/codes", lab.F("jobs", jobs), lab.F("errors raised", raised), lab.F("failed calls", failed))
}

// cancelStatements cancels whatever the workers' sessions run just then.
func cancelStatements(ctx context.Context, t *testing.T, database string) {
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close(context.Background())
	for ctx.Err() == nil {
		// An error is the end of the test, or of the server.
		_, _ = conn.Exec(ctx, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = 'active'")
		_ = clock.Sleep(ctx, 3*time.Millisecond)
	}
}

// S059: batches settled in random order against watchers, renewals, a session that locks the
// same rows one by one in the opposite order, and bulk enqueues whose keys overlap with those of
// transactions that take them in any order. Deadlocks happen, to the transactions of callers;
// they are told ErrSerialization, and repeat. No lease is lost, no job fails, each key has one
// job.
func TestLocksTakenInOppositeOrdersFailNoJob(t *testing.T) {
	t.Parallel()
	database, base := crew.Database(t)
	admin, name := adminOf(t, database), nameOf(t, database)
	for _, set := range []string{"deadlock_timeout = '10ms'", "lock_timeout = '300ms'", "statement_timeout = '2s'"} {
		execute(t, admin, fmt.Sprintf("ALTER DATABASE %q SET %s", name, set))
	}
	seed := lab.Seed(t)
	const queue = "locks"
	rounds := lab.Scale(8, 150)
	s := crew.Open(t, database, postgres.Config{})
	crew.Start(t, s, crew.Config("nobodys", 1, (&crew.Runs{}).Handle)) // brings a watcher

	ctx, stop := context.WithCancel(t.Context())
	var others sync.WaitGroup
	others.Go(func() { lockDownwards(ctx, t, database) })
	keys := &keyed{t: t, database: database, queue: "keys", want: map[string]pacht.ID{}}
	for i := range 3 {
		others.Go(func() { keys.inTransactions(ctx, s, clock.Seeded(seed, fmt.Sprint("keys", i))) })
	}
	others.Go(func() { keys.inBulk(ctx, s, clock.Seeded(seed, "bulk")) })

	chance := clock.Seeded(seed, "settles")
	for range rounds {
		ids := crew.Enqueue(t, s, 100, pacht.Queue(queue))
		claims := claimAll(t, s, queue, len(ids))
		batch := make([]pacht.Settlement, len(claims))
		refs := make([]pacht.Ref, len(claims))
		for to, from := range chance.Perm(len(claims)) {
			batch[to] = pacht.Settlement{Ref: claims[from].Ref(), Outcome: pacht.OutcomeCompleted}
			refs[from] = claims[from].Ref()
		}
		var renewing sync.WaitGroup
		renewing.Go(func() {
			if _, err := s.Renew(t.Context(), refs); err != nil {
				t.Errorf("renew: %v", err)
			}
		})
		settleAll(t, s, batch)
		renewing.Wait()
	}
	stop()
	others.Wait()
	if n := scalar[int](t, database, "SELECT count(*) FROM pacht.leases WHERE queue = $1", queue); n > 0 {
		t.Errorf("%d jobs are unfinished", n)
	}
	if n := scalar[int](t, database, "SELECT count(*) FROM pacht.attempts WHERE outcome <> 'Completed'"); n > 0 {
		t.Errorf("%d leases did not end as Completed", n)
	}
	keys.check()
	crew.Checked(t, base)
	deadlocks := scalar[int64](t, database, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
	lab.Report(t, "room/locks", lab.F("jobs", 100*rounds), lab.F("deadlocks", deadlocks), lab.F("transactions repeated", keys.repeated.value()), lab.F("enqueues given up", keys.victims.value()))
	if keys.repeated.value() == 0 {
		t.Error("no transaction of a caller was a victim: nothing was proved")
	}
}

func claimAll(t *testing.T, s pacht.Leaser, queue string, n int) (all []pacht.JobInfo) {
	t.Helper()
	lab.Await(t, 30*time.Second, "all are claimed", func() bool {
		claims, err := s.Claim(t.Context(), pacht.ClaimRequest{Owner: "batch", Queue: queue, Kinds: []string{"task"}, Limit: n})
		if err != nil {
			t.Fatalf("claim: %v", err)
		}
		all = append(all, claims.Jobs...)
		return len(all) == n
	})
	return all
}

// settleAll offers a batch until all of it is answered: a row that somebody has locked is busy.
func settleAll(t *testing.T, s pacht.Leaser, batch []pacht.Settlement) {
	t.Helper()
	lab.Await(t, 30*time.Second, "all are settled", func() bool {
		answers, err := s.Settle(t.Context(), batch)
		if err != nil {
			t.Fatalf("settle: %v", err)
		}
		var again []pacht.Settlement
		for i, a := range answers {
			if errors.Is(a.Err, pacht.ErrBusy) {
				again = append(again, batch[i])
			} else if a.Err != nil {
				t.Errorf("settle %s: %v", a.Ref, a.Err)
			}
		}
		batch = again
		return len(batch) == 0
	})
}

// lockDownwards locks leases one by one, the highest id first, and lets them go together.
func lockDownwards(ctx context.Context, t *testing.T, database string) {
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close(context.Background())
	for ctx.Err() == nil {
		// An error is a deadlock or a time-out, which is what it is for.
		_ = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			rows, err := tx.Query(ctx, "SELECT job_id FROM pacht.leases ORDER BY job_id DESC LIMIT 8")
			if err != nil {
				return err
			}
			ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
			for _, id := range ids {
				if _, err := tx.Exec(ctx, "SELECT 1 FROM pacht.leases WHERE job_id = $1 FOR UPDATE", id); err != nil {
					return err
				}
			}
			return err
		})
		_ = clock.Sleep(ctx, time.Millisecond)
	}
}

// keyed enqueues the same keys from many sides.
type keyed struct {
	t        *testing.T
	database string
	queue    string
	repeated counter // transactions of callers
	victims  counter // enqueues of the store's own that gave up

	mu   sync.Mutex
	want map[string]pacht.ID
}

const manyKeys = 12

func (k *keyed) job(n int) pacht.NewJob {
	return pacht.New(crew.Task{N: n}, pacht.Queue(k.queue), pacht.IdempotencyKey(fmt.Sprint("key ", n)))
}

// note takes in which job a key stands for, which never changes while the key lives.
func (k *keyed) note(n int, a pacht.Enqueued) {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := fmt.Sprint("key ", n)
	if a.Err != nil {
		k.t.Errorf("%s: %v", key, a.Err)
		return
	}
	if was, ok := k.want[key]; ok && was != a.ID {
		k.t.Errorf("%s stands for job %d and for job %d", key, was, a.ID)
	}
	k.want[key] = a.ID
}

// inTransactions enqueues two keys in any order, one after the other, in one transaction. The
// keys are pruned in between, so that they have to be taken again and again.
func (k *keyed) inTransactions(ctx context.Context, s *postgres.Store, chance *rand.Rand) {
	conn, err := pgx.Connect(ctx, k.database)
	if err != nil {
		k.t.Error(err)
		return
	}
	defer conn.Close(context.Background())
	for ctx.Err() == nil {
		order := chance.Perm(manyKeys)[:4]
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			for _, n := range order {
				if _, err := s.Tx(tx).EnqueueTx(ctx, []pacht.NewJob{k.job(n)}); err != nil {
					return err
				}
			}
			return errUndone // so that the keys stay free, and the next ones meet them again
		})
		switch {
		case errors.Is(err, pacht.ErrSerialization):
			k.repeated.add()
		case errors.Is(err, errUndone), ctx.Err() != nil:
		case lockTimeout(err):
		default:
			k.t.Errorf("enqueue in a transaction: %v", err)
		}
	}
}

var errUndone = errors.New("undone on purpose")

// lockTimeout: the caller's own bound, set for the role or database.
func lockTimeout(err error) bool {
	var pg interface{ SQLState() string }
	return errors.As(err, &pg) && (pg.SQLState() == "55P03" || pg.SQLState() == "57014")
}

// inBulk enqueues all keys at once, in any order, each time anew.
func (k *keyed) inBulk(ctx context.Context, s pacht.Enqueuer, chance *rand.Rand) {
	for ctx.Err() == nil {
		jobs := make([]pacht.NewJob, 0, manyKeys)
		order := chance.Perm(manyKeys)
		for _, n := range order {
			jobs = append(jobs, k.job(n))
		}
		answers, err := s.Enqueue(ctx, jobs)
		var victim interface{ SQLState() string }
		switch {
		case ctx.Err() != nil:
			return
		case errors.As(err, &victim) && victim.SQLState() == "40P01":
			k.victims.add() // for the sixth time in a row: the store repeats that often by itself
			continue
		case err != nil:
			k.t.Errorf("enqueue in bulk: %v", err)
			return
		}
		for i, a := range answers {
			k.note(order[i], a)
		}
		// Now all keys are taken: free them, and their jobs with them.
		k.free(ctx)
	}
}

// free ends the keys' jobs and forgets the keys, as their life's end and a prune would.
func (k *keyed) free(ctx context.Context) {
	k.mu.Lock()
	defer k.mu.Unlock()
	conn, err := pgx.Connect(ctx, k.database)
	if err != nil {
		return // the test is over
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(ctx, "DELETE FROM pacht.keys"); err == nil {
		clear(k.want)
	}
}

func (k *keyed) check() {
	k.t.Helper()
	bad := scalar[int](k.t, k.database, "SELECT count(*) FROM pacht.keys AS k LEFT JOIN pacht.jobs AS j ON j.job_id = k.job_id WHERE j.job_id IS NULL")
	if bad > 0 {
		k.t.Errorf("%d keys stand for no job", bad)
	}
}

// S043, S059: a role that may have a few connections only, and short bounds of its own. Whoever
// is refused (53300) waits, and no job is the worse for it.
func TestARoleWithFewConnectionsWorksOnWithWhatItGets(t *testing.T) {
	t.Parallel()
	admin := adminOf(t, pgtest.Database(t))
	role := fmt.Sprintf("pacht_few_%d", time.Now().UnixNano())
	execute(t, admin, fmt.Sprintf("CREATE ROLE %s LOGIN CONNECTION LIMIT 7", role))
	t.Cleanup(func() { execute(t, admin, "DROP ROLE "+role) }) // after the database with its rights
	database, base := crew.Database(t)
	for _, sql := range []string{
		"GRANT USAGE ON SCHEMA pacht TO " + role,
		"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA pacht TO " + role,
		"GRANT USAGE ON ALL SEQUENCES IN SCHEMA pacht TO " + role,
		fmt.Sprintf("ALTER ROLE %s SET statement_timeout = '200ms'", role),
		fmt.Sprintf("ALTER ROLE %s SET lock_timeout = '50ms'", role),
	} {
		execute(t, database, sql)
	}
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(role)
	const queue = "few"
	ids := crew.EnqueueTasks(t, base, make([]crew.Task, lab.Scale(400, 4000)), pacht.Queue(queue))
	var seen crew.Runs
	var workers []*crew.Running
	for range 3 {
		workers = append(workers, crew.Start(t, crew.Lazily(t, u.String(), 4), crew.Config(queue, 8, seen.Handle)))
	}
	refused := func() (n int64) {
		for _, w := range workers {
			n += w.Status().Errors
		}
		return n
	}
	lab.Await(t, 20*time.Second, "somebody is refused", func() bool { return refused() > 0 })
	execute(t, database, fmt.Sprintf("ALTER ROLE %s CONNECTION LIMIT 40", role))
	crew.Finished(t, base, 60*time.Second, queue)
	if got := crew.Outcomes(t, base, ids); got[pacht.OutcomeCompleted] != len(ids) || got[pacht.OutcomeFailed]+got[pacht.OutcomeExpired] > 0 {
		t.Errorf("leases ended as %v", got)
	}
	seen.Once(t, ids)
	crew.Checked(t, base)
	for _, w := range workers {
		lab.Await(t, 20*time.Second, "healthy", func() bool { return w.Status().Unreachable == nil })
	}
}
