package room_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/faults/crew"
	"github.com/pacht-queue/pacht/faults/lab"
	"github.com/pacht-queue/pacht/postgres"
)

// S059: an enqueue of the store's own closes a circle of locks and is the one that the server
// ends (40P01). It is repeated inside, and its caller hears nothing of it.
//
//	third        holds key 2
//	the enqueue  holds key 1, waits for key 2
//	other        holds key 3, waits for key 1
//	third goes; the enqueue waits for key 3: that is the circle, and it has closed it
func TestAnEnqueueThatIsTheVictimOfADeadlockIsRepeatedInside(t *testing.T) {
	t.Parallel()
	database, base := crew.Database(t)
	execute(t, adminOf(t, database), fmt.Sprintf("ALTER DATABASE %q SET deadlock_timeout = '20ms'", nameOf(t, database)))
	s := crew.Open(t, database, postgres.Config{})
	jobs := []pacht.NewJob{}
	for _, key := range []string{"key 1", "key 2", "key 3"} {
		jobs = append(jobs, pacht.New(crew.Task{}, pacht.IdempotencyKey(key)))
	}
	begin := func(key int) (pgx.Tx, pacht.Tx) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), database)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		// Only who waits for a lock so long looks for a circle: never these.
		if _, err := conn.Exec(t.Context(), "SET deadlock_timeout = '1h'"); err != nil {
			t.Fatal(err)
		}
		tx, err := conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Tx(tx).EnqueueTx(t.Context(), jobs[key-1:key]); err != nil {
			t.Fatal(err)
		}
		return tx, s.Tx(tx)
	}
	waiting := func(n int) {
		t.Helper()
		lab.Await(t, 20*time.Second, fmt.Sprint(n, " wait"), func() bool {
			return scalar[int](t, database, "SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted") == n
		})
	}
	third, _ := begin(2)
	other, inOther := begin(3)
	enqueued, asked := make(chan error, 1), make(chan error, 1)
	go func() {
		answers, err := s.Enqueue(t.Context(), jobs)
		for _, a := range answers {
			if err == nil {
				err = a.Err
			}
		}
		enqueued <- err
	}()
	waiting(1)
	go func() {
		_, err := inOther.EnqueueTx(t.Context(), jobs[:1])
		asked <- err
	}()
	waiting(2)
	if err := third.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-asked; err != nil {
		t.Fatalf("the other was the victim, nothing was proved: %v", err)
	}
	if err := other.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-enqueued; err != nil {
		t.Errorf("the enqueue: %v", err)
	}
	if n := scalar[int](t, database, "SELECT count(*) FROM pacht.jobs"); n != 3 {
		t.Errorf("%d jobs, want one for each key", n)
	}
	crew.Checked(t, base)
	if err := s.Close(); err != nil { // its sessions tell the server's statistics as they end
		t.Error(err)
	}
	lab.Await(t, 20*time.Second, "the server has counted a deadlock", func() bool {
		return scalar[int](t, database, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()") > 0
	})
}
