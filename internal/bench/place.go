package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/bench/meter"
	"github.com/pacht-queue/pacht/internal/database"
	"github.com/pacht-queue/pacht/internal/pgserver"
	"github.com/pacht-queue/pacht/sqlite"
)

// ServerSettings are those of a server in production on a small machine: every commit is
// durable. Whoever compares with something else uses the same.
var ServerSettings = []string{
	"fsync=on", "synchronous_commit=on", "full_page_writes=on",
	"shared_buffers=512MB", "max_wal_size=4GB", "checkpoint_timeout=15min",
}

// Where says on which database to measure.
type Where struct {
	// URL is a database of the user's; "" makes a fresh one, which is removed at the end: a
	// SQLite file, or with Postgres a private server.
	URL      string
	Postgres bool
	// Force runs beside unfinished jobs in the user's database, and first deletes what a
	// benchmark that was killed has left there.
	Force bool
	// Connections is the size of the store's pool on PostgreSQL; 0 = the driver's default.
	Connections int
	// Log gets the worker's warnings; nil = none.
	Log *slog.Logger
}

// Place is an open database to measure on.
type Place struct {
	where   Where
	url     string
	store   database.Database
	tables  tables
	schema  string // quoted, with a dot; or the prefix
	sql     queries
	serve   serverQueries
	server  *pgserver.Server // our own
	conn    *pgx.Conn        // for the meter, on PostgreSQL
	folder  string           // of our own file
	base    int64            // the newest job when we came
	log     *slog.Logger
	cleanup []func() error // last first

	closeStore func() error // may be called early
}

// Open makes or opens the database. A user's database that holds unfinished jobs is refused.
func Open(ctx context.Context, where Where) (_ *Place, err error) {
	if where.URL != "" && where.Postgres {
		return nil, &pacht.InvalidError{Field: "postgres", Value: "together with a database's URL", Bound: "one of the two"}
	}
	p := &Place{where: where, url: where.URL, log: where.Log}
	if p.log == nil {
		p.log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.release())
		}
	}()
	if err := p.make(ctx); err != nil {
		return nil, err
	}
	if p.store, err = database.OpenExisting(ctx, p.pooled()); err != nil {
		return nil, err
	}
	p.closeStore = sync.OnceValue(p.store.Close)
	p.cleanup = append(p.cleanup, p.closeStore)
	if where.URL == "" {
		if _, err := p.store.MigrateUp(ctx); err != nil {
			return nil, err
		}
	}
	if found, wanted, err := p.store.Schema(ctx); err != nil {
		return nil, err
	} else if found != wanted {
		return nil, &pacht.SchemaError{Found: found, Wanted: wanted}
	}
	if err := p.look(ctx); err != nil {
		return nil, err
	}
	return p, p.admit(ctx)
}

// make sets up what is ours.
func (p *Place) make(ctx context.Context) (err error) {
	switch {
	case p.where.Postgres:
		if p.server, err = pgserver.Start(ctx, ServerSettings...); err != nil {
			return err
		}
		p.cleanup = append(p.cleanup, p.server.Remove)
		p.url, err = p.server.Create(ctx, "bench")
	case p.url == "":
		if p.folder, err = os.MkdirTemp("", "pacht-bench-"); err != nil {
			return err
		}
		p.cleanup = append(p.cleanup, func() error { return os.RemoveAll(p.folder) })
		file := filepath.Join(p.folder, "bench.db")
		p.url = "sqlite:" + file
		err = os.WriteFile(file, nil, 0o600)
	}
	return err
}

// pooled is the URL with the size of the pool, unless the user's says one.
func (p *Place) pooled() string {
	u, err := url.Parse(p.url)
	if p.where.Connections == 0 || database.IsSQLite(p.url) || err != nil || u.Query().Has("pool_max_conns") {
		return p.url
	}
	q := u.Query()
	q.Set("pool_max_conns", strconv.Itoa(p.where.Connections))
	u.RawQuery = q.Encode()
	return u.String()
}

