package postgres

import (
	"context"
	_ "embed"
	"strconv"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed sql/backend.sql
var backendSQL string

// prober finds out whether anybody stands between us and the server. Prepared statements save
// parsing and planning each time, but a pooler that gives every transaction another session
// loses them. So the store's connections prepare only if they are direct.
type prober struct {
	state atomic.Int32
}

const (
	unknown = iota
	direct
	pooled
)

// watch lets the connections of a pool prepare statements if they are direct. One connection
// more is opened for that, once.
func (p *prober) watch(cfg *pgxpool.Config) {
	before := cfg.BeforeConnect
	cfg.BeforeConnect = func(ctx context.Context, cc *pgx.ConnConfig) error {
		if before != nil {
			if err := before(ctx, cc); err != nil {
				return err
			}
		}
		if cc.DefaultQueryExecMode == pgx.QueryExecModeCacheDescribe && cc.StatementCacheCapacity > 0 && p.direct(ctx, cc) {
			cc.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
		}
		return nil
	}
}

// direct opens a connection and compares the process that the server names with the one
// whose key the connection was given: a pooler gives out keys of its own. An error is not
// known for direct, and will come again where it can be told.
func (p *prober) direct(ctx context.Context, cc *pgx.ConnConfig) bool {
	if state := p.state.Load(); state != unknown {
		return state == direct
	}
	conn, err := pgconn.ConnectConfig(ctx, cc.Config.Copy())
	if err != nil {
		return false
	}
	defer conn.Close(ctx)
	results, err := conn.Exec(ctx, backendSQL).ReadAll()
	if err != nil || len(results) != 1 || len(results[0].Rows) != 1 {
		return false
	}
	state := int32(pooled)
	if string(results[0].Rows[0][0]) == strconv.FormatUint(uint64(conn.PID()), 10) {
		state = direct
	}
	p.state.CompareAndSwap(unknown, state)
	return p.state.Load() == direct
}

// lost takes in that a prepared statement was not there any more.
func (p *prober) lost() { p.state.Store(pooled) }
