package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/migration"
	"github.com/pacht-queue/pacht/internal/sweeping"
)

// Config is how a Store works. The zero value is good.
type Config struct {
	// Schema holds the tables: any name of 1 to 63 bytes, quoted as it is. "" = "pacht".
	Schema string
	// Limits bound what is stored.
	Limits pacht.Limits
	// StatementTimeout bounds each statement of the store's own transactions on the server,
	// 100ms to 1h; 0 = 30 s. Statements in a caller's transaction have the caller's bounds.
	StatementTimeout time.Duration
}

// Store implements pacht.Store and pacht.Migrator.
type Store struct {
	pool    *pgxpool.Pool // the caller's
	own     *pgxpool.Pool // claim, settle, expire, steps, beats
	renewal *pgxpool.Pool // one connection, for renewals alone
	opened  bool          // pool was opened by Open
	closed  atomic.Bool

	schema    string
	channel   string // of notices
	quoted    string // schema, quoted, with its dot
	limits    pacht.Limits
	timeout   time.Duration
	mode      pgx.QueryExecMode // of single statements on the caller's connections
	sql       queries
	settleTx  string // settle without SKIP LOCKED
	resolveTx string // resolve likewise
	steps     []migration.Step
	fits      atomic.Bool // the tables have this program's version
	// unprepared says that the caller's pool prepares statements in vain.
	unprepared atomic.Bool
	prober     *prober
	lineage    *lineage
	floors     floors
	doubts     doubts
	gateless   atomic.Int64  // claims go without turns until then, in nanoseconds since 1970
	turns      chan struct{} // claims that wait for theirs, on connections of their own: one is left for all else
	pruned     sweeping.Hints
	group      group
	listens    listens
}

const (
	defaultSchema  = "pacht"
	defaultTimeout = 30 * time.Second
	lockTimeout    = 5 * time.Second // of acts by hand; a busy row is an answer, not a hang
	ownConns       = 3
	pingAfter      = 5 * time.Second // idle, before a connection is tried out
)

// New makes a store on the caller's pool, which it never closes. It opens no connection yet.
func New(pool *pgxpool.Pool, cfg Config) (*Store, error) {
	return makeStore(pool, cfg, &prober{}, &lineage{})
}

func makeStore(pool *pgxpool.Pool, cfg Config, p *prober, l *lineage) (*Store, error) {
	if pool == nil {
		return nil, &pacht.InvalidError{Field: "pool", Value: "nil", Bound: "an open pool"}
	}
	s := &Store{pool: pool, schema: cfg.Schema, limits: cfg.Limits, timeout: cfg.StatementTimeout, prober: p, lineage: l}
	if err := s.configure(); err != nil {
		return nil, err
	}
	s.doubts.numbered()
	s.turns = make(chan struct{}, ownConns-1)
	var err error
	if s.own, err = s.privatePool(ownConns); err != nil {
		return nil, err
	}
	if s.renewal, err = s.privatePool(1); err != nil {
		s.own.Close()
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moved = s.giveUpConnections
	return s, nil
}

// giveUpConnections closes the store's own connections, those in use when they come back.
func (s *Store) giveUpConnections() {
	s.own.Reset()
	s.renewal.Reset()
	if s.opened {
		s.pool.Reset()
	}
}

func (s *Store) configure() error {
	if s.schema == "" {
		s.schema = defaultSchema
	}
	// The migrations quote the name with dollars once.
	if len(s.schema) > 63 || !utf8.ValidString(s.schema) || strings.ContainsRune(s.schema, 0) || strings.Contains(s.schema, "$pacht") {
		return &pacht.InvalidError{Field: "schema", Value: fmt.Sprintf("%q", s.schema), Bound: "1 to 63 bytes of UTF-8 without NUL and without $pacht"}
	}
	if s.timeout == 0 {
		s.timeout = defaultTimeout
	}
	if s.timeout < 100*time.Millisecond || s.timeout > time.Hour {
		return &pacht.InvalidError{Field: "statement timeout", Value: s.timeout.String(), Bound: "100ms to 1h"}
	}
	s.channel = channelOf(s.schema)
	s.listens.open()
	s.group.configure(s.pool.Config())
	s.quoted = pgx.Identifier{s.schema}.Sanitize() + "."
	conn := s.pool.Config().ConnConfig
	s.prober.wanted = s.prober.wanted || conn.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement
	s.mode = poolerProof(conn)
	if err := s.sql.load(s.quoted); err != nil {
		return err
	}
	s.settleTx = strings.Replace(s.sql.Settle, " SKIP LOCKED", "", 1)
	s.resolveTx = strings.Replace(s.sql.Resolve, " SKIP LOCKED", "", 1)
	var err error
	s.steps, err = migration.Load(migrationFiles, "migrations")
	return err
}

// poolerProof is the mode for the store's statements: one that leaves no prepared statement
// in the session, unless the caller chose one that does not either.
func poolerProof(conn *pgx.ConnConfig) pgx.QueryExecMode {
	switch mode := conn.DefaultQueryExecMode; {
	case mode == pgx.QueryExecModeExec || mode == pgx.QueryExecModeSimpleProtocol:
		return mode
	case conn.DescriptionCacheCapacity < 1:
		return pgx.QueryExecModeExec
	}
	return pgx.QueryExecModeCacheDescribe
}

// privatePool opens connections as the caller's pool does, n at most and none before it is
// needed.
func (s *Store) privatePool(n int32) (*pgxpool.Pool, error) {
	cfg := s.pool.Config()
	cfg.MaxConns, cfg.MinConns, cfg.MinIdleConns = n, 0, 0
	cfg.ConnConfig.DefaultQueryExecMode = s.mode
	s.prober.watch(cfg)
	if !s.lineage.opened {
		s.lineage.watch(cfg)
	}
	cfg.ConnConfig.OnNotification = nil // the caller's; with it none would come to Listen
	if cfg.ShouldPing == nil {          // pgx pings after a second: an idle worker's looks would each cost two
		cfg.ShouldPing = func(_ context.Context, p pgxpool.ShouldPingParams) bool { return p.IdleDuration > pingAfter }
	}
	return pgxpool.NewWithConfig(context.Background(), cfg)
}

// Close ends the store's own connections, and the pool if Open opened it. It waits for calls
// that are under way; later ones answer ErrClosed.
func (s *Store) Close() error {
	if s.own == nil {
		return errors.New("postgres: close of a store that New did not make")
	}
	s.closed.Store(true)
	s.listens.close()
	s.group.close()
	s.renewal.Close()
	s.own.Close()
	if s.opened {
		s.pool.Close()
	}
	return nil
}

var (
	_ pacht.Store    = (*Store)(nil)
	_ pacht.Migrator = (*Store)(nil)
)
