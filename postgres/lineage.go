package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed sql/lineage.sql
var lineageSQL string

// lineage keeps a process from going back to a server that was replaced. A promotion begins a
// new history with a higher number, its timeline. An old primary that comes back and was not
// fenced takes writes that nobody will ever see: once any connection has reached the promoted
// server, no other may end at the old one, and those that are there are given up. A process
// that has not seen the promoted server cannot know.
type lineage struct {
	mu     sync.Mutex
	newest map[string]int64 // by the system's identifier
	opened bool             // the caller's pool asks already
	moved  func()           // gives up the connections that are there
}

// watch lets the connections of a pool ask before they are used. One that is refused leads to
// the next host of the URL, as with target_session_attrs.
func (l *lineage) watch(cfg *pgxpool.Config) {
	before := cfg.ConnConfig.ValidateConnect
	cfg.ConnConfig.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		if before != nil {
			if err := before(ctx, conn); err != nil {
				return err
			}
		}
		return l.follow(ctx, conn)
	}
}

// follow refuses a connection to an older history than was seen. A server that does not tell
// its history (another engine, no right to ask) is taken as it is.
func (l *lineage) follow(ctx context.Context, conn *pgconn.PgConn) error {
	results, err := conn.Exec(ctx, lineageSQL).ReadAll()
	if err != nil {
		var said *pgconn.PgError
		if errors.As(err, &said) && said.SeverityUnlocalized == "ERROR" {
			return nil
		}
		return fmt.Errorf("ask for the server's history: %w", err)
	}
	if len(results) != 1 || len(results[0].Rows) != 1 || len(results[0].Rows[0]) != 2 {
		return nil
	}
	system := string(results[0].Rows[0][0])
	timeline, err := strconv.ParseInt(string(results[0].Rows[0][1]), 10, 64)
	if err != nil || timeline == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch seen := l.newest[system]; {
	case timeline < seen:
		return &replacedError{found: timeline, seen: seen}
	case timeline > seen:
		if l.newest == nil {
			l.newest = map[string]int64{}
		}
		l.newest[system] = timeline
		if seen != 0 && l.moved != nil {
			l.moved()
		}
	}
	return nil
}

// replacedError refuses a server that another one has replaced.
type replacedError struct{ found, seen int64 }

func (e *replacedError) Error() string {
	return fmt.Sprintf("this server was replaced: it writes timeline %d, and another one was promoted to timeline %d; stop it, or restart this process if it is meant to go back", e.found, e.seen)
}
