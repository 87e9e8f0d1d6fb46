package postgres

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/pacht-queue/pacht"
)

// opened is a caller's transaction with a business row in it: what belongs in it, how to run a
// statement and how to commit it.
type opened struct {
	tx     pacht.Tx
	exec   func(string) error
	commit func() error
}

// anyTx opens transactions by pgx and by database/sql.
func anyTx(t *testing.T) (*Store, map[string]func(*testing.T) opened, func() string) {
	s, pool := newStore(t)
	execute(t, pool, "CREATE TABLE business (note text)")
	db := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { _ = db.Close() })
	byPgx := func(level pgx.TxIsoLevel, savepoint bool) func(*testing.T) opened {
		return func(t *testing.T) opened {
			outer, err := pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: level})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = outer.Rollback(context.Background()) })
			o := opened{
				tx:     s.Tx(outer),
				exec:   func(q string) error { _, err := outer.Exec(t.Context(), q); return err },
				commit: func() error { return outer.Commit(t.Context()) },
			}
			if savepoint {
				inner, err := outer.Begin(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				o.tx = s.Tx(inner)
				o.commit = func() error {
					_ = inner.Rollback(t.Context()) // its caller ignores the error and goes on
					return outer.Commit(t.Context())
				}
			}
			return o
		}
	}
	bySQL := func(opts *sql.TxOptions, savepoint bool) func(*testing.T) opened {
		return func(t *testing.T) opened {
			tx, err := db.BeginTx(context.Background(), opts) // which no context ends
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = tx.Rollback() })
			o := opened{tx: s.SQLTx(tx), exec: func(q string) error { _, err := tx.Exec(q); return err }, commit: tx.Commit}
			if savepoint {
				if err := o.exec("SAVEPOINT inside"); err != nil {
					t.Fatal(err)
				}
				o.commit = func() error {
					_ = o.exec("ROLLBACK TO SAVEPOINT inside")
					return tx.Commit()
				}
			}
			return o
		}
	}
	rows := func() string { return value(t, pool, "SELECT count(*) FROM business") }
	return s, map[string]func(*testing.T) opened{
		"pgx":                       byPgx(pgx.ReadCommitted, false),
		"pgx serializable":          byPgx(pgx.Serializable, false),
		"pgx savepoint":             byPgx(pgx.ReadCommitted, true),
		"database/sql":              bySQL(nil, false),
		"database/sql serializable": bySQL(&sql.TxOptions{Isolation: sql.LevelSerializable}, false),
		"database/sql savepoint":    bySQL(nil, true),
	}, rows
}

// R4: a handler learns of its lost lease by a cancelled context, with which nothing is sent.
func TestNoErrorOfAFencedCallLeavesATransactionThatCanBeCommitted(t *testing.T) {
	s, opens, rows := anyTx(t)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	settle := func(ctx context.Context, tx pacht.Tx, ref pacht.Ref) error {
		return tx.SettleTx(ctx, pacht.Settlement{Ref: ref, Outcome: pacht.OutcomeCompleted})
	}
	decided := pacht.Decision{Reference: "p1", Class: "c", Status: pacht.BreakHealed, By: "me", Reason: "test"}
	calls := map[string]struct {
		before string
		call   func(pacht.Tx, pacht.Ref) error
	}{
		"settle, cancelled": {"", func(tx pacht.Tx, ref pacht.Ref) error { return settle(cancelled, tx, ref) }},
		"step, cancelled":   {"", func(tx pacht.Tx, ref pacht.Ref) error { return tx.SetStepTx(cancelled, ref, "a", nil) }},
		"settle, invalid": {"", func(tx pacht.Tx, ref pacht.Ref) error {
			return tx.SettleTx(t.Context(), pacht.Settlement{Ref: ref, Outcome: "no outcome"})
		}},
		"step, invalid": {"", func(tx pacht.Tx, ref pacht.Ref) error { return tx.SetStepTx(t.Context(), ref, "", nil) }},
		"resolve, cancelled": {"", func(tx pacht.Tx, ref pacht.Ref) error {
			return tx.ResolveTx(cancelled, ref, pacht.Resolution{Status: pacht.Completed}, pacht.Act{By: "me", Reason: "test"})
		}},
		"resolve, held": {"", func(tx pacht.Tx, ref pacht.Ref) error {
			return tx.ResolveTx(t.Context(), ref, pacht.Resolution{Status: pacht.Completed}, pacht.Act{By: "me", Reason: "test"})
		}},
		"decide, cancelled": {"", func(tx pacht.Tx, _ pacht.Ref) error { return tx.DecideTx(cancelled, decided) }},
		"decide, invalid":   {"", func(tx pacht.Tx, _ pacht.Ref) error { return tx.DecideTx(t.Context(), pacht.Decision{}) }},
		"decide, refused": {"", func(tx pacht.Tx, _ pacht.Ref) error {
			stale := decided
			stale.Rev = 9
			return tx.DecideTx(t.Context(), stale)
		}},
		"decide, no right": {"SET LOCAL ROLE powerless", func(tx pacht.Tx, _ pacht.Ref) error { return tx.DecideTx(t.Context(), decided) }},
		"settle, no right": {"SET LOCAL ROLE powerless", func(tx pacht.Tx, ref pacht.Ref) error { return settle(t.Context(), tx, ref) }},
		"settle, lost, no right to look": {"SET LOCAL ROLE half", func(tx pacht.Tx, ref pacht.Ref) error {
			return settle(t.Context(), tx, pacht.Ref{Job: ref.Job, Token: ref.Token + 1})
		}},
	}
	execute(t, s.pool, `CREATE ROLE powerless; CREATE ROLE half; GRANT USAGE ON SCHEMA pacht TO half;
		GRANT ALL ON pacht.leases, pacht.attempts TO half`)
	defer execute(t, s.pool, "DROP OWNED BY half; DROP ROLE powerless; DROP ROLE half")
	job := held(t, s)
	for kind, open := range opens {
		for what, c := range calls {
			t.Run(kind+", "+what, func(t *testing.T) {
				o := open(t)
				if err := o.exec("INSERT INTO business VALUES ('twice')"); err != nil {
					t.Fatal(err)
				}
				if c.before != "" {
					if err := o.exec(c.before); err != nil {
						t.Fatal(err)
					}
				}
				if err := c.call(o.tx, job.Ref()); err == nil {
					t.Error("no error")
				}
				if err := o.exec("INSERT INTO business VALUES ('after')"); err == nil {
					t.Error("the broken transaction still takes statements")
				}
				if err := o.commit(); err == nil {
					t.Error("the broken transaction was committed")
				}
				if n := rows(); n != "0" {
					t.Errorf("%s business rows", n)
				}
			})
		}
	}
	complete(t, s, []pacht.JobInfo{job})
}

