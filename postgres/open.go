package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pacht-queue/pacht"
)

// Open opens a pool of its own and makes a store on it; Close closes both. It fails if the
// server does not answer. Errors never show the password. Of several hosts in the URL it takes
// the first that takes writes, unless target_session_attrs says otherwise, and waits 3 s for
// each, unless connect_timeout does.
func Open(ctx context.Context, url string, cfg Config) (*Store, error) {
	if _, rest, ok := strings.Cut(url, "://"); ok && rest == "" {
		return nil, badURL("it names neither a host nor a database")
	}
	poolConfig, err := pgxpool.ParseConfig(url)
	if err != nil {
		// What stands behind the URL says what could not be read; the URL may hold a password.
		_, reason, _ := strings.Cut(err.Error(), "`: ")
		return nil, badURL(reason)
	}
	several := hosts(poolConfig.ConnConfig) > 1
	if poolConfig.ConnConfig.ConnectTimeout == 0 {
		poolConfig.ConnConfig.ConnectTimeout = 10 * time.Second
		if several { // a host that is gone without a sign must not take a call's whole time
			poolConfig.ConnConfig.ConnectTimeout = 3 * time.Second
		}
	}
	if several && poolConfig.ConnConfig.ValidateConnect == nil {
		poolConfig.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	p, l := &prober{}, &lineage{opened: true}
	if mode := poolConfig.ConnConfig.DefaultQueryExecMode; mode == pgx.QueryExecModeCacheStatement {
		p.wanted = true
		poolConfig.ConnConfig.DefaultQueryExecMode = poolerProof(poolConfig.ConnConfig)
	}
	p.watch(poolConfig)
	l.watch(poolConfig)
	pool, err := pgxpool.NewWithConfig(ctx, poolConfig)
	if err != nil {
		return nil, fmt.Errorf("open PostgreSQL: %w", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("open PostgreSQL at %s: %w", poolConfig.ConnConfig.Host, telling(err))
	}
	s, err := makeStore(pool, cfg, p, l)
	if err != nil {
		pool.Close()
		return nil, err
	}
	s.opened = true
	return s, nil
}

// hosts counts the servers that a connection may end at.
func hosts(cfg *pgx.ConnConfig) int {
	seen := map[string]bool{net.JoinHostPort(cfg.Host, strconv.Itoa(int(cfg.Port))): true}
	for _, f := range cfg.Fallbacks { // also the same host again, with and without TLS
		seen[net.JoinHostPort(f.Host, strconv.Itoa(int(f.Port)))] = true
	}
	return len(seen)
}

func badURL(why string) error {
	return &pacht.InvalidError{Field: "db", Bound: "a URL of PostgreSQL, as postgres://user@host/database: " + why}
}

// connectError says the one reason that tells most, and still is all of them.
type connectError struct {
	reason string
	all    error
}

func (e *connectError) Error() string { return e.reason }
func (e *connectError) Unwrap() error { return e.all }

// telling picks the reason out of all the attempts that pgx lists, first those with TLS: what
// a server said itself, else the last.
func telling(err error) error {
	var connect *pgconn.ConnectError
	if !errors.As(err, &connect) {
		return err
	}
	reason := connect.Unwrap()
	if attempts, ok := reason.(interface{ Unwrap() []error }); ok {
		all := attempts.Unwrap()
		reason = all[len(all)-1]
		for _, each := range all {
			if code(each) != "" {
				reason = each
			}
		}
	}
	return &connectError{reason: strings.Join(strings.Fields(reason.Error()), " "), all: err}
}
