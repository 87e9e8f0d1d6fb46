package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/internal/failpoint"
)

// pause lets other processes at the file, if they seem to be there or may be.
func (w *writer) pause(ctx context.Context) {
	switch {
	case w.isShared && w.shared.Elapsed() < sharedTime:
		if w.committed.Elapsed() < longestNap {
			_ = nap(ctx) // ended by close only, which the loop sees
		}
	case w.alone.Elapsed() > aloneTime:
		if w.committed.Elapsed() < longestNap {
			_ = clock.Sleep(ctx, longestNap+shortestNap)
		}
		w.alone = clock.Now()
	}
}

// sawAnother notes a sign of another process on the file.
func (w *writer) sawAnother() { w.isShared, w.shared = true, clock.Now() }

// group takes the file's write lock and runs all parts that are waiting in one transaction.
// It answers them and the error of the whole, if there is one.
func (w *writer) group(ctx context.Context) ([]*part, error) {
	if started, err := w.begin(ctx, w.waiting); !started {
		if err == nil {
			return nil, nil
		}
		// Nothing can be written now: whoever waits is told so, at once.
		var group []*part
		for p := w.next(); p != nil; p = w.next() {
			group = append(group, p)
		}
		return group, err
	}
	failpoint.Here("sqlite.begun")
	group, err := w.runParts(ctx)
	if errors.Is(err, errUndone) {
		return group, nil
	}
	failpoint.Here("sqlite.written")
	if err == nil {
		if _, err = w.ExecContext(context.Background(), w.store.sql.Commit); err == nil {
			failpoint.Here("sqlite.committed")
			w.committed = clock.Now()
			return group, nil
		}
		err = writeError("commit", err, true)
	}
	// SQLite may have undone the transaction by itself; a new connection is safe either way.
	w.disconnect()
	return group, err
}

// begin waits in Go for the file's write lock, as long as anybody wants it.
func (w *writer) begin(ctx context.Context, wanted func() bool) (bool, error) {
	for wanted() {
		if err := w.connect(ctx); err != nil {
			return false, err
		}
		_, err := w.ExecContext(context.Background(), w.store.sql.Begin)
		if err == nil {
			return true, nil
		}
		if !isBusy(err) {
			w.disconnect()
			return false, writeError("begin", err, false)
		}
		w.sawAnother()
		if nap(ctx) != nil {
			return false, nil // closing: the loop answers the queue
		}
	}
	return false, nil
}

// errUndone: the only part of a group has failed, and the group was rolled back.
var errUndone = errors.New("undone")

// runParts runs what is waiting, and what comes meanwhile, for a bounded time. A savepoint
// around each part costs more than most parts; so they run without, and if one fails all is
// undone, they run again in savepoints, each its own, and so do those that follow (R12).
func (w *writer) runParts(ctx context.Context) ([]*part, error) {
	var group []*part
	if err := w.lookForOthers(); err != nil {
		return nil, err
	}
	safely := false
	for start := clock.Now(); len(group) == 0 || start.Elapsed() < w.groupTime; {
		p := w.next()
		if p == nil {
			break
		}
		group = append(group, p)
		if safely {
			if err := w.runSafely(p); err != nil {
				return group, err
			}
			continue
		}
		if p.err = w.runPart(p); p.err != nil {
			if err := w.runAgain(ctx, group); err != nil {
				return group, err
			}
			safely = true
		}
	}
	return group, nil
}

// runAgain undoes a group whose last part has failed, and runs the parts in savepoints.
func (w *writer) runAgain(ctx context.Context, group []*part) error {
	failed := group[len(group)-1].err
	if _, err := w.ExecContext(context.Background(), w.store.sql.Rollback); err != nil {
		return failed // SQLite has undone the whole by itself, as on a full disk
	}
	if len(group) == 1 {
		return errUndone
	}
	start := clock.Now() // nobody who has started can give up: so this is bounded
	started, err := w.begin(ctx, func() bool { return start.Elapsed() < w.store.lock.wait })
	switch {
	case err != nil:
		return err
	case !started && ctx.Err() != nil:
		return fmt.Errorf("begin again: %w", pacht.ErrClosed)
	case !started:
		return fmt.Errorf("begin again: %w", w.store.lock.tooLong())
	}
	for _, p := range group {
		if err := w.runSafely(p); err != nil {
			return err
		}
	}
	return nil
}

// runSafely runs one part in a savepoint. An error that it answers is that of the group.
func (w *writer) runSafely(p *part) error {
	ctx := context.Background() // once started, only the commit decides
	if _, err := w.ExecContext(ctx, w.store.sql.Savepoint); err != nil {
		return writeError(p.verb, err, false)
	}
	if p.err = w.runPart(p); p.err != nil {
		// This fails if SQLite has undone the whole transaction, as on a full disk: then
		// nothing of the group is left.
		if _, undo := w.ExecContext(ctx, w.store.sql.SavepointUndo); undo != nil {
			return p.err
		}
	}
	if _, err := w.ExecContext(ctx, w.store.sql.SavepointRelease); err != nil {
		return writeError(p.verb, err, false)
	}
	return nil
}

// runPart runs one part.
func (w *writer) runPart(p *part) error {
	ctx := context.Background() // once started, only the commit decides
	job := &work{runner: w}
	_, err := one(ctx, w, w.store.sql.Now, nil, &job.now)
	if err == nil {
		err = p.run(ctx, job)
	}
	if err != nil {
		return writeError(p.verb, err, false)
	}
	return nil
}

// lookForOthers reads whether another connection has committed since our last transaction,
// and it was not one of this process's own.
func (w *writer) lookForOthers() error {
	var version int64
	if _, err := one(context.Background(), w, w.store.sql.DataVersion, nil, &version); err != nil {
		return writeError("begin", err, false)
	}
	lent := w.store.lock.lentSoFar()
	if version != w.version && lent == w.lent && w.version != 0 {
		w.sawAnother()
	}
	w.version, w.lent = version, lent
	return nil
}

func (w *writer) connect(ctx context.Context) error {
	if w.conn != nil {
		return nil
	}
	conn, err := w.store.single.Conn(ctx)
	if err != nil {
		return openError(w.store.path, err)
	}
	w.conn, w.prepared, w.version = conn, map[string]*sql.Stmt{}, 0
	return nil
}

// disconnect throws the connection away, and with it a transaction that may be open on it.
func (w *writer) disconnect() {
	if w.conn == nil {
		return
	}
	for _, st := range w.prepared {
		_ = st.Close() // of a connection that goes away
	}
	_ = w.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = w.conn.Close()
	w.conn, w.prepared = nil, nil
}

// ExecContext runs a prepared statement on the writer's connection.
func (w *writer) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	st, err := w.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	return st.ExecContext(ctx, args...)
}

// QueryContext runs a prepared statement on the writer's connection.
func (w *writer) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	st, err := w.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	return st.QueryContext(ctx, args...)
}

func (w *writer) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	if st := w.prepared[query]; st != nil {
		return st, nil
	}
	st, err := w.conn.PrepareContext(ctx, query)
	if err == nil {
		w.prepared[query] = st
	}
	return st, err
}
