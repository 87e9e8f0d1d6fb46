package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestURLsNameAFileOrAServer(t *testing.T) {
	for in, want := range map[string]target{
		"sqlite:pacht.db":                                     {file: "pacht.db"},
		"SQLITE:pacht.db":                                     {file: "pacht.db"},
		"sqlite:dir/a b.db?prefix=q_":                         {file: "dir/a b.db", prefix: "q_"},
		"sqlite:///var/lib/p.db":                              {file: "/var/lib/p.db"},
		"sqlite:/var/lib/p.db":                                {file: "/var/lib/p.db"},
		"postgres://ann@h/db":                                 {url: "postgres://ann@h/db"},
		"postgresql://ann:p%40w@h:5/db?sslmode=disable":       {url: "postgresql://ann:p%40w@h:5/db?sslmode=disable", password: "p@w"},
		"postgres://h/db?schema=Jobs+2&application_name=x":    {url: "postgres://h/db?application_name=x", schema: "Jobs 2"},
		"postgres://h1,h2:5433/db?target_session_attrs=write": {url: "postgres://h1,h2:5433/db?target_session_attrs=write"},
		"postgres:///db?host=/run/pg&schema=s":                {url: "postgres:///db?host=%2Frun%2Fpg", schema: "s"},
	} {
		got, err := parse(in)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", in, got, err, want)
		}
	}
}

func TestLocationHasTheDefaultsOfTheStores(t *testing.T) {
	for in, want := range map[string]Location{
		"sqlite:p.db":                            {File: "p.db", Prefix: "pacht_"},
		"sqlite:p.db?prefix=q_":                  {File: "p.db", Prefix: "q_"},
		"postgres://ann:pw@h/db":                 {URL: "postgres://ann:pw@h/db", Schema: "pacht"},
		"postgres://h/db?schema=s&sslmode=allow": {URL: "postgres://h/db?sslmode=allow", Schema: "s"},
	} {
		if got, err := Locate(in); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", in, got, err, want)
		}
	}
}

func TestOtherURLsAreRefusedNamingTheFormsAndNoPassword(t *testing.T) {
	for _, in := range []string{
		"", "pacht.db", "sqlite:", "sqlite::memory:", "sqlite://host/p.db", "sqlite:p.db?mode=ro", "sqlite:a\x00b",
		"mysql://root:s3cret@h/db", "file:p.db", "host=h password=s3cret", "user:s3cret@h/db", "postgres://ann:s3cret%@h/db", "postgres://ann:s3cret@h:port/db",
	} {
		_, err := Open(t.Context(), in)
		var invalid *pacht.InvalidError
		if !errors.As(err, &invalid) || invalid.Field != "db" || strings.Contains(err.Error(), "s3cret") || strings.ContainsRune(err.Error(), 0) {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func TestPrefixIsRefusedBeforeTheFileIsLookedFor(t *testing.T) {
	for _, prefix := range []string{"A-B", "1x", "x y", strings.Repeat("x", 41)} {
		_, err := OpenExisting(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "none.db")+"?prefix="+url.QueryEscape(prefix))
		var invalid *pacht.InvalidError
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), "prefix") || !strings.Contains(err.Error(), prefix) {
			t.Errorf("%q: %v", prefix, err)
		}
	}
}

func TestURLThatTheDriverCannotReadIsRefused(t *testing.T) {
	for _, in := range []string{"postgres://ann:s3cret@127.0.0.1:1/db?sslmode=nonsense", "postgres://127.0.0.1:1/db?connect_timeout=soon", "postgres://127.0.0.1:1/db?pool_max_conns=many"} {
		_, err := Open(t.Context(), in)
		var invalid *pacht.InvalidError
		if !errors.As(err, &invalid) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", in, err)
		}
	}
}

