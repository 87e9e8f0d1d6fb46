package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
)

// unknownError is an error after which nobody can say whether the server has done its work.
type unknownError struct{ err error }

func (e *unknownError) Error() string        { return pacht.ErrUnknown.Error() + ": " + e.err.Error() }
func (e *unknownError) Unwrap() error        { return e.err }
func (e *unknownError) Is(target error) bool { return target == pacht.ErrUnknown }

// sent classes the error of a request that includes its commit: refused by the server in
// plain words, never sent, or unknown.
func sent(err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.SeverityUnlocalized == "ERROR" {
		return err
	}
	var unsent interface{ SafeToRetry() bool }
	if errors.As(err, &unsent) && unsent.SafeToRetry() {
		return err
	}
	return &unknownError{err}
}

// code is the server's error code, or "".
func code(err error) string {
	var sqlState interface{ SQLState() string } // *pgconn.PgError, and *pq.Error likewise
	if errors.As(err, &sqlState) {
		return sqlState.SQLState()
	}
	return ""
}

func serialization(err error) bool { return slices.Contains([]string{"40001", "40P01"}, code(err)) }

// stalePlan says that the session remembers a statement in a way that the server no longer
// does: columns changed under it, or a pooler swapped the server's session.
func stalePlan(err error) bool {
	return lostPrepared(err) || slices.Contains([]string{"0A000", "08P01"}, code(err))
}

// lostPrepared says that the server's session is not the one which prepared the statement.
func lostPrepared(err error) bool { return slices.Contains([]string{"26000", "42P05"}, code(err)) }

// readOnly says that the server takes no writes now: it is a standby, or was told to.
func readOnly(err error) bool { return code(err) == "25006" }

// standbyError is what readOnly means, where nothing was to be written.
type standbyError struct{}

func (standbyError) Error() string     { return "the server is in recovery, and may be behind" }
func (standbyError) SQLState() string  { return "25006" }
func (standbyError) SafeToRetry() bool { return true } // on a connection to another server

// durable ends a transaction that answers what it saw, instead of what it did.
func (s *Store) durable() stmt {
	return stmt{sql: s.sql.Durable, each: func(scan scanner) error {
		var recovering, ignored bool
		if err := scan(&recovering, &ignored); err != nil {
			return err
		}
		if recovering {
			return standbyError{}
		}
		return nil
	}}
}

// again repeats a verb of the store's own: after a serialization failure, a deadlock, a stale
// plan or a connection that broke before anything was sent; and, if the verb may be repeated
// (R4, R11), after a lost answer. Bounded, with jitter.
func (s *Store) again(ctx context.Context, repeatable bool, verb string, fn func() error) error {
	if s.closed.Load() {
		return fmt.Errorf("%s: %w", verb, pacht.ErrClosed)
	}
	const tries = 6
	doubt := false // one of the tries may have been done
	failed := func(err error) error {
		if doubt && !errors.Is(err, pacht.ErrUnknown) {
			err = &unknownError{err}
		}
		return fmt.Errorf("%s: %w", verb, err)
	}
	for try := 1; ; try++ {
		err := fn()
		if err == nil {
			return nil
		}
		var connect *pgconn.ConnectError
		// The code of an unknown outcome says nothing: a pooler that drops the client after the
		// COMMIT was sent calls that 08P01 as well.
		unknown := errors.Is(err, pacht.ErrUnknown)
		doubt = doubt || unknown
		repeat := !unknown && (serialization(err) || stalePlan(err) || pgconn.SafeToRetry(err)) || repeatable && unknown
		spent := errors.Is(err, context.DeadlineExceeded) // the store's own bound, or the caller's
		if !repeat || spent || errors.As(err, &connect) || ctx.Err() != nil || try == tries {
			return failed(s.explain(ctx, err))
		}
		if err := clock.Sleep(ctx, clock.Jitter(time.Millisecond<<try)); err != nil {
			return failed(err)
		}
	}
}

// explain says in Pacht's words what the server said in its own.
func (s *Store) explain(ctx context.Context, err error) error {
	switch code(err) {
	case "42P01", "3F000": // no such table, no such schema
		found, wanted, schemaErr := s.Schema(ctx)
		if schemaErr == nil && found < wanted {
			return &pacht.SchemaError{Found: found, Wanted: wanted}
		}
	case "25006": // read_only_sql_transaction
		return fmt.Errorf("the server takes no writes: it is a standby, or was set to read only: %w", err)
	case "55P03": // lock_not_available
		return fmt.Errorf("%w: %w", pacht.ErrBusy, err)
	case "42501": // insufficient_privilege
		return fmt.Errorf("%w (what a role needs: docs/databases.md, Roles)", err)
	case "", "57014": // query_canceled
		// Whoever gives up may find a connection closed under him: that is his doing, and not the network's.
		for _, why := range []error{context.Cause(ctx), ctx.Err()} {
			if why != nil && !errors.Is(err, why) {
				err = fmt.Errorf("%w: %w", why, err)
			}
		}
	}
	return err
}
