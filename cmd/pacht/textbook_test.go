package main

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pacht-queue/pacht/internal/pgtest"
)

func TestMigrateTextbookInstallsAndRemovesTheView(t *testing.T) {
	s := &shell{t: t, dir: t.TempDir(), url: pgtest.Database(t)}
	s.refused(exitSchema, []string{"pacht migrate up"}, "migrate", "textbook")
	s.ok("migrate", "up")
	if sql := s.ok("migrate", "textbook", "--sql"); !strings.Contains(sql, `CREATE OR REPLACE VIEW "pacht"."payment_jobs"`) {
		t.Errorf("the SQL: %s", sql)
	}
	conn, err := pgx.Connect(t.Context(), s.url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	there := func(want bool, view string) {
		t.Helper()
		var found bool
		if err := conn.QueryRow(t.Context(), `SELECT to_regclass($1) IS NOT NULL`, view).Scan(&found); err != nil || found != want {
			t.Errorf("%s is there: %v, %v; want %v", view, found, err, want)
		}
	}
	there(false, "pacht.payment_jobs") // --sql touches nothing
	for range 2 {
		if out := s.ok("migrate", "textbook"); !strings.Contains(out, `"pacht"."payment_jobs"`) {
			t.Errorf("it does not name the view: %s", out)
		}
	}
	there(true, "pacht.payment_jobs")
	var said struct {
		View      string `json:"view"`
		Installed bool   `json:"installed"`
	}
	s.document(&said, exitOK, "migrate", "textbook", "--view-schema", "public")
	if said.View != `"public"."payment_jobs"` || !said.Installed {
		t.Errorf("answer: %+v", said)
	}
	id := s.enqueue("charge", "{}")
	tag, err := conn.Exec(t.Context(), `UPDATE payment_jobs SET status = 'Processing', lease_owner = 'hand', lease_until = now() + interval '1 minute' WHERE id = `+id)
	if err != nil || tag.RowsAffected() != 1 {
		t.Errorf("claim as written: %v, %v", tag, err)
	}
	s.ok("migrate", "textbook", "--remove")
	there(false, "pacht.payment_jobs")
	there(false, "public.payment_jobs")
	s.refused(exitUsage, []string{"remove", "sql"}, "migrate", "textbook", "--remove", "--sql")
}

func TestMigrateTextbookIsForPostgreSQL(t *testing.T) {
	s := migrated(t)
	s.refused(exitUsage, []string{"db", "postgres://"}, "migrate", "textbook")
}
