// Package crew is workers in the process of a test, and what their handlers did: for faults that
// need no process to die.
package crew

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/pgtest"
	"github.com/pacht-queue/pacht/postgres"
)

// Task is the crew's job: N tells them apart, Ms is how long its handler works.
type Task struct {
	N  int `json:"n"`
	Ms int `json:"ms,omitempty"`
}

// Kind implements pacht.Args.
func (Task) Kind() string { return "task" }

// Open opens a store that is closed at the end of the test.
func Open(t testing.TB, url string, cfg postgres.Config) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(context.Background(), url, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // of a server that may be gone by then
	return s
}

// Pool makes a pool of n connections that need not answer yet, closed at the end of the test.
func Pool(t testing.TB, url string, n int32) *pgxpool.Pool {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns = n
	pool, err := pgxpool.NewWithConfig(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// On makes a store on a pool of the caller's.
func On(t testing.TB, pool *pgxpool.Pool) *postgres.Store {
	t.Helper()
	s, err := postgres.New(pool, postgres.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // of a server that may be gone by then
	return s
}

// Lazily makes a store on a pool of n connections that need not answer yet, as a program has it
// that starts before its database.
func Lazily(t testing.TB, url string, n int32) *postgres.Store {
	t.Helper()
	return On(t, Pool(t, url, n))
}

// Database makes a database with Pacht's tables, on the server that the package's tests share.
func Database(t testing.TB) (url string, s *postgres.Store) {
	t.Helper()
	url = pgtest.Database(t)
	return url, Migrated(t, url)
}

// Migrated makes the tables, and answers the store that did it.
func Migrated(t testing.TB, url string) *postgres.Store {
	t.Helper()
	s := Open(t, url, postgres.Config{})
	if _, err := s.MigrateUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// Enqueue stores n jobs whose handlers do nothing.
func Enqueue(t testing.TB, s pacht.Enqueuer, n int, opts ...pacht.Option) []pacht.ID {
	t.Helper()
	return EnqueueTasks(t, s, make([]Task, n), opts...)
}

// EnqueueTasks stores jobs, in this order, in one transaction.
func EnqueueTasks(t testing.TB, s pacht.Enqueuer, tasks []Task, opts ...pacht.Option) []pacht.ID {
	t.Helper()
	jobs := make([]pacht.NewJob, len(tasks))
	for i, one := range tasks {
		one.N = i
		jobs[i] = pacht.New(one, opts...)
	}
	answers, err := s.Enqueue(t.Context(), jobs)
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]pacht.ID, len(answers))
	for i, a := range answers {
		if a.Err != nil {
			t.Fatal(a.Err)
		}
		ids[i] = a.ID
	}
	return ids
}
