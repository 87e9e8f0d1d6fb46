package sqlite

import (
	"context"
	"database/sql/driver"
	"net/url"
	"strings"
)

// dataSource is the connection string. All pragmas stand in it, because a pool opens
// connections whenever it likes (S057).
func dataSource(path string, readOnly bool) string {
	q := url.Values{}
	cache := "cache_size(-16000)"
	if readOnly {
		q.Set("_query_only", "1")
		// What another process writes makes all cached pages void, and freeing them costs more
		// than reading them again.
		cache = "cache_size(-1000)"
	}
	q.Set("_txlock", "immediate") // a transaction that upgrades later finds its snapshot old
	q.Set("_error_rc", "1")
	q.Set("_dqs", "0")
	q.Add("_pragma", "busy_timeout(0)") // waiting is done in Go, see lock.go
	q.Add("_pragma", "journal_mode(WAL)")
	q.Add("_pragma", "synchronous(FULL)") // NORMAL may lose the last commits with the power
	q.Add("_pragma", "journal_size_limit(67108864)")
	// Pages that are written again and again are copied from the log to the file once per
	// checkpoint: four times rarer than by default, at 16 MB of log.
	q.Add("_pragma", "wal_autocheckpoint(4000)")
	q.Add("_pragma", "temp_store(MEMORY)") // what a savepoint or a statement may have to undo is kept in memory too
	q.Add("_pragma", cache)
	u := url.URL{Scheme: "file", Path: path, OmitHost: true, RawQuery: q.Encode()}
	return u.String()
}

// connector opens connections, and waits where SQLite would say that the file is busy: the
// first one turns the file to WAL, and the last one of another process turns the log in.
type connector struct {
	driver.Connector
	lock  *fileLock
	turns bool // transactions queue for the file's write lock: the caller's connections
	retry bool // single statements wait while the file is busy
}

func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	var raw driver.Conn
	err := c.lock.whileBusy(ctx, func() (err error) {
		raw, err = c.Connector.Connect(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	if !c.turns && !c.retry {
		return raw, nil
	}
	return &conn{driverConn: raw.(driverConn), lock: c.lock, turns: c.turns}, nil
}

// driverConn is what a connection of the driver can do.
type driverConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// conn is a connection whose transactions take turns at the file's write lock, and whose
// single statements wait in Go while another process holds it.
type conn struct {
	driverConn
	lock  *fileLock
	turns bool
	inTx  bool
}

// Unwrap lets the driver's own functions see through.
func (c *conn) Unwrap() driver.Conn { return c.driverConn }

func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	writes := c.turns && !opts.ReadOnly
	if writes {
		if err := c.lock.take(ctx); err != nil {
			return nil, err
		}
	}
	var inner driver.Tx
	err := c.lock.whileBusy(ctx, func() (err error) {
		inner, err = c.driverConn.BeginTx(ctx, opts)
		return err
	})
	if err != nil {
		if writes {
			c.lock.give()
		}
		return nil, err
	}
	c.inTx = true
	if writes {
		c.lock.hold("a transaction begun on DB()")
	}
	return &turnTx{Tx: inner, conn: c, writes: writes}, nil
}

// turnTx gives the turn back when the transaction ends, however it ends.
type turnTx struct {
	driver.Tx
	conn   *conn
	writes bool
}

func (t *turnTx) Commit() error {
	defer t.end()
	return t.Tx.Commit()
}

func (t *turnTx) Rollback() error {
	defer t.end()
	return t.Tx.Rollback()
}

func (t *turnTx) end() {
	t.conn.inTx = false
	if t.writes {
		t.writes = false
		t.conn.lock.give()
	}
}

func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (res driver.Result, err error) {
	err = c.patiently(ctx, query, func() (err error) {
		res, err = c.driverConn.ExecContext(ctx, query, args)
		return err
	})
	return res, err
}

func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (rows driver.Rows, err error) {
	err = c.patiently(ctx, query, func() (err error) {
		rows, err = c.driverConn.QueryContext(ctx, query, args)
		return err
	})
	return rows, err
}

func (c *conn) PrepareContext(ctx context.Context, query string) (st driver.Stmt, err error) {
	err = c.patiently(ctx, query, func() (err error) {
		st, err = c.driverConn.PrepareContext(ctx, query)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &stmt{driverStmt: st.(driverStmt), conn: c, query: query}, nil
}

// patiently repeats a single statement while the file is busy. Inside a transaction it does
// not: there the lock is held, or the transaction has to be begun anew. Nor does it repeat a
// script: its first statements may have been carried out.
func (c *conn) patiently(ctx context.Context, query string, do func() error) error {
	err := do()
	if !isBusy(err) || c.inTx || isScript(query) {
		return err
	}
	if c.turns {
		if err := c.lock.refuseOwn(); err != nil {
			return err
		}
	}
	return c.lock.whileBusy(ctx, do)
}

// isScript says whether there may be more than one statement; a semicolon within a literal
// makes it say so too, which is the safe side.
func isScript(query string) bool {
	_, rest, found := strings.Cut(query, ";")
	return found && strings.TrimSpace(rest) != ""
}

type driverStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type stmt struct {
	driverStmt
	conn  *conn
	query string
}

func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (res driver.Result, err error) {
	err = s.conn.patiently(ctx, s.query, func() (err error) {
		res, err = s.driverStmt.ExecContext(ctx, args)
		return err
	})
	return res, err
}

func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (rows driver.Rows, err error) {
	err = s.conn.patiently(ctx, s.query, func() (err error) {
		rows, err = s.driverStmt.QueryContext(ctx, args)
		return err
	})
	return rows, err
}
