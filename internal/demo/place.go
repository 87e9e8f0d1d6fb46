package demo

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pacht-queue/pacht/examples/payments"
	"github.com/pacht-queue/pacht/internal/sqltext"
)

//go:embed sql/drop_schema.sql
var dropSchema string

// connections is how many each process uses for the business tables on a server. With those
// of the queue, six processes must fit into the 100 that a server allows by default.
const connections = 4

// place is the open database of a run: the queue and the payments beside it.
type place struct {
	*payments.Place
	at payments.Address
}

func openPlace(ctx context.Context, at payments.Address) (*place, error) {
	at.Connections = connections
	p, err := payments.Open(ctx, at)
	if err != nil {
		return nil, err
	}
	p.Book.Queue = queue
	return &place{Place: p, at: at}, nil
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
	tx, err := p.DB.BeginTx(ctx, nil)
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
	if _, err := p.DB.ExecContext(ctx, sqltext.Rename(sqltext.Strip(dropSchema), "pacht", name)); err != nil {
		return fmt.Errorf("drop the schema %s: %w", name, err)
	}
	return nil
}
