package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
)

func TestOpenRefusesWhatIsNoDatabaseReadably(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "letter.txt")
	if err := os.WriteFile(text, []byte(strings.Repeat("Dear sir or madam. ", 400)), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := []struct{ path, says string }{
		{dir, "it is a directory"},
		{text, "it is no SQLite database"},
		{filepath.Join(dir, "missing", "pacht.db"), "there is no folder"},
		{"/dev/null", "no regular file"},
		{":memory:", "the path of a file"},
		{"", "the path of a file"},
	}
	for _, c := range cases {
		s, err := Open(c.path, Config{})
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("open %q: %v, want an error that says %q", c.path, err, c.says)
		}
	}
	if raw, err := os.ReadFile(text); err != nil || !strings.HasPrefix(string(raw), "Dear sir") {
		t.Errorf("the text file was changed: %v", err)
	}
}

func TestOpenRefusesAConfigThatMakesNoSense(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pacht.db")
	for _, cfg := range []Config{
		{Prefix: "Pay_"}, {Prefix: "1a"}, {Prefix: "a; DROP TABLE x; --"}, {Prefix: `a"b`}, {Prefix: strings.Repeat("a", 41)},
		{LockWait: -time.Second},
	} {
		s, err := Open(path, cfg)
		var invalid *pacht.InvalidError
		if !errors.As(err, &invalid) {
			t.Errorf("%+v: %v, want *pacht.InvalidError", cfg, err)
		}
		if err == nil {
			s.Close()
		}
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a refused Open made the file")
	}
}

func TestEveryVerbOnADatabaseWithoutMigrationsSaysSo(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "pacht.db"), Config{}, false)
	ctx := t.Context()
	ref := pacht.Ref{Job: 1, Token: 1}
	act := pacht.Act{By: "ann", Reason: "test"}
	verbs := map[string]func() error{
		"enqueue": func() error { _, err := s.Enqueue(ctx, []pacht.NewJob{newJob(1)}); return err },
		"claim":   func() error { _, err := s.Claim(ctx, claimRequest("a", 1)); return err },
		"renew":   func() error { _, err := s.Renew(ctx, []pacht.Ref{ref}); return err },
		"settle": func() error {
			_, err := s.Settle(ctx, []pacht.Settlement{{Ref: ref, Outcome: pacht.OutcomeCompleted}})
			return err
		},
		"expire": func() error {
			_, err := s.Expire(ctx, pacht.ExpireRequest{By: "w", Limit: 1, Period: time.Second})
			return err
		},
		"held by": func() error { _, err := s.HeldBy(ctx, "a"); return err },
		"jobs":    func() error { _, err := s.Jobs(ctx, pacht.Filter{}); return err },
		"job":     func() error { _, err := s.Job(ctx, 1); return err },
		"counts":  func() error { _, err := s.Counts(ctx); return err },
		"check":   func() error { _, err := s.Check(ctx); return err },
		"retry":   func() error { return s.Retry(ctx, 1, act) },
		"prune": func() error {
			_, err := s.Prune(ctx, pacht.PruneRequest{Status: pacht.Dead, Limit: 1})
			return err
		},
		"enqueue in a transaction": func() error {
			tx, err := s.DB().BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer tx.Rollback()
			_, err = s.Tx(tx).EnqueueTx(ctx, []pacht.NewJob{newJob(1)})
			return err
		},
	}
	for name, verb := range verbs {
		err := verb()
		var schema *pacht.SchemaError
		if !errors.As(err, &schema) || schema.Wanted != len(s.steps) || !strings.Contains(err.Error(), "pacht migrate up") {
			t.Errorf("%s: %v, want *pacht.SchemaError", name, err)
		}
	}
	if found, wanted, err := s.Schema(ctx); found != 0 || wanted != len(s.steps) || err != nil {
		t.Errorf("schema: %d, %d, %v", found, wanted, err)
	}
}

