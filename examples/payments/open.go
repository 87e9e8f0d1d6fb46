package payments

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/postgres"
	"github.com/pacht-queue/pacht/sqlite"
)

// Address says where payments and their queue are: a file, or a schema on a server.
type Address struct {
	File     string `json:"file,omitempty"`
	Postgres string `json:"postgres,omitempty"` // may hold a password: never shown
	Schema   string `json:"schema,omitempty"`   // on the server; "" = pacht
	// Connections for the business tables on a server; 0 = 8.
	Connections int `json:"connections,omitempty"`
}

// Place is an open database: the queue, and the payments beside it.
type Place struct {
	Store interface {
		pacht.Store
		pacht.Migrator
	}
	Book *Book
	DB   *sql.DB // of the business tables

	own bool // DB is not the store's
}

// Open opens the database at an address. It makes no tables.
func Open(ctx context.Context, at Address) (*Place, error) {
	if at.Postgres != "" {
		return openPostgres(ctx, at)
	}
	store, err := sqlite.Open(at.File, sqlite.Config{})
	if err != nil {
		return nil, err
	}
	p := &Place{Store: store, DB: store.DB()}
	if p.Book, err = OnSQLite(store); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func openPostgres(ctx context.Context, at Address) (*Place, error) {
	cfg, err := pgx.ParseConfig(at.Postgres)
	if err != nil {
		return nil, err // pgx leaves the password out
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe // also works behind a pooler
	if at.Schema == "" {
		at.Schema = "pacht"
	}
	store, err := postgres.Open(ctx, at.Postgres, postgres.Config{Schema: at.Schema})
	if err != nil {
		return nil, err
	}
	if at.Connections == 0 {
		at.Connections = 8
	}
	p := &Place{Store: store, DB: stdlib.OpenDB(*cfg), own: true}
	p.DB.SetMaxOpenConns(at.Connections)
	p.DB.SetMaxIdleConns(at.Connections)
	if p.Book, err = OnPostgres(p.DB, store, at.Schema); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Migrate brings the queue's tables up, and makes the business tables if they are not there.
func (p *Place) Migrate(ctx context.Context) error {
	if _, err := p.Store.MigrateUp(ctx); err != nil {
		return err
	}
	if _, err := p.Book.Payments(ctx, "", 1); err == nil {
		return nil
	}
	err := p.Book.CreateTables(ctx)
	if err == nil {
		return nil
	}
	// Another process that starts at the same moment may have been first.
	if _, missing := p.Book.Payments(ctx, "", 1); missing != nil {
		return err
	}
	return nil
}

// Close ends all connections.
func (p *Place) Close() error {
	err := p.Store.Close()
	if p.own {
		err = errors.Join(err, p.DB.Close())
	}
	return err
}
