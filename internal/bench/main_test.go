package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pacht-queue/pacht/internal/database"
	"github.com/pacht-queue/pacht/internal/pgtest"
)

// TestMain makes the test binary be a worker process too, as the command is.
func TestMain(m *testing.M) {
	if slices.Equal(os.Args[1:], []string{"bench", "worker"}) {
		if err := ServeWorker(context.Background(), os.Stdin, os.Stdout, os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	pgtest.Main(m)
}

// onBoth runs a test on both databases, with tables and nothing in them.
func onBoth(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	t.Parallel()
	for name, url := range map[string]func(*testing.T) string{
		"sqlite":   func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "p.db") + "?prefix=q_" },
		"postgres": func(t *testing.T) string { return withSchema(pgtest.Database(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := url(t)
			db := openStore(t, at)
			if _, err := db.MigrateUp(t.Context()); err != nil {
				t.Fatal(err)
			}
			test(t, at)
		})
	}
}

func withSchema(url string) string {
	if strings.Contains(url, "?") {
		return url + "&schema=the+%22queue%22"
	}
	return url + "?schema=the+%22queue%22"
}

func openStore(t *testing.T, url string) database.Database {
	t.Helper()
	db, err := database.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func open(t *testing.T, where Where) *Place {
	t.Helper()
	p, err := Open(t.Context(), where)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p
}

// run executes SQL on the tables, with $ in place of schema or prefix.
func run(t *testing.T, p *Place, sql string) {
	t.Helper()
	err := p.tables.write(t.Context(), func(run func(string, ...any) error, _ func(string, any) error) error {
		return run(os.Expand(sql, func(string) string { return p.schema }))
	})
	if err != nil {
		t.Fatal(err)
	}
}
