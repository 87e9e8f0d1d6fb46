package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pacht-queue/pacht"
)

type migrateAnswer struct{ Applied []pacht.Migration }

// migrateRole migrates when it is let on.
func migrateRole(ctx context.Context, path string) error {
	if err := ready(); err != nil {
		return err
	}
	s, err := Open(path, Config{})
	if err != nil {
		return err
	}
	defer s.Close()
	applied, err := s.MigrateUp(ctx)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(migrateAnswer{applied})
}

// halfMigratedRole has run the SQL of the first migration and not committed it.
func halfMigratedRole(ctx context.Context, path string) error {
	s, err := Open(path, Config{})
	if err != nil {
		return err
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if _, err := s.migrateIn(ctx, tx); err != nil {
		return err
	}
	return ready()
}

func TestThreeProcessesMigrateAtOnceAndEachStepIsAppliedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pacht.db")
	var children []*child
	for range 3 {
		children = append(children, startChild(t, "migrate", path))
	}
	for _, c := range children {
		c.goOn(t)
	}
	times := map[int]int{}
	for _, c := range children {
		var a migrateAnswer
		c.answer(t, &a)
		for _, m := range a.Applied {
			times[m.Version]++
		}
	}
	s := openStore(t, path, Config{}, false)
	list, err := s.Migrations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		if times[m.Version] != 1 || m.AppliedAt.IsZero() {
			t.Errorf("migration %d was applied by %d processes, at %s", m.Version, times[m.Version], m.AppliedAt)
		}
	}
	mustEnqueue(t, s, 1)
}

func TestAMigrationKilledInTheMiddleLeavesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pacht.db")
	c := startChild(t, "half migrated", path)
	c.kill()
	s := openStore(t, path, Config{}, false)
	rows, err := texts(t.Context(), s.DB(), "SELECT name FROM sqlite_schema")
	if err != nil || len(rows) != 0 {
		t.Errorf("left behind: %v, %v", rows, err)
	}
	if done, err := s.MigrateUp(t.Context()); err != nil || len(done) != len(s.steps) || done[0].AppliedAt.IsZero() {
		t.Errorf("migrated %v, %v", done, err)
	}
	if done, err := s.MigrateUp(t.Context()); err != nil || len(done) != 0 {
		t.Errorf("the second time: %v, %v", done, err)
	}
	mustEnqueue(t, s, 1)
}

func TestANewerOrAlteredSchemaIsRefused(t *testing.T) {
	for _, c := range []struct{ change, says string }{
		{"INSERT INTO pacht_schema_version VALUES (99, 'later', 'x', 0)", "is missing"},
		{"INSERT INTO pacht_schema_version SELECT max(version) + 1, 'later', 'x', 0 FROM pacht_schema_version", "this program knows only up to"},
		{"UPDATE pacht_schema_version SET checksum = 'x' WHERE version = 1", "was applied from other text"},
	} {
		path := filepath.Join(t.TempDir(), "pacht.db")
		if _, err := openStore(t, path, Config{}, true).DB().ExecContext(t.Context(), c.change); err != nil {
			t.Fatal(err)
		}
		s := openStore(t, path, Config{}, false)
		_, up := s.MigrateUp(t.Context())
		_, verb := s.Enqueue(t.Context(), []pacht.NewJob{newJob(1)})
		for _, err := range []error{up, verb} {
			if !errors.Is(err, pacht.ErrSchema) || (!strings.Contains(err.Error(), c.says) && !strings.Contains(err.Error(), "version 99")) {
				t.Errorf("after %q: %v, want an error that says %q", c.change, err, c.says)
			}
		}
	}
}
