package postgres

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pacht-queue/pacht/internal/pgtest"
	"github.com/pacht-queue/pacht/storetest"
)

func FuzzStored(f *testing.F) {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, pgtest.Database(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(pool.Close)
	s, err := New(pool, Config{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.Close() })
	if _, err := s.MigrateUp(ctx); err != nil {
		f.Fatal(err)
	}
	storetest.Fuzz(f, s)
}

// The names of schemas stand in the text of functions and triggers: quoted, whatever they are, and
// nothing that stands behind them is read as SQL.
func FuzzSchemaName(f *testing.F) {
	for _, s := range []string{"pacht", "public", "The Queue", `a"b`, "pacht.", "a pacht.payment_jobs b", "$textbook$", "'; DROP --", "a\x00", "", "ä", strings.Repeat("x", 63), strings.Repeat("x", 64)} {
		f.Add(s, s)
		f.Add(s, "public")
	}
	plain, err := textbookSQL("install", "one", "two")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, schema, view string) {
		statements, err := textbookSQL("install", schema, view)
		if err != nil {
			return
		}
		one, two := pgx.Identifier{schema}.Sanitize(), pgx.Identifier{view}.Sanitize()
		for i, text := range statements {
			// The same text with other names: taking the names out leaves the same rest.
			want := strings.NewReplacer(`"one"`, one, `"two"`, two).Replace(plain[i])
			if text != want {
				t.Errorf("schema %q, view in %q: statement %d differs by more than its names", schema, view, i+1)
			}
		}
	})
}
