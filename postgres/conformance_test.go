package postgres

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/pgtest"
	"github.com/pacht-queue/pacht/storetest"
)

// badPlans makes each session plan as stale statistics would: nested loops wherever a join
// allows them, nothing kept in between. Without jit, which would compile each for seconds.
var badPlans = []string{"enable_hashjoin=off", "enable_mergejoin=off", "enable_material=off", "enable_memoize=off", "enable_sort=off", "jit=off"}

// TestConformance runs the suite of promises that both stores keep.
func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Backend {
		url := pgtest.Database(t)
		// The suite checks the rules itself, and breaks some on purpose.
		s, pool := openAt(t, url, Config{})
		// The caller's own connections, which the store knows nothing of, as another program's.
		outside := poolAt(t, url)
		return storetest.Backend{
			Store: s,
			Reopen: func(t *testing.T) storetest.Store {
				again, err := New(poolAt(t, url), Config{})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = again.Close() })
				return again
			},
			Begin: func(ctx context.Context) (storetest.Txn, error) {
				tx, err := pool.Begin(ctx)
				if err != nil {
					return nil, err
				}
				return txn{Tx: s.Tx(tx), tx: tx}, nil
			},
			Exec: func(ctx context.Context, sql string) (int64, error) {
				tag, err := outside.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol)
				return tag.RowsAffected(), err
			},
			Query: func(ctx context.Context, sql string) ([][]string, error) {
				rows, err := outside.Query(ctx, sql, pgx.QueryExecModeSimpleProtocol)
				if err != nil {
					return nil, err
				}
				return pgx.CollectRows(rows, rawRow)
			},
			Table: func(name string) string { return `"pacht".` + name },
			ForceBadPlans: func(t *testing.T) storetest.Store {
				bad, _ := openAt(t, setting(t, url, badPlans...), Config{})
				return bad
			},
		}
	})
}

type txn struct {
	pacht.Tx
	tx pgx.Tx
}

func (t txn) Exec(ctx context.Context, sql string) error {
	_, err := t.tx.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol)
	return err
}
func (t txn) Commit(ctx context.Context) error   { return t.tx.Commit(ctx) }
func (t txn) Rollback(ctx context.Context) error { return t.tx.Rollback(ctx) }

// rawRow reads a row as the text that the server sent.
func rawRow(row pgx.CollectableRow) ([]string, error) {
	raw := row.RawValues()
	texts := make([]string, len(raw))
	for i, v := range raw {
		if texts[i] = string(v); v == nil {
			texts[i] = "NULL"
		}
	}
	return texts, nil
}
