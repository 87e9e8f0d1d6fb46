package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/migration"
	"github.com/pacht-queue/pacht/internal/sqltext"
)

// MigrateUp implements pacht.Migrator. The lock across processes is the file's write lock: a
// process that is killed in the middle leaves nothing.
func (s *Store) MigrateUp(ctx context.Context) ([]pacht.Migration, error) {
	var done []pacht.Migration
	for {
		step, err := s.migrateOne(ctx)
		if err != nil {
			return done, fmt.Errorf("migrate: %w", err)
		}
		if step == nil {
			break
		}
		done = append(done, pacht.Migration{Version: step.Version, Name: step.Name})
	}
	applied, err := s.applied(ctx, s.read)
	if err != nil {
		return done, fmt.Errorf("migrate: %w", err)
	}
	for i := range done {
		done[i].AppliedAt = applied[done[i].Version-1].At
	}
	return done, nil
}

// migrateOne applies the first migration that is missing, in a transaction of its own; nil if
// there is none. What is missing is looked up under the lock.
func (s *Store) migrateOne(ctx context.Context) (*migration.Step, error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	step, err := s.migrateIn(ctx, tx)
	if err != nil || step == nil {
		return nil, errors.Join(err, tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		return nil, writeError("commit", err, true)
	}
	return step, nil
}

func (s *Store) migrateIn(ctx context.Context, tx *sql.Tx) (*migration.Step, error) {
	applied, err := s.applied(ctx, tx)
	if err != nil {
		return nil, err
	}
	missing, err := migration.Missing(s.steps, applied)
	if err != nil || len(missing) == 0 {
		return nil, err
	}
	step := missing[0]
	for _, text := range []string{s.sql.SchemaCreate, sqltext.Rename(step.SQL, DefaultPrefix, s.prefix)} {
		if _, err := tx.ExecContext(ctx, text); err != nil {
			return nil, writeError(fmt.Sprintf("migration %d (%s)", step.Version, step.Name), err, false)
		}
	}
	if _, err := tx.ExecContext(ctx, s.sql.SchemaRecord, step.Version, step.Name, step.Checksum); err != nil {
		return nil, writeError(fmt.Sprintf("migration %d (%s)", step.Version, step.Name), err, false)
	}
	return &step, nil
}

// applied reads the applied migrations; none if there is no table of them.
func (s *Store) applied(ctx context.Context, r runner) ([]migration.Applied, error) {
	var exists bool
	if _, err := one(ctx, r, s.sql.SchemaExists, nil, &exists); err != nil || !exists {
		return nil, err
	}
	var list []migration.Applied
	err := each(ctx, r, s.sql.SchemaApplied, nil, func(rows *sql.Rows) error {
		var a migration.Applied
		var ms int64
		if err := rows.Scan(&a.Version, &a.Name, &a.Checksum, &ms); err != nil {
			return err
		}
		a.At = at(ms)
		list = append(list, a)
		return nil
	})
	return list, err
}

// Migrations implements pacht.Migrator.
func (s *Store) Migrations(ctx context.Context) ([]pacht.Migration, error) {
	applied, err := s.applied(ctx, s.read)
	if err != nil {
		return nil, fmt.Errorf("list migrations: %w", err)
	}
	return migration.List(s.steps, applied), nil
}

// MigrationSQL implements pacht.Migrator.
func (s *Store) MigrationSQL() string {
	var b strings.Builder
	fmt.Fprintf(&b, "BEGIN IMMEDIATE;\n\n%s;\n\n", s.sql.SchemaCreate)
	for _, step := range s.steps {
		record := strings.NewReplacer("?1", strconv.Itoa(step.Version), "?2", "'"+step.Name+"'", "?3", "'"+step.Checksum+"'")
		fmt.Fprintf(&b, "%s\n%s;\n\n", sqltext.Rename(step.SQL, DefaultPrefix, s.prefix), record.Replace(s.sql.SchemaRecord))
	}
	b.WriteString("COMMIT;\n")
	return b.String()
}

// Schema implements pacht.Checker.
func (s *Store) Schema(ctx context.Context) (found, wanted int, err error) {
	if s.closed.Load() {
		return 0, len(s.steps), pacht.ErrClosed
	}
	applied, err := s.applied(ctx, s.read)
	if err != nil {
		return 0, len(s.steps), fmt.Errorf("read the schema's version: %w", err)
	}
	if len(applied) > 0 {
		found = applied[len(applied)-1].Version
	}
	return found, len(s.steps), nil
}

// fits refuses to work on tables that this program does not know; it looks until they fit.
func (s *Store) fits(ctx context.Context) error {
	switch {
	case s.closed.Load():
		return pacht.ErrClosed
	case s.ready.Load():
		return nil
	}
	applied, err := s.applied(ctx, s.read)
	if err != nil {
		return fmt.Errorf("read the schema's version: %w", err)
	}
	missing, err := migration.Missing(s.steps, applied)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return &pacht.SchemaError{Found: len(applied), Wanted: len(s.steps)}
	}
	s.ready.Store(true)
	return nil
}