func TestOnlyAnAnswerThatWillNotChangeIsHopeless(t *testing.T) {
	for code, want := range map[string]bool{
		"28P01": true, "28000": true, "3D000": true, "42501": true,
		"57P03": false, "53300": false, "57P01": false, "08006": false, "40001": false,
	} {
		err := fmt.Errorf("open: %w", &pgconn.PgError{Severity: "FATAL", Code: code, Message: `password authentication failed for user "ann"`})
		if Hopeless(err) != want {
			t.Errorf("%s: %v, want %v", code, !want, want)
		}
		// A password that is also the user's name.
		if err = (target{password: "ann"}).redact(err); Hopeless(err) != want || strings.Contains(err.Error(), "ann") {
			t.Errorf("%s, redacted: %v: %v, want %v", code, err, !want, want)
		}
	}
	if Hopeless(errors.New("connection refused")) {
		t.Error("a server that is down is hopeless")
	}
}

func TestDescriptionShowsNoPassword(t *testing.T) {
	for in, want := range map[string]string{
		"postgres://ann:s3cret@h:5/db?schema=s&password=s3cret": "postgres://ann@h:5/db",
		"sqlite:/var/p.db?prefix=q_":                            "sqlite:/var/p.db",
		"mysql://root:s3cret@h":                                 "unknown",
	} {
		if got := Describe(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestOnlyOpenMakesAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.db")
	if _, err := OpenExisting(t.Context(), "sqlite:"+file); !errors.Is(err, pacht.ErrSchema) || !strings.Contains(err.Error(), "migrate up") {
		t.Errorf("%v", err)
	}
	if _, err := MigrationSQL(t.Context(), "sqlite:"+file+"?prefix=mine_"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the file was made")
	}
	db, err := Open(t.Context(), "sqlite:"+file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.MigrateUp(t.Context()); err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// Two sets of tables in one database do not see each other.
func TestSchemaAndPrefixKeepTablesApart(t *testing.T) {
	server := pgtest.Database(t)
	more := "&"
	if !strings.Contains(server, "?") {
		more = "?"
	}
	file := "sqlite:" + filepath.Join(t.TempDir(), "p.db")
	for _, pair := range [][2]string{
		{server + more + "schema=one", server + more + "schema=the+%22other%22"},
		{file + "?prefix=one_", file + "?prefix=other_"},
	} {
		for i, url := range pair {
			sql, err := MigrationSQL(t.Context(), url)
			if err != nil || !strings.Contains(sql, []string{"one", "other"}[i]) {
				t.Errorf("SQL for %s: %v", url, err)
			}
			db, err := Open(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := db.MigrateUp(t.Context()); err != nil {
				t.Fatalf("%s: %v", url, err)
			}
			jobs, err := db.Jobs(t.Context(), pacht.Filter{})
			if err != nil || len(jobs) != 0 {
				t.Errorf("%s begins with %v, %v", url, jobs, err)
			}
			if _, err := db.Enqueue(t.Context(), []pacht.NewJob{{Kind: "k", Args: []byte("{}")}}); err != nil {
				t.Error(err)
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// Whoever applies the printed migrations by other means has the database that MigrateUp makes.
func TestPrintedMigrationsMakeADatabaseThatFits(t *testing.T) {
	apply := map[string]func(t *testing.T, url, text string) error{
		pgtest.Database(t): func(t *testing.T, url, text string) error {
			conn, err := pgconn.Connect(t.Context(), url)
			if err != nil {
				return err
			}
			defer conn.Close(context.Background())
			return conn.Exec(t.Context(), text).Close()
		},
		"sqlite:" + filepath.Join(t.TempDir(), "p.db"): func(t *testing.T, url, text string) error {
			db, err := sql.Open("sqlite", strings.TrimPrefix(url, "sqlite:"))
			if err != nil {
				return err
			}
			defer db.Close()
			_, err = db.ExecContext(t.Context(), text)
			return err
		},
	}
	for url, run := range apply {
		text, err := MigrationSQL(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		if err := run(t, url, text); err != nil {
			t.Fatalf("apply: %v", err)
		}
		db, err := OpenExisting(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		if found, wanted, err := db.Schema(t.Context()); err != nil || found != wanted {
			t.Errorf("version %d of %d, %v", found, wanted, err)
		}
		if done, err := db.MigrateUp(t.Context()); err != nil || len(done) > 0 {
			t.Errorf("migrated %v more, %v", done, err)
		}
		if _, err := db.Enqueue(t.Context(), []pacht.NewJob{{Kind: "k", Args: []byte("{}")}}); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}
