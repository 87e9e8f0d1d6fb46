package main

import (
	"errors"

	"github.com/pacht-queue/pacht"
)

// The exit codes of all commands. They are part of the interface: see exitHelp.
const (
	exitOK      = 0
	exitFailed  = 1
	exitUsage   = 2
	exitRefused = 3
	exitSchema  = 4
	exitUnknown = 5
)

const exitHelp = `Exit codes:
  0  done
  1  failed, or something was found: a bad verdict of doctor, handlers that did not end,
     refused lines of a batch
  2  the command line or a value in it is not allowed; nothing was done
  3  refused: no such job or break, not in this status, lease lost, key used for other content,
     row locked, break changed since; nothing was changed
  4  the tables are missing, older or newer than this program
  5  the connection broke before the answer came: it may have been done or not
  128 + signal number: stopped at once by a second signal`

// usageError is a command line that was not understood.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// errFound ends a command that has printed its finding.
var errFound = errors.New("")

func exitCode(err error) int {
	var usage *usageError
	var invalid *pacht.InvalidError
	var changed *pacht.BreakError
	var missing *noBreakError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, pacht.ErrUnknown):
		return exitUnknown
	case errors.As(err, &usage), errors.As(err, &invalid):
		return exitUsage
	case errors.Is(err, pacht.ErrSchema):
		return exitSchema
	case errors.Is(err, pacht.ErrNotFound), errors.Is(err, pacht.ErrWrongStatus), errors.Is(err, pacht.ErrLeaseLost),
		errors.Is(err, pacht.ErrAlreadySettled), errors.Is(err, pacht.ErrKeyConflict), errors.Is(err, pacht.ErrBusy),
		errors.As(err, &changed), errors.As(err, &missing):
		return exitRefused
	}
	return exitFailed
}
