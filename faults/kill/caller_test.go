package kill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/faults/lab"
	"github.com/pacht-queue/pacht/postgres"
)

// callerPoints are passed by who enqueues, and by no worker.
var callerPoints = []string{"postgres.interactive", "postgres.copy.piece", "postgres.copy.jobs", "postgres.copy.leases"}

// callerPatience is the statements' bound of a caller: half of it is how long one that stops between
// two round trips is waited for.
const callerPatience = 4 * time.Second

// manyJobs go by COPY, in several pieces.
const manyJobs = 2000

// runCaller is the role of a process that enqueues jobs with keys or by COPY, as the task says.
func runCaller(ctx context.Context, task []byte, ready func(any) error) error {
	var order struct {
		Database string
		Keys     bool
	}
	if err := json.Unmarshal(task, &order); err != nil {
		return err
	}
	s, err := postgres.Open(ctx, order.Database, postgres.Config{StatementTimeout: callerPatience})
	if err != nil {
		return err
	}
	if err := ready(struct{}{}); err != nil {
		return err
	}
	_, enqueueErr := s.Enqueue(ctx, callersJobs(order.Keys))
	return errors.Join(enqueueErr, s.Close())
}

func callersJobs(keys bool) []pacht.NewJob {
	n := manyJobs
	if keys {
		n = 3
	}
	jobs := make([]pacht.NewJob, n)
	for i := range jobs {
		jobs[i] = pacht.New(lab.Work{N: i, Do: strings.Repeat("x", 50)})
		if keys {
			jobs[i] = pacht.New(lab.Work{N: i}, pacht.IdempotencyKey(fmt.Sprint("key ", i)))
		}
	}
	return jobs
}

// R11, S045, S046, S061: who enqueues dies, or stands still, between the round trips of its
// transaction. Nothing of it is half there: no job without its lease, no key without its job. Others
// enqueue the same keys, at once or when the server has ended the session of who stands still, and
// nobody keeps vacuum from its work for longer. One thing has no bound, and is seen to have none: who
// stops among the rows of a COPY keeps its transaction until it goes on or dies.
func TestCallerInEveryPointLeavesNothingHalf(t *testing.T) {
	seed := lab.Seed(t)
	for _, point := range lab.Draw(t, seed, 2, callerPoints) {
		for _, action := range []string{"kill", "stop"} {
			t.Run(point+" "+action, func(t *testing.T) {
				t.Parallel()
				url := lab.FreshServer(t)
				s := lab.Open(t, url)
				keys, at := point == "postgres.interactive", 1
				if point == "postgres.copy.piece" {
					at = 3
				}
				caller := lab.Spawn(t, "caller", map[string]any{"Database": url, "Keys": keys}, fmt.Sprintf("PACHT_FAILPOINT=%s=%s@%d", point, action, at))
				lab.Await(t, 20*time.Second, "it dies or stands still", func() bool { return caller.Ended() || caller.Frozen() })
				from := time.Now()
				if killed := caller.Ended(); killed != (action == "kill") {
					t.Fatalf("ended: %t%s", killed, caller.LastWords())
				}
				unbounded := point == "postgres.copy.piece" && action == "stop"
				if keys {
					answers, err := s.Enqueue(t.Context(), callersJobs(true))
					if err != nil || answers[0].Err != nil || answers[0].Duplicate {
						t.Errorf("the keys of who does not go on: %+v, %v", answers, err)
					}
				} else if unbounded {
					time.Sleep(callerPatience + 2*time.Second) // longer than any bound that there is
					if n := openSessions(t, url); n != 1 {
						t.Errorf("%d sessions have a transaction: docs/databases.md says that this one has no bound", n)
					}
				} else {
					lab.Await(t, callerPatience+10*time.Second, "the server has ended its transaction", func() bool { return openSessions(t, url) == 0 })
				}
				free := time.Since(from)
				want := 0
				if keys {
					want = 3
				}
				expectJobs(t, s, url, want)
				if action == "stop" {
					caller.Thaw()
					code, _, err := caller.Wait(20 * time.Second)
					// With keys it is repeated inside, and finds the others' jobs; so is what was not sent
					// to the end.
					if err != nil || code != 0 && keys {
						t.Errorf("it ended with %d, %v%s", code, err, caller.LastWords())
					}
					if code == 0 && !keys {
						want = manyJobs
					}
					expectJobs(t, s, url, want)
				}
				lab.Report(t, "caller in a point", lab.F("point", point), lab.F("action", action), lab.F("free_after_ms", free.Milliseconds()))
			})
		}
	}
}

// openSessions counts the sessions that pin a snapshot or have an id of a transaction.
func openSessions(t *testing.T, url string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	err = conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid() AND (backend_xid IS NOT NULL OR backend_xmin IS NOT NULL)
			AND backend_type = 'client backend'`).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// expectJobs fails the test if there are not so many jobs, each with its lease.
func expectJobs(t *testing.T, s pacht.Store, url string, want int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var jobs, leases, keys int
	err = conn.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM pacht.jobs), (SELECT count(*) FROM pacht.leases), (SELECT count(*) FROM pacht.keys)`).
		Scan(&jobs, &leases, &keys)
	if err != nil || jobs != want || leases != want || keys != 0 && keys != want {
		t.Errorf("%d jobs, %d leases, %d keys, %v; want %d", jobs, leases, keys, err, want)
	}
	if bad, err := s.Check(t.Context()); err != nil || len(bad) > 0 {
		t.Errorf("check: %+v, %v", bad, err)
	}
}
