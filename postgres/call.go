package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/failpoint"
)

// stmt is one statement of a transaction of the store's own.
type stmt struct {
	sql  string
	args []any
	each func(scanner) error // for every row; nil if none is of interest
	// whole says that it reads a table from end to end on purpose. For all others that is a plan
	// made of statistics from a moment when there was nothing to find: see bounds.sql.
	whole bool
}

// transact runs statements as one transaction and one round trip: BEGIN, bounds, statements
// and COMMIT go out together, so that a client which stops in the middle holds no lock. It
// answers the database's clock. Whoever passes a stmt.each must be ready to have it called
// and the transaction fail afterwards.
func (s *Store) transact(ctx context.Context, pool *pgxpool.Pool, lock time.Duration, stmts ...stmt) (time.Time, error) {
	if pool == s.pool && s.unprepared.Load() {
		return s.serial(ctx, pool, lock, stmts)
	}
	conn, ctx, release, err := s.acquire(ctx, pool)
	if err != nil {
		return time.Time{}, err
	}
	defer release()
	return s.transactOn(ctx, conn, pool, lock, stmts...)
}

// transactOn is transact on a connection that was taken from a pool.
func (s *Store) transactOn(ctx context.Context, conn *pgxpool.Conn, pool *pgxpool.Pool, lock time.Duration, stmts ...stmt) (time.Time, error) {
	var now time.Time
	if err := s.ready(ctx, conn); err != nil {
		return now, err
	}
	all := append(s.opening(lock, 0, readsWhole(stmts), &now), stmts...)
	if err := s.send(ctx, conn, pool, append(all, stmt{sql: s.sql.Commit})); err != nil {
		return now, sent(err)
	}
	return now.UTC(), nil
}

// opening begins a transaction of the store's own, bounds it, and reads the database's clock. idle
// is 0 if the transaction's COMMIT goes out with it, else s.idle().
func (s *Store) opening(lock, idle time.Duration, whole bool, now *time.Time) []stmt {
	var ignored string
	return []stmt{
		{sql: s.sql.Begin},
		{sql: s.sql.Bounds, args: s.bounds(lock, idle, whole), each: func(scan scanner) error { return scan(now, &ignored, &ignored) }},
	}
}

// send sends statements together. If one fails the transaction is over.
func (s *Store) send(ctx context.Context, conn *pgxpool.Conn, pool *pgxpool.Pool, stmts []stmt) error {
	var batch pgx.Batch
	for _, st := range stmts {
		batch.Queue(st.sql, st.args...)
	}
	var err error
	results := conn.SendBatch(ctx, &batch)
	failpoint.Here("postgres.sent") // no answer was read, and the server may do it all
	for _, st := range stmts {
		var rows pgx.Rows
		if rows, err = results.Query(); err == nil {
			err = readRows(rows, st.each)
		}
		if err != nil {
			break
		}
	}
	if closeErr := results.Close(); err == nil {
		err = closeErr
	}
	failpoint.Here("postgres.answered")
	if err != nil {
		if lostPrepared(err) {
			s.unprepared.Store(s.unprepared.Load() || pool == s.pool)
			s.prober.lost()
		}
		s.tidy(conn, err)
	}
	return err
}

// patience is how long the client waits for a server that bounds its statements itself: over
// a connection that has gone silent no such bound arrives, and there are few connections.
func (s *Store) patience(pool *pgxpool.Pool) time.Duration {
	const grace, renewal = 3 * time.Second, 10 * time.Second
	if pool == s.renewal {
		return min(s.timeout+grace, renewal)
	}
	return s.timeout + grace
}

// acquire takes a connection, and bounds what is done with it: see patience. The wait for one
// of the caller's pool has no bound but the caller's own.
func (s *Store) acquire(ctx context.Context, pool *pgxpool.Pool) (*pgxpool.Conn, context.Context, func(), error) {
	bounded, cancel := context.WithTimeout(ctx, s.patience(pool))
	wait := bounded
	if pool == s.pool {
		wait = ctx
	}
	conn, err := pool.Acquire(wait)
	if err != nil {
		cancel()
		switch {
		case s.closed.Load():
			err = fmt.Errorf("%w: %w", pacht.ErrClosed, err)
		case ctx.Err() != nil:
			err = inVain(pool, err)
		}
		return nil, ctx, nil, err
	}
	if pool == s.pool {
		cancel() // waiting for it does not count
		bounded, cancel = context.WithTimeout(ctx, s.patience(pool))
	}
	return conn, bounded, func() { conn.Release(); cancel() }, nil
}