// S057: a pool opens connections whenever it likes; each of them has the settings.
func TestPragmasAreSetOnEveryFreshConnection(t *testing.T) {
	s := newStore(t)
	ctx := t.Context()
	for name, db := range map[string]*sql.DB{"the caller's": s.db, "reading": s.read.DB} {
		var open []*sql.Conn
		for range readers {
			c, err := db.Conn(ctx) // held, so that the next one is another
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, c)
			checkPragmas(t, name, s, c)
		}
		for _, c := range open {
			c.Close()
		}
	}
	err := s.writer.do(ctx, "pragmas", false, func(_ context.Context, w *work) error {
		checkPragmas(t, "the writer's", s, w)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.read.ExecContext(ctx, "CREATE TABLE strange (a)"); err == nil {
		t.Error("a reading connection wrote")
	}
}

func checkPragmas(t *testing.T, name string, s *Store, r runner) {
	t.Helper()
	var journal string
	var synchronous, timeout int
	if _, err := one(context.Background(), r, s.sql.Pragmas, nil, &journal, &synchronous, &timeout); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if journal != "wal" || synchronous != 2 || timeout != 0 {
		t.Errorf("%s: journal_mode %s, synchronous %d, busy_timeout %d; want wal, 2 (FULL), 0", name, journal, synchronous, timeout)
	}
}

// S057: connections that the pool replaces under write load keep the settings and wait in Go.
func TestFreshConnectionsUnderWriteLoadNeverSeeABusyFile(t *testing.T) {
	s := newStore(t)
	s.DB().SetConnMaxLifetime(5 * time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
	defer cancel()
	if _, err := s.DB().ExecContext(t.Context(), "CREATE TABLE payments (id INTEGER PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 4)
	for i := range 4 {
		go func() {
			for n := 0; ; n++ {
				var err error
				switch i % 2 {
				case 0:
					_, err = s.Enqueue(ctx, []pacht.NewJob{newJob(n)})
				case 1:
					_, err = s.DB().ExecContext(ctx, "INSERT INTO payments DEFAULT VALUES")
				}
				if ctx.Err() != nil {
					err = nil
				}
				if err != nil || ctx.Err() != nil {
					done <- err
					return
				}
			}
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	c, err := s.DB().Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	checkPragmas(t, "a fresh one", s, c)
}

func TestEveryStatementPreparesOnARealDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "odd name?#%20ü.db")
	for _, prefix := range []string{DefaultPrefix, "b2_"} {
		s := openStore(t, path, Config{Prefix: prefix}, true)
		for _, query := range allStatements(t, s) {
			st, err := s.DB().PrepareContext(t.Context(), query)
			if err != nil {
				t.Errorf("%v: %s", err, query)
				continue
			}
			st.Close()
		}
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the file is not where it was wanted: %v", err)
	}
}

func TestTwoPrefixesInOneFileDoNotSeeEachOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shared.db")
	a := openStore(t, path, Config{Prefix: "a_"}, true)
	b := openStore(t, path, Config{Prefix: "b_"}, true)
	mustEnqueue(t, a, 3)
	if got := mustClaim(t, b, "b", 10); len(got) != 0 {
		t.Errorf("store b claimed %d jobs of store a", len(got))
	}
	if got := mustClaim(t, a, "a", 10); len(got) != 3 {
		t.Errorf("store a claimed %d, want 3", len(got))
	}
	rows, err := texts(t.Context(), a.DB(), "SELECT name FROM sqlite_schema WHERE name GLOB '*pacht*'")
	if err != nil || len(rows) != 0 {
		t.Errorf("the default prefix stands in the schema: %v, %v", rows, err)
	}
	for _, s := range []*Store{a, b} {
		if !strings.Contains(s.MigrationSQL(), "CREATE TABLE "+s.prefix+"jobs") {
			t.Error("the printed migrations have another prefix")
		}
		mustCheck(t, s)
	}
}

// A script that met a busy file in its middle and was repeated would do its beginning twice.
func TestAScriptIsNotRepeatedWhenTheFileIsBusy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pacht.db")
	s := openStore(t, path, Config{}, true)
	c := startChild(t, "hold the lock", path)
	for query, repeated := range map[string]bool{
		"CREATE TABLE a (x); INSERT INTO a VALUES (1)": false,
		"CREATE TABLE b (x);":                          true,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		_, err := s.DB().ExecContext(ctx, query)
		cancel()
		if waited := errors.Is(err, context.DeadlineExceeded); waited != repeated || err == nil {
			t.Errorf("%q: %v; waited %v, want %v", query, err, waited, repeated)
		}
	}
	c.kill()
}
