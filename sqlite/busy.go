package sqlite

import (
	"errors"
	"fmt"

	"github.com/pacht-queue/pacht"

	driversqlite "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"
)

// primaryCode is SQLite's result code without its extension; 0 for errors of others.
func primaryCode(err error) int {
	var e *driversqlite.Error
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code() & 0xff
}

// isBusy says whether SQLite refused because somebody else holds a lock. Nothing was done then.
func isBusy(err error) bool {
	switch primaryCode(err) {
	case codes.SQLITE_BUSY, codes.SQLITE_PROTOCOL:
		return true
	}
	return false
}

// isConstraint says whether a stored row stood against a statement: one that was changed by
// hand to what no rule allows.
func isConstraint(err error) bool { return primaryCode(err) == codes.SQLITE_CONSTRAINT }

// openError makes a refusal to open readable.
func openError(path string, err error) error {
	switch primaryCode(err) {
	case codes.SQLITE_NOTADB:
		return fmt.Errorf("open %s: it is no SQLite database: %w", path, err)
	case codes.SQLITE_CORRUPT:
		return fmt.Errorf("open %s: it is damaged: %w", path, err)
	case codes.SQLITE_READONLY, codes.SQLITE_CANTOPEN, codes.SQLITE_PERM:
		return fmt.Errorf("open %s: file and folder must be writable: %w", path, err)
	}
	return fmt.Errorf("open %s: %w", path, err)
}

// writeError says what a failed write means. SQLite undoes the transaction in each case; only
// after an I/O error of the commit itself nobody knows what is on the disk.
func writeError(verb string, err error, committing bool) error {
	if errors.Is(err, pacht.ErrWrongStatus) {
		return err // says verb and job by itself
	}
	switch primaryCode(err) {
	case codes.SQLITE_FULL:
		return fmt.Errorf("%s: the disk is full, nothing was written: %w", verb, err)
	case codes.SQLITE_READONLY:
		return fmt.Errorf("%s: the file is read-only, nothing was written: %w", verb, err)
	case codes.SQLITE_IOERR:
		if committing {
			return fmt.Errorf("%s: %w: %w", verb, pacht.ErrUnknown, err)
		}
	}
	return fmt.Errorf("%s: %w", verb, err)
}