// look opens a way to the tables beside the store.
func (p *Place) look(ctx context.Context) error {
	at, err := database.Locate(p.url)
	if err != nil {
		return err
	}
	if file, ok := p.store.(*sqlite.Store); ok {
		p.schema, p.tables = at.Prefix, fileTables{file.DB()}
		return p.sql.onSQLite(at.Prefix)
	}
	p.schema = pgx.Identifier{at.Schema}.Sanitize() + "."
	if err := errors.Join(p.sql.onPostgres(p.schema), p.serve.load(p.schema)); err != nil {
		return err
	}
	cfg, err := pgxpool.ParseConfig(at.URL)
	if err != nil {
		return fmt.Errorf("read the URL of the database: %w", err)
	}
	cfg.MaxConns = 2
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec // works behind a pooler
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return fmt.Errorf("open PostgreSQL: %w", err)
	}
	p.tables = serverTables{pool}
	p.cleanup = append(p.cleanup, func() error { pool.Close(); return nil })
	if p.conn, err = pgx.ConnectConfig(ctx, cfg.ConnConfig); err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	p.cleanup = append(p.cleanup, func() error { return p.conn.Close(context.WithoutCancel(ctx)) })
	return nil
}

// admit refuses a database in use, and remembers what was there before us.
func (p *Place) admit(ctx context.Context) (err error) {
	if p.where.URL == "" {
		return nil
	}
	var unfinished int64
	if err := p.tables.row(ctx, p.sql.Unfinished, nil, &unfinished); err != nil {
		return fmt.Errorf("count unfinished jobs: %w", err)
	}
	if unfinished > 0 && !p.where.Force {
		return &pacht.InvalidError{
			Field: "db", Value: fmt.Sprintf("%s with %d unfinished jobs", database.Describe(p.url), unfinished),
			Bound: "a database without work: a benchmark must not slow it down. Leave --db out to measure on a fresh one, or say --force",
		}
	}
	if p.where.Force { // a benchmark that was killed has left rows that would be taken for ours
		if err := p.forget(ctx); err != nil {
			return err
		}
	}
	p.base, err = p.newest(ctx)
	return err
}

// Close removes what is ours: the server, the file, or our rows in the user's database.
func (p *Place) Close(ctx context.Context) error {
	var err error
	if p.where.URL != "" {
		err = p.forget(context.WithoutCancel(ctx))
	}
	return errors.Join(err, p.release())
}

func (p *Place) release() (err error) {
	for len(p.cleanup) > 0 {
		last := len(p.cleanup) - 1
		err = errors.Join(err, p.cleanup[last]())
		p.cleanup = p.cleanup[:last]
	}
	return err
}

// forget deletes the benchmark's own rows.
func (p *Place) forget(ctx context.Context) error {
	err := p.tables.write(ctx, func(run func(string, ...any) error, _ func(string, any) error) error {
		for _, q := range []string{p.sql.ForgetLeases, p.sql.ForgetAttempts, p.sql.ForgetReports, p.sql.ForgetJobs} {
			if err := run(q, p.base); err != nil {
				return err
			}
		}
		return run(p.sql.ForgetWorkers)
	})
	if err != nil {
		return fmt.Errorf("delete the benchmark's jobs (queue %q, newer than job %d): %w", queue, p.base, err)
	}
	return nil
}

func (p *Place) onPostgres() bool { return p.conn != nil }

// needsPostgres refuses what only PostgreSQL has.
func (p *Place) needsPostgres(flag string) error {
	if p.onPostgres() {
		return nil
	}
	return &pacht.InvalidError{Field: flag, Value: "on SQLite", Bound: "PostgreSQL only: --postgres, or --db postgres://..."}
}

// needsOwnServer refuses what changes more than rows.
func (p *Place) needsOwnServer(flag string) error {
	if p.server != nil {
		return nil
	}
	return &pacht.InvalidError{Field: flag, Value: "on a database that is not the benchmark's own server", Bound: "with --postgres only"}
}

func (p *Place) meter(ctx context.Context) (*meter.Meter, error) {
	s := meter.Subject{Conn: p.conn}
	if p.server != nil {
		s.ServerPID = p.server.PID()
	}
	return meter.Start(ctx, s)
}

func (p *Place) newest(ctx context.Context) (id int64, err error) {
	if err := p.tables.row(ctx, p.sql.Newest, nil, &id); err != nil {
		return 0, fmt.Errorf("look for the newest job: %w", err)
	}
	return id, nil
}

// settings says what the database is.
func (p *Place) settings(ctx context.Context) (text string, err error) {
	if err := p.tables.row(ctx, p.sql.Settings, nil, &text); err != nil {
		return "", fmt.Errorf("read the settings of the database: %w", err)
	}
	return strings.TrimSpace(text), nil
}
