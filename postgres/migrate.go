package postgres

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/migration"
	"github.com/pacht-queue/pacht/internal/sqltext"
)

// MigrateUp implements pacht.Migrator. The lock is held by each migration's own transaction,
// so it works through a pooler and ends with a process that is killed.
func (s *Store) MigrateUp(ctx context.Context) ([]pacht.Migration, error) {
	var done []pacht.Migration
	for {
		var step, unanswered *pacht.Migration
		err := s.again(ctx, true, "migrate schema "+s.schema, func() error {
			committing := false
			err := pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
				var err error
				step, err = s.migrateOne(ctx, pgxSession{on: tx, mode: pgx.QueryExecModeSimpleProtocol})
				committing = err == nil
				return err
			})
			if err != nil && committing {
				unanswered = step
				return sent(err)
			}
			return err
		})
		if err != nil {
			return done, err
		}
		if unanswered != nil && (step == nil || step.Version != unanswered.Version) {
			done = append(done, *unanswered) // it was committed after all
		}
		if step == nil {
			return done, nil
		}
		done = append(done, *step)
	}
}

// migrateOne applies the next missing migration in an open transaction; nil if there is none.
func (s *Store) migrateOne(ctx context.Context, on session) (*pacht.Migration, error) {
	// A migrator that stops in the middle must not keep the others, and every query, waiting.
	if err := on.query(ctx, s.sql.BoundIdle, []any{s.idle().Milliseconds()}, nil); err != nil {
		return nil, err
	}
	key := fnv.New64a()
	key.Write([]byte("pacht migrate " + s.schema))
	if err := on.query(ctx, s.sql.SchemaLock, []any{int64(key.Sum64())}, nil); err != nil {
		return nil, err
	}
	var schema, table bool
	if err := on.query(ctx, s.sql.SchemaFound, []any{s.schema}, func(scan scanner) error { return scan(&schema, &table) }); err != nil {
		return nil, err
	}
	// CREATE ... IF NOT EXISTS asks for rights even if there is nothing to make.
	if !schema {
		if err := on.query(ctx, s.createSchema(), nil, nil); err != nil {
			return nil, err
		}
	}
	if !table {
		if err := on.query(ctx, s.sql.SchemaTable, nil, nil); err != nil {
			return nil, err
		}
	}
	applied, err := s.applied(ctx, on)
	if err != nil {
		return nil, err
	}
	missing, err := migration.Missing(s.steps, applied)
	if err != nil || len(missing) == 0 {
		return nil, err
	}
	next := missing[0]
	if err := on.query(ctx, s.stepSQL(next), nil, nil); err != nil {
		return nil, fmt.Errorf("migration %d (%s): %w", next.Version, next.Name, err)
	}
	if err := on.query(ctx, s.sql.SchemaRecord, []any{int32(next.Version), next.Name, next.Checksum}, nil); err != nil {
		return nil, err
	}
	applied, err = s.applied(ctx, on)
	if err != nil {
		return nil, err
	}
	return &migration.List(s.steps, applied)[next.Version-1], nil
}

func (s *Store) createSchema() string {
	return sqltext.Rename(s.sql.Schema, strings.TrimSuffix(schemaName, "."), strings.TrimSuffix(s.quoted, "."))
}

func (s *Store) stepSQL(step migration.Step) string {
	return sqltext.Rename(sqltext.Strip(step.SQL), schemaName, s.quoted)
}

func (s *Store) applied(ctx context.Context, on session) ([]migration.Applied, error) {
	var all []migration.Applied
	err := on.query(ctx, s.sql.SchemaApplied, nil, func(scan scanner) error {
		var a migration.Applied
		err := scan(&a.Version, &a.Name, &a.Checksum, &a.At)
		a.At = a.At.UTC()
		all = append(all, a)
		return err
	})
	return all, err
}

// Migrations implements pacht.Migrator.
func (s *Store) Migrations(ctx context.Context) ([]pacht.Migration, error) {
	applied, err := s.appliedSoFar(ctx)
	if err != nil {
		return nil, err
	}
	return migration.List(s.steps, applied), nil
}

// Schema implements pacht.Checker.
func (s *Store) Schema(ctx context.Context) (found, wanted int, err error) {
	applied, err := s.appliedSoFar(ctx)
	if err == nil {
		_, err = migration.Missing(s.steps, applied)
	}
	var schema *pacht.SchemaError
	if errors.As(err, &schema) && schema.Detail == "" {
		err = nil // newer than this program: the numbers say so
	}
	return len(applied), len(s.steps), err
}

// appliedSoFar is empty if there are no tables at all.
func (s *Store) appliedSoFar(ctx context.Context) ([]migration.Applied, error) {
	if s.closed.Load() {
		return nil, fmt.Errorf("schema %s: %w", s.schema, pacht.ErrClosed)
	}
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("schema %s: %w", s.schema, err)
	}
	defer conn.Release()
	return s.appliedOn(ctx, pgxSession{on: conn, mode: s.mode})
}

func (s *Store) appliedOn(ctx context.Context, on session) ([]migration.Applied, error) {
	var schema, table bool
	err := on.query(ctx, s.sql.SchemaFound, []any{s.schema}, func(scan scanner) error { return scan(&schema, &table) })
	if err != nil || !table {
		return nil, err
	}
	return s.applied(ctx, on)
}

// ready refuses tables of another version than this program's. It asks until the answer is
// yes, and then never again: a newer program may migrate under a running worker.
func (s *Store) ready(ctx context.Context, conn *pgxpool.Conn) error {
	if s.fits.Load() {
		return nil
	}
	applied, err := s.appliedOn(ctx, pgxSession{on: conn, mode: s.mode})
	if err != nil {
		return err
	}
	missing, err := migration.Missing(s.steps, applied)
	if err == nil && len(missing) > 0 {
		err = &pacht.SchemaError{Found: len(applied), Wanted: len(s.steps)}
	}
	if err == nil {
		s.fits.Store(true)
	}
	return err
}

// MigrationSQL implements pacht.Migrator.
func (s *Store) MigrationSQL() string {
	var b strings.Builder
	for _, each := range []string{s.createSchema(), s.sql.SchemaTable} {
		b.WriteString(each + ";\n\n")
	}
	for _, step := range s.steps {
		record := strings.NewReplacer("$1", strconv.Itoa(step.Version), "$2", "'"+step.Name+"'", "$3", "'"+step.Checksum+"'")
		fmt.Fprintf(&b, "%s\n%s;\n\n", sqltext.Rename(step.SQL, schemaName, s.quoted), record.Replace(s.sql.SchemaRecord))
	}
	return b.String()
}