// inVain says of the error of who gave up waiting for a connection if that was because all are in use.
func inVain(pool *pgxpool.Pool, err error) error {
	if st := pool.Stat(); st.AcquiredConns() == st.MaxConns() {
		return fmt.Errorf("all %d connections of the pool are in use: %w", st.MaxConns(), err)
	}
	return err
}

// serial is transact with a round trip for each statement, for a caller's pool that prepares
// statements behind a pooler which cannot keep them: there only single statements can be sent
// in another mode than the pool's.
func (s *Store) serial(ctx context.Context, pool *pgxpool.Pool, lock time.Duration, stmts []stmt) (time.Time, error) {
	return s.interactive(ctx, pool, lock, readsWhole(stmts), func(on session) error {
		for _, st := range stmts {
			if err := on.query(ctx, st.sql, st.args, st.each); err != nil {
				return err
			}
		}
		return nil
	})
}

// interactive runs fn in one transaction whose statements depend on each other's answers. If this
// process stops in the middle, the server ends the transaction: see idle. whole: see stmt.
func (s *Store) interactive(ctx context.Context, pool *pgxpool.Pool, lock time.Duration, whole bool, fn func(session) error) (time.Time, error) {
	var now time.Time
	var ignored string
	conn, _, release, err := s.acquire(ctx, pool)
	if err != nil {
		return now, err
	}
	defer release()
	if err := s.ready(ctx, conn); err != nil {
		return now, err
	}
	on := pgxSession{on: conn, mode: s.mode, bound: s.patience(pool)}
	err = on.query(ctx, s.sql.Begin, nil, nil)
	if err == nil {
		err = on.query(ctx, s.sql.Bounds, s.bounds(lock, s.idle(), whole), func(scan scanner) error { return scan(&now, &ignored, &ignored) })
	}
	if err == nil {
		err = fn(on)
	}
	if err == nil {
		failpoint.Here("postgres.interactive") // all is written but the COMMIT, which is a round trip of its own
	}
	if err != nil {
		s.tidy(conn, err) // not committed, whatever became of the connection
		return now, err
	}
	if err := on.query(ctx, s.sql.Commit, nil, nil); err != nil {
		s.tidy(conn, err)
		return now, sent(err)
	}
	return now.UTC(), nil
}

// idle is how long the server waits for the next statement of a transaction of the store's own that
// takes several round trips, before it ends the session: a client that was stopped, or whose
// connection went silent, would hold locks and the snapshot of its transaction for ever (S045,
// S061). Whoever waits for one of these locks gives up earlier, and tries again.
func (s *Store) idle() time.Duration {
	const most, least = 10 * time.Second, time.Second
	return min(max(s.timeout/2, least), most)
}

func (s *Store) bounds(lock, idle time.Duration, whole bool) []any {
	scans := "off"
	if whole {
		scans = "on"
	}
	return []any{milliseconds(s.timeout), milliseconds(lock), scans, idle.Milliseconds()}
}

func readsWhole(stmts []stmt) bool {
	return slices.ContainsFunc(stmts, func(st stmt) bool { return st.whole })
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// tidy leaves no open transaction on a connection that goes back to its pool, and no plan
// that the server has turned down. A server that only reads is left: behind the same name, or
// on another host of the URL, there may be one by now that takes writes.
func (s *Store) tidy(conn *pgxpool.Conn, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if stalePlan(err) || readOnly(err) {
		_ = conn.Conn().Close(ctx) // the pool opens another
		return
	}
	if c := conn.Conn(); !c.IsClosed() && !c.PgConn().IsBusy() && c.PgConn().TxStatus() != 'I' {
		// If it fails, the pool sees that and drops the connection.
		_, _ = conn.Exec(ctx, s.sql.Rollback, pgx.QueryExecModeSimpleProtocol)
	}
}

// readOnce runs one statement that only reads.
func (s *Store) readOnce(ctx context.Context, pool *pgxpool.Pool, sql string, args []any, each func(scanner) error) error {
	conn, bounded, release, err := s.acquire(ctx, pool)
	if err != nil {
		return err
	}
	defer release()
	if pool != s.pool { // what people ask may take as long as they wait for it
		ctx = bounded
	}
	if err := s.ready(ctx, conn); err != nil {
		return err
	}
	if err := (pgxSession{on: conn, mode: s.mode}).query(ctx, sql, args, each); err != nil {
		s.tidy(conn, err)
		return sent(err)
	}
	return nil
}
