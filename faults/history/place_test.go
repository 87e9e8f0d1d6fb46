package history

import (
	"context"
	"database/sql"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/faults/crew"
	"github.com/pacht-queue/pacht/faults/lab"
	"github.com/pacht-queue/pacht/internal/netfault"
	"github.com/pacht-queue/pacht/internal/pgtest"
	"github.com/pacht-queue/pacht/sqlite"
)

func TestMain(m *testing.M) { lab.Main(m) }

// handle is one store on a database, with connections of its own.
type handle struct {
	store interface {
		pacht.Store
		pacht.Migrator
		Age(ctx context.Context, d time.Duration) error
	}
	begin Begin
	exec  func(ctx context.Context, query string) (int64, error)
	table func(name string) string
}

// place is one database, that any number of stores open.
type place struct {
	name string
	url  string // of PostgreSQL
	path string // of SQLite
}

// places are the databases that every test runs on.
var places = []string{"postgres", "sqlite"}

// freshPlace makes an empty, migrated database.
func freshPlace(t testing.TB, name string) *place {
	t.Helper()
	p := &place{name: name}
	if name == "postgres" {
		p.url = pgtest.Database(t)
	} else {
		p.path = filepath.Join(t.TempDir(), "pacht.db")
	}
	if _, err := p.open(t).store.MigrateUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

// open opens the database once more, as another process would.
func (p *place) open(t testing.TB) handle {
	t.Helper()
	if p.name == "postgres" {
		return openPostgres(t, p.url)
	}
	s, err := sqlite.Open(p.path, sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return handle{store: s,
		begin: func(ctx context.Context) (Txn, error) {
			tx, err := s.DB().BeginTx(ctx, nil)
			if err != nil {
				return nil, err
			}
			return sqliteTxn{Tx: s.Tx(tx), tx: tx}, nil
		},
		exec: func(ctx context.Context, query string) (int64, error) {
			done, err := s.DB().ExecContext(ctx, query)
			if err != nil {
				return 0, err
			}
			return done.RowsAffected()
		},
		table: func(name string) string { return sqlite.DefaultPrefix + name },
	}
}

// openShaken opens a database of PostgreSQL through a proxy that breaks connections.
func (p *place) openShaken(t testing.TB) (handle, *netfault.Proxy) {
	t.Helper()
	u, err := url.Parse(p.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := netfault.New(t, u.Host)
	u.Host = proxy.Addr()
	return openPostgres(t, u.String()), proxy
}

func openPostgres(t testing.TB, url string) handle {
	t.Helper()
	pool := crew.Pool(t, url, 3)
	s := crew.On(t, pool)
	return handle{store: s,
		begin: func(ctx context.Context) (Txn, error) {
			tx, err := pool.Begin(ctx)
			if err != nil {
				return nil, err
			}
			return pgTxn{Tx: s.Tx(tx), tx: tx}, nil
		},
		exec: func(ctx context.Context, query string) (int64, error) {
			tag, err := pool.Exec(ctx, query, pgx.QueryExecModeSimpleProtocol)
			return tag.RowsAffected(), err
		},
		table: func(name string) string { return "pacht." + name },
	}
}

type pgTxn struct {
	pacht.Tx
	tx pgx.Tx
}

func (t pgTxn) Commit(ctx context.Context) error   { return t.tx.Commit(ctx) }
func (t pgTxn) Rollback(ctx context.Context) error { return t.tx.Rollback(ctx) }

type sqliteTxn struct {
	pacht.Tx
	tx *sql.Tx
}

func (t sqliteTxn) Commit(context.Context) error   { return t.tx.Commit() }
func (t sqliteTxn) Rollback(context.Context) error { return t.tx.Rollback() }
