package lab

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/database"
	"github.com/pacht-queue/pacht/internal/pgtest"
)

// OnBoth runs a test on a fresh database of each kind.
func OnBoth(t *testing.T, fn func(t *testing.T, url string)) {
	t.Helper()
	t.Run("postgres", func(t *testing.T) { fn(t, FreshServer(t)) })
	t.Run("sqlite", func(t *testing.T) { fn(t, Fresh(t, FreshFile(t))) })
}

// FreshFile is the URL of a SQLite file that is not there yet.
func FreshFile(t testing.TB) string {
	t.Helper()
	return "sqlite:" + filepath.Join(t.TempDir(), "lab.db")
}

// FreshServer is the URL of a fresh database of the PostgreSQL server that all tests of this
// process share, with Pacht's tables.
func FreshServer(t testing.TB) string { t.Helper(); return Fresh(t, pgtest.Database(t)) }

// Fresh makes Pacht's tables, and the lab's business table, in an empty database, and answers
// its URL.
func Fresh(t testing.TB, url string) string {
	t.Helper()
	db, err := database.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.MigrateUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	Exec(t, url, `CREATE TABLE IF NOT EXISTS lab_books (job_id bigint NOT NULL, token bigint NOT NULL)`)
	return url
}

// Open opens the store of a URL, closed at the end of the test.
func Open(t testing.TB, url string) database.Database {
	t.Helper()
	db, err := database.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	return db
}

// Table is the full name of one of Pacht's tables.
func Table(t testing.TB, url, name string) string {
	t.Helper()
	at := locate(t, url)
	if at.File != "" {
		return at.Prefix + name
	}
	return pgx.Identifier{at.Schema, name}.Sanitize()
}

// Exec runs a statement on a connection of its own.
func Exec(t testing.TB, url, statement string) {
	t.Helper()
	if _, err := Try(t, url, statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// Try is Exec of what the database may refuse. It answers how many rows were changed.
func Try(t testing.TB, url, statement string) (rows int64, err error) {
	t.Helper()
	db := connect(t, url)
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	// SQLite's own waiting never gets at a file on which others write without a pause.
	Within(20*time.Second, func() bool {
		var done sql.Result
		if done, err = db.ExecContext(ctx, statement); err == nil {
			rows, err = done.RowsAffected()
		}
		return err == nil || !strings.Contains(err.Error(), "SQLITE_BUSY")
	})
	return rows, err
}

// Value runs a statement that answers one value.
func Value(t testing.TB, url, statement string) (value string) {
	t.Helper()
	db := connect(t, url)
	defer db.Close()
	if err := db.QueryRowContext(t.Context(), statement).Scan(&value); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return value
}

func locate(t testing.TB, url string) database.Location {
	t.Helper()
	at, err := database.Locate(url)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// connect opens the database beside the store, by a driver that knows nothing of Pacht.
func connect(t testing.TB, url string) *sql.DB {
	t.Helper()
	at := locate(t, url)
	driver, source := "pgx", at.URL
	if at.File != "" {
		driver, source = "sqlite", "file:"+at.File+"?_txlock=immediate&_pragma=busy_timeout(0)"
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// Enqueue stores so many jobs for the fleet's handler. They may crash and fail as often as the
// faults want; options come on top of that.
func Enqueue(t testing.TB, store pacht.Enqueuer, n int, opts ...pacht.Option) []pacht.ID {
	t.Helper()
	opts = append([]pacht.Option{pacht.MaxAttempts(pacht.MaxMaxAttempts), pacht.MaxCrashes(pacht.MaxMaxCrashes), pacht.TTL(time.Second)}, opts...)
	ids := make([]pacht.ID, 0, n)
	for len(ids) < n {
		jobs := make([]pacht.NewJob, 0, 1000)
		for i := len(ids); i < n && len(jobs) < cap(jobs); i++ {
			jobs = append(jobs, pacht.New(Work{N: i}, opts...))
		}
		answers, err := store.Enqueue(t.Context(), jobs)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range answers {
			if a.Err != nil {
				t.Fatal(a.Err)
			}
			ids = append(ids, a.ID)
		}
	}
	return ids
}
