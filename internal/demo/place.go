package demo

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/examples/payments"
	"github.com/pacht-queue/pacht/internal/sqltext"
	"github.com/pacht-queue/pacht/postgres"
	"github.com/pacht-queue/pacht/sqlite"
)

//go:embed sql/drop_schema.sql
var dropSchema string

// connections is how many each process uses for the business table on a server. With those
// of the queue, six processes must fit into the 100 that a server allows by default.
const connections = 4

// address says where the database of a run is: a file, or a schema on a server.
type address struct {
	File     string `json:"file,omitempty"`
	Postgres string `json:"postgres,omitempty"` // may hold a password: passed on by pipe, never shown
	Schema   string `json:"schema,omitempty"`
}

// place is the open database of a run: the queue and the payments beside it.
type place struct {
	at    address
	store interface {
		pacht.Store
		pacht.Migrator
	}
	book *payments.Book
	db   *sql.DB // the business tables' connections
}

func openPlace(ctx context.Context, at address) (*place, error) {
	if at.Postgres != "" {
		return openPostgres(ctx, at)
	}
	store, err := sqlite.Open(at.File, sqlite.Config{})
	if err != nil {
		return nil, err
	}
	p := &place{at: at, store: store, db: store.DB()}
	if p.book, err = payments.OnSQLite(store); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return p, nil
}

func openPostgres(ctx context.Context, at address) (*place, error) {
	cfg, err := pgx.ParseConfig(at.Postgres)
	if err != nil {
		return nil, err // pgx leaves the password out
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe // also works behind a pooler
	store, err := postgres.Open(ctx, at.Postgres, postgres.Config{Schema: at.Schema})
	if err != nil {
		return nil, err
	}
	db := stdlib.OpenDB(*cfg)
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	p := &place{at: at, store: store, db: db}
	if p.book, err = payments.OnPostgres(db, store, at.Schema); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// writable says whether the database takes writes now. A process that is stopped inside a
// write transaction on a SQLite file keeps everybody from writing, watchers included, and so
// could not be found out by its lease. On PostgreSQL it only locks rows of its own.
func (p *place) writable(ctx context.Context) bool {
	if p.at.Postgres != "" {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	tx, err := p.db.BeginTx(ctx, nil)
	return err == nil && tx.Rollback() == nil
}

// drop removes the schema; a file goes with its folder.
func (p *place) drop() error {
	if p.at.Postgres == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	name := pgx.Identifier{p.at.Schema}.Sanitize()
	if _, err := p.db.ExecContext(ctx, sqltext.Rename(sqltext.Strip(dropSchema), "pacht", name)); err != nil {
		return fmt.Errorf("drop the schema %s: %w", name, err)
	}
	return nil
}

func (p *place) close() error {
	err := p.store.Close()
	if p.at.Postgres != "" {
		err = errors.Join(err, p.db.Close())
	}
	return err
}
