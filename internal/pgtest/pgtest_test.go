package pgtest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestMain(m *testing.M) { Main(m) }

func scalar(t *testing.T, url, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var answer string
	if err := conn.QueryRow(t.Context(), sql, pgx.QueryExecModeSimpleProtocol).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return answer
}

func TestEachDatabaseIsItsOwn(t *testing.T) {
	a, b := Database(t), Database(t)
	if err := run(a, "CREATE TABLE seen AS SELECT 1 AS n"); err != nil {
		t.Fatal(err)
	}
	if got := scalar(t, b, "SELECT count(*)::text FROM pg_class WHERE relname = 'seen'"); got != "0" {
		t.Errorf("the second database sees %s tables of the first", got)
	}
}

func TestServerComesBackWithItsDataAfterStopAndKill(t *testing.T) {
	s := NewServer(t, "synchronous_commit=on")
	if err := run(s.URL("postgres"), "CREATE TABLE kept AS SELECT 'here'::text AS v"); err != nil {
		t.Fatal(err)
	}
	s.Stop(t)
	if _, err := pgx.Connect(t.Context(), s.URL("postgres")); err == nil {
		t.Fatal("a stopped server answered")
	}
	s.Start(t)
	s.Kill(t)
	s.Start(t)
	if got := scalar(t, s.URL("postgres"), "SELECT v FROM kept"); got != "here" {
		t.Errorf("after a crash: %q", got)
	}
}

func TestBouncerLeadsToTheDatabase(t *testing.T) {
	db := Database(t)
	direct := scalar(t, db, "SELECT current_database()")
	if got := scalar(t, Bouncer(t, db), "SELECT current_database()"); got != direct {
		t.Errorf("through pgbouncer %q, directly %q", got, direct)
	}
}
