package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync/atomic"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/migration"
	"github.com/pacht-queue/pacht/internal/sqltext"
	"github.com/pacht-queue/pacht/internal/sweeping"

	driversqlite "modernc.org/sqlite"
)

//go:embed sql/*.sql
var sqlFiles embed.FS

//go:embed migrations/*.sql
var migrationFiles embed.FS

// Defaults of Config.
const (
	DefaultPrefix   = "pacht_"
	DefaultLockWait = 10 * time.Second
)

// readers is how many connections read at the same time; factReaders, how many of them more
// there are for what has just been claimed.
const (
	readers     = 4
	factReaders = 2
)

// Config of a store; the zero value works.
type Config struct {
	// Prefix of the tables, [a-z][a-z0-9_]*, at most 40 bytes; "" = DefaultPrefix.
	Prefix string
	// Limits bound what an enqueue may store.
	Limits pacht.Limits
	// LockWait is how long a write waits for the file's write lock before it gives up with an
	// error that says who holds it; 0 = DefaultLockWait.
	LockWait time.Duration
	// KeepSync leaves the system call that commits wait for as this process has it. Otherwise
	// Open switches the driver, for the whole process, from fsync to fdatasync where there is
	// one, as SQLite has it on every Linux distribution: as durable, in half the time.
	KeepSync bool
}

// Store implements pacht.Store and pacht.Migrator on a SQLite file.
type Store struct {
	path   string
	limits pacht.Limits
	prefix string
	sql    statements
	steps  []migration.Step

	db     *sql.DB // the caller's: business tables and transactions
	read   *pool   // never waits for a writer
	facts  *pool   // the same, for short reads that must not wait for long ones
	single *sql.DB // the writer's only connection
	lock   *fileLock
	writer *writer
	floors floors
	pruned sweeping.Hints
	ready  atomic.Bool // the schema was found to fit
	closed atomic.Bool
	ears   ears
}

var (
	_ pacht.Store    = (*Store)(nil)
	_ pacht.Migrator = (*Store)(nil)

	prefixPattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)
)

// Open opens the file at path, and makes an empty one if there is none. It does not migrate:
// until MigrateUp has run, verbs answer *pacht.SchemaError. Close the store to end its
// goroutine and its connections.
func Open(path string, cfg Config) (*Store, error) {
	if cfg.Prefix == "" {
		cfg.Prefix = DefaultPrefix
	}
	if err := ValidPrefix(cfg.Prefix); err != nil {
		return nil, err
	}
	if cfg.LockWait == 0 {
		cfg.LockWait = DefaultLockWait
	}
	if cfg.LockWait < 0 {
		return nil, &pacht.InvalidError{Field: "lock wait", Value: cfg.LockWait.String(), Bound: "more than 0"}
	}
	abs, err := checkPath(path)
	if err != nil {
		return nil, err
	}
	if !cfg.KeepSync {
		// It fails only where the system has no fdatasync, and then nothing has changed.
		_, _ = driversqlite.Fdatasync(true)
	}
	s := &Store{path: abs, limits: cfg.Limits, prefix: cfg.Prefix, lock: newFileLock(abs, cfg.LockWait)}
	if err := sqltext.Fill(&s.sql, sqlFiles, "sql", DefaultPrefix, cfg.Prefix); err != nil {
		return nil, err
	}
	if s.steps, err = migration.Load(migrationFiles, "migrations"); err != nil {
		return nil, err
	}
	if err := s.connect(); err != nil {
		return nil, err
	}
	s.writer = startWriter(s)
	return s, nil
}

// checkPath refuses what SQLite would refuse with a riddle. It never opens the file: closing
// any descriptor of it would drop the locks that other connections of this process hold.
func checkPath(path string) (string, error) {
	if path == "" || path == ":memory:" {
		return "", &pacht.InvalidError{Field: "database file", Value: fmt.Sprintf("%q", path), Bound: "the path of a file: connections cannot share a database in memory"}
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("open %s: %w", path, err)
	}
	info, err := os.Stat(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if dir, err := os.Stat(filepath.Dir(abs)); err != nil || !dir.IsDir() {
			return "", fmt.Errorf("open %s: there is no folder %s", path, filepath.Dir(abs))
		}
	case err != nil:
		return "", fmt.Errorf("open %s: %w", path, err)
	case info.IsDir():
		return "", fmt.Errorf("open %s: it is a directory, want a SQLite file", path)
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("open %s: it is no regular file", path)
	}
	return abs, nil
}

func (s *Store) connect() error {
	plain, err := driversqlite.NewConnector(dataSource(s.path, false))
	if err != nil {
		return err
	}
	readOnly, err := driversqlite.NewConnector(dataSource(s.path, true))
	if err != nil {
		return err
	}
	s.db = sql.OpenDB(&connector{Connector: plain, lock: s.lock, turns: true})
	s.db.SetMaxIdleConns(readers)
	s.single = sql.OpenDB(&connector{Connector: plain, lock: s.lock})
	s.single.SetMaxOpenConns(1)
	reading := &connector{Connector: readOnly, lock: s.lock, retry: true}
	s.read = newPool(sql.OpenDB(reading), readers)
	s.facts = newPool(sql.OpenDB(reading), factReaders)

	// While the file is busy it waits for lock.wait; the rest is for a slow disk.
	ctx, cancel := context.WithTimeout(context.Background(), s.lock.wait+DefaultLockWait)
	defer cancel()
	if err := s.single.PingContext(ctx); err != nil {
		return errors.Join(openError(s.path, err), s.closePools())
	}
	return nil
}

// DB is for the caller's business tables: connections with the same settings as the store's
// own. Its transactions begin IMMEDIATE and queue for the file's write lock with the store's
// writes; give them to Tx, and keep them short. A single statement outside a transaction waits
// while another process writes; a script of several belongs in a transaction, or it may meet a
// busy file in the middle.
func (s *Store) DB() *sql.DB { return s.db }

// Close ends the writer and closes all connections, DB() included. Calls that are still
// waiting get an error; nothing of them was written.
func (s *Store) Close() error {
	s.closed.Store(true)
	s.ears.close()
	s.writer.close()
	return s.closePools()
}

func (s *Store) closePools() error {
	return errors.Join(s.read.Close(), s.facts.Close(), s.single.Close(), s.db.Close())
}
