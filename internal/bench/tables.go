package bench

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// tables are the stored rows as they are, past the store.
type tables interface {
	// row asks for one row.
	row(ctx context.Context, sql string, args []any, into ...any) error
	// write runs statements in one transaction; ask reads a row in it.
	write(ctx context.Context, do func(run func(sql string, args ...any) error, ask func(sql string, into any) error) error) error
	close()
}

type serverTables struct{ pool *pgxpool.Pool }

func (t serverTables) row(ctx context.Context, sql string, args []any, into ...any) error {
	return t.pool.QueryRow(ctx, sql, args...).Scan(into...)
}

func (t serverTables) write(ctx context.Context, do func(func(string, ...any) error, func(string, any) error) error) error {
	return pgx.BeginFunc(ctx, t.pool, func(tx pgx.Tx) error {
		return do(
			func(sql string, args ...any) error { _, err := tx.Exec(ctx, sql, args...); return err },
			func(sql string, into any) error { return tx.QueryRow(ctx, sql).Scan(into) },
		)
	})
}

func (t serverTables) close() { t.pool.Close() }

// fileTables go through connections of the store, which closes them.
type fileTables struct{ db *sql.DB }

func (t fileTables) row(ctx context.Context, sql string, args []any, into ...any) error {
	return t.db.QueryRowContext(ctx, sql, args...).Scan(into...)
}

func (t fileTables) write(ctx context.Context, do func(func(string, ...any) error, func(string, any) error) error) error {
	tx, err := t.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	err = do(
		func(sql string, args ...any) error { _, err := tx.ExecContext(ctx, sql, args...); return err },
		func(sql string, into any) error { return tx.QueryRowContext(ctx, sql).Scan(into) },
	)
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func (t fileTables) close() {}
