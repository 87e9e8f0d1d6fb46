package lab

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/database"
	"github.com/pacht-queue/pacht/postgres"
	"github.com/pacht-queue/pacht/sqlite"
)

// business is the caller's side of a transaction: a table without any key, so that a job that
// is booked twice shows.
type business interface {
	complete(ctx context.Context, job *pacht.Job[Work]) error
	close()
}

// openBusiness opens it beside the store, as a service would.
func openBusiness(ctx context.Context, db database.Database, url string) (business, error) {
	switch s := db.(type) {
	case *sqlite.Store:
		return onFile{s}, nil
	case *postgres.Store:
		at, err := database.Locate(url)
		if err != nil {
			return nil, err
		}
		cfg, err := pgxpool.ParseConfig(at.URL)
		if err != nil {
			return nil, err
		}
		cfg.MaxConns = 2 // a connection costs the server more than all that these do with it
		pool, err := pgxpool.NewWithConfig(ctx, cfg)
		if err != nil {
			return nil, err
		}
		return onServer{s, pool}, nil
	}
	return nil, fmt.Errorf("no business transactions on %T", db)
}

func booking(ref pacht.Ref) string {
	return fmt.Sprintf(`INSERT INTO lab_books (job_id, token) VALUES (%d, %d)`, ref.Job, ref.Token)
}

type onServer struct {
	store *postgres.Store
	pool  *pgxpool.Pool
}

func (b onServer) close() { b.pool.Close() }

func (b onServer) complete(ctx context.Context, job *pacht.Job[Work]) error {
	return pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, booking(job.Ref())); err != nil {
			return err
		}
		return job.CompleteTx(ctx, b.store.Tx(tx))
	})
}

type onFile struct{ store *sqlite.Store }

func (onFile) close() {}

func (b onFile) complete(ctx context.Context, job *pacht.Job[Work]) (err error) {
	tx, err := b.store.DB().BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() {
		if undo := tx.Rollback(); err != nil && !errors.Is(undo, sql.ErrTxDone) {
			err = errors.Join(err, undo)
		}
	}()
	if _, err := tx.ExecContext(ctx, booking(job.Ref())); err != nil {
		return err
	}
	if err := job.CompleteTx(ctx, b.store.Tx(tx)); err != nil {
		return err
	}
	return tx.Commit()
}
