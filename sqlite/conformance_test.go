package sqlite

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/storetest"
)

// TestConformance runs the suite of promises that both stores keep.
func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Backend {
		path := filepath.Join(t.TempDir(), "pacht.db")
		s := openStore(t, path, Config{}, true)
		// The caller's own connections, which the store knows nothing of, as another program's.
		outside := openStore(t, path, Config{}, false).DB()
		return storetest.Backend{
			Store:  s,
			Reopen: func(t *testing.T) storetest.Store { return openStore(t, path, Config{}, false) },
			Begin: func(ctx context.Context) (storetest.Txn, error) {
				tx, err := s.DB().BeginTx(ctx, nil)
				if err != nil {
					return nil, err
				}
				return txn{Tx: s.Tx(tx), tx: tx}, nil
			},
			Exec: func(ctx context.Context, query string) (int64, error) {
				res, err := outside.ExecContext(ctx, query)
				if err != nil {
					return 0, err
				}
				return res.RowsAffected()
			},
			Query: func(ctx context.Context, query string) ([][]string, error) { return texts(ctx, outside, query) },
			Table: func(name string) string { return DefaultPrefix + name },
		}
	})
}

type txn struct {
	pacht.Tx
	tx *sql.Tx
}

func (t txn) Exec(ctx context.Context, query string) error {
	_, err := t.tx.ExecContext(ctx, query)
	return err
}
func (t txn) Commit(context.Context) error   { return t.tx.Commit() }
func (t txn) Rollback(context.Context) error { return t.tx.Rollback() }

// texts reads rows as text.
func texts(ctx context.Context, r runner, query string, args ...any) (list [][]string, err error) {
	err = each(ctx, r, query, args, func(rows *sql.Rows) error {
		columns, err := rows.Columns()
		if err != nil {
			return err
		}
		values := make([]sql.NullString, len(columns))
		dest := make([]any, len(columns))
		for i := range values {
			dest[i] = &values[i]
		}
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		row := make([]string, len(columns))
		for i, v := range values {
			if row[i] = v.String; !v.Valid {
				row[i] = "NULL"
			}
		}
		list = append(list, row)
		return nil
	})
	return list, err
}