func TestTransactionWithRowsLeftOpenIsEndedWithALostLease(t *testing.T) { // R4: no statement gets through
	s, pool := newStore(t)
	execute(t, pool, "CREATE TABLE business (note text)")
	job := held(t, s)
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	byPgx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer byPgx.Rollback(context.Background())
	bySQL, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	const insert, look = "INSERT INTO business VALUES ('twice')", "SELECT generate_series(1, 9)"
	if _, err := byPgx.Exec(t.Context(), insert); err != nil {
		t.Fatal(err)
	}
	if _, err := bySQL.Exec(insert); err != nil {
		t.Fatal(err)
	}
	rows, err := byPgx.Query(t.Context(), look)
	if err != nil {
		t.Fatal(err)
	}
	sqlRows, err := bySQL.Query(look)
	if err != nil || !sqlRows.Next() {
		t.Fatal(err)
	}
	one := pacht.Settlement{Ref: job.Ref(), Outcome: pacht.OutcomeCompleted}
	if err := errors.Join(s.Tx(byPgx).SettleTx(t.Context(), one), sqlRows.Err()); err == nil {
		t.Error("pgx: no error")
	}
	if err := s.SQLTx(bySQL).SettleTx(t.Context(), one); err == nil {
		t.Error("database/sql: no error")
	}
	rows.Close()
	_ = sqlRows.Close()
	if byPgx.Commit(t.Context()) == nil || bySQL.Commit() == nil {
		t.Error("the transaction was committed")
	}
	if n := value(t, pool, "SELECT count(*) FROM business"); n != "0" {
		t.Errorf("%s business rows", n)
	}
}

func TestDeadlockInACallersTransactionAsksToRepeatIt(t *testing.T) { // S060
	s, pool := newStore(t)
	a, b := held(t, s), held(t, s)
	first, second := opened{}, opened{}
	for _, o := range []*opened{&first, &second} {
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback(context.Background())
		*o = opened{tx: s.Tx(tx), commit: func() error { return tx.Rollback(context.Background()) }}
	}
	settle := func(o opened, j pacht.JobInfo) error {
		return o.tx.SettleTx(t.Context(), pacht.Settlement{Ref: j.Ref(), Outcome: pacht.OutcomeCompleted})
	}
	if err := errors.Join(settle(first, a), settle(second, b)); err != nil {
		t.Fatal(err)
	}
	errs := make(chan error, 2)
	go func() { errs <- settle(first, b) }()
	go func() { errs <- settle(second, a) }()
	if err := errors.Join(<-errs, <-errs); !errors.Is(err, pacht.ErrSerialization) {
		t.Errorf("deadlock: %v", err)
	}
	if err := errors.Join(first.commit(), second.commit()); err != nil {
		t.Fatal(err)
	}
	complete(t, s, []pacht.JobInfo{a, b})
}
