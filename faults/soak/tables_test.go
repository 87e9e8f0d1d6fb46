package soak

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/faults/lab"
	"github.com/pacht-queue/pacht/internal/database"
	"github.com/pacht-queue/pacht/pachttest"
	"github.com/pacht-queue/pacht/sweep"
)

// tables looks at the database beside the store, on one connection.
type tables struct {
	t    *testing.T
	url  string
	db   *sql.DB
	file bool
}

func openTables(t *testing.T, url string) *tables {
	t.Helper()
	at, err := database.Locate(url)
	if err != nil {
		t.Fatal(err)
	}
	driver, source := "pgx", at.URL
	if at.File != "" {
		driver, source = "sqlite", "file:"+at.File+"?_pragma=busy_timeout(10000)"
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return &tables{t: t, url: url, db: db, file: at.File != ""}
}

func (q *tables) number(query string) (n int) {
	q.t.Helper()
	ctx, cancel := context.WithTimeout(q.t.Context(), 30*time.Second)
	defer cancel()
	if err := q.db.QueryRowContext(ctx, query).Scan(&n); err != nil {
		q.t.Fatalf("%s: %v", query, err)
	}
	return n
}

func (q *tables) rows(table string) int {
	return q.number("SELECT count(1) FROM " + lab.Table(q.t, q.url, table))
}

// vacuum does what autovacuum does every minute: here a minute is a moment.
func (q *tables) vacuum() {
	q.t.Helper()
	if !q.file {
		lab.Exec(q.t, q.url, "VACUUM pacht.leases, pacht.jobs, pacht.attempts")
	}
}

// size is what a table and its indexes take, in kilobytes; of a file the whole of it.
func (q *tables) size(table string) int {
	if q.file {
		return q.number("SELECT page_count * page_size / 1024 FROM pragma_page_count(), pragma_page_size()")
	}
	name := strings.ReplaceAll(lab.Table(q.t, q.url, table), "'", "''")
	return q.number("SELECT pg_total_relation_size('" + name + "') / 1024")
}

// connections are those of the server to this database, but for our own; 0 for a file.
func (q *tables) connections() int {
	if q.file {
		return 0
	}
	return q.number("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'")
}

// sleepers are the rows of idle queues; 0 for a file, which has none.
func (q *tables) sleepers() int {
	if q.file {
		return 0
	}
	return q.rows("sleepers")
}

// running are the rows of processes that have not said that they ended.
func (q *tables) running() int {
	return q.number("SELECT count(1) FROM " + lab.Table(q.t, q.url, "workers") + " WHERE stopped_at IS NULL")
}

// empties: a day later nothing is left of finished jobs and of processes that have ended or died.
func (q *tables) empties(store database.Database) {
	q.t.Helper()
	ager, ok := store.(pachttest.Ager)
	if !ok {
		q.t.Fatalf("%T cannot be aged", store)
	}
	pachttest.Age(q.t.Context(), q.t, ager, 25*time.Hour)
	s, err := sweep.New(store, sweep.Config{Retention: pacht.Retention{Completed: time.Second}, Period: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		q.t.Fatal(err)
	}
	left := ""
	if !lab.Within(30*time.Second, func() bool {
		if err := s.Round(q.t.Context()); err != nil {
			q.t.Fatal(err)
		}
		left = fmt.Sprintf("%d jobs, %d attempts, %d leases, %d workers", q.rows("jobs"), q.rows("attempts"), q.rows("leases"), q.rows("workers"))
		return left == "0 jobs, 0 attempts, 0 leases, 0 workers"
	}) {
		q.t.Errorf("a day later there are %s", left)
	}
}
