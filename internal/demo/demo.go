// Package demo is a payments system whose workers are killed and paused in the middle of their
// jobs, and the count of what was lost.
//
// The database, the provider and the workers are real, and so are their processes and signals.
// What is arranged is only that there is always something to disturb: the provider is as slow
// as the run should last, and keeps the last answers back until the disturbances are over.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/pacht-queue/pacht"
)

const (
	MinPayments, MaxPayments = 1, 100_000

	workers = 3                // at first; each one that is killed or paused is replaced
	slots   = 8                // jobs at once in each worker
	ttl     = 2 * time.Second  // of a charge job's lease
	pace    = 18 * time.Second // in which all payments should be through, if the machine can
	reserve = 40               // payments whose answers are kept back until the disturbances are over

	minKills, minPauses = 3, 2
)

// Config says what to run. The zero value of all but Payments and Executable works.
type Config struct {
	Payments int    // MinPayments to MaxPayments
	Seed     uint64 // of amounts, failures, latencies and disturbances
	// Postgres is the URL of a database in which a schema is made and removed; "" = a fresh
	// SQLite file.
	Postgres string
	// Keep is the file to keep: the SQLite file, beside which the provider's ledger is kept.
	// On PostgreSQL the schema is kept, and the ledger beside this name.
	Keep string
	// Executable is the pacht command: workers and provider are its hidden subcommands.
	Executable string
	// IgnoreKeys makes the provider charge again for a key it knows: sabotage, for tests.
	IgnoreKeys bool
	// Out gets the progress and, unless Quiet is set, the table at the end.
	Out io.Writer
	// Width is the width of the terminal behind Out; 0 = no terminal: plain lines.
	Width int
	// NoTable leaves out the table at the end.
	NoTable bool
}

// Result compares the database with the provider's ledger.
type Result struct {
	Payments      int64   `json:"payments"`
	Completed     int64   `json:"completed"`      // payments that both sides have as one and the same: paid once, or not at all
	Lost          int64   `json:"lost"`           // payments that differ, and no open break says so
	DoubleCharged int64   `json:"double_charged"` // payments that the provider charged more than once
	RepeatedCalls int64   `json:"repeated_calls"` // calls whose key had succeeded before
	Attempts      int64   `json:"attempts"`       // closed leases
	Expired       int64   `json:"expired"`        // of these, ended by nobody
	RefusedLate   int64   `json:"refused_late"`   // outcomes that came after their lease was closed
	Unknown       int64   `json:"unknown"`        // attempts that ended because nobody knew what the provider had done
	Healed        int64   `json:"healed"`         // differences that the reconciler found and mended
	BreaksOpen    int64   `json:"breaks_open"`    // differences that are left to a person
	LedgerEqual   bool    `json:"ledger_equal"`   // our ledger is the provider's, to the last unit, but for the open breaks
	Kills         int     `json:"kills"`          // of workers that held a lease
	Pauses        int     `json:"pauses"`         // of workers that held a lease, until past its end
	Seconds       float64 `json:"seconds"`
	OK            bool    `json:"ok"`
}

func (c Config) check() error {
	if c.Payments < MinPayments || c.Payments > MaxPayments {
		return &pacht.InvalidError{Field: "payments", Value: strconv.Itoa(c.Payments), Bound: "1 to 100,000"}
	}
	if c.Postgres != "" {
		u, err := url.Parse(c.Postgres)
		if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
			return &pacht.InvalidError{Field: "db", Bound: "postgres://USER@HOST/NAME, or nothing: the demo makes a fresh SQLite file, kept with --keep FILE"}
		}
	}
	for _, path := range c.keeps() {
		if _, err := os.Lstat(path); err == nil {
			return &pacht.InvalidError{Field: "keep", Value: strconv.Quote(path), Bound: "a file that is not there yet: the demo starts with a fresh one"}
		}
	}
	return nil
}

// keeps are the files that stay.
func (c Config) keeps() []string {
	switch {
	case c.Keep == "":
		return nil
	case c.Postgres != "":
		return []string{c.Keep + LedgerSuffix}
	}
	return []string{c.Keep, c.Keep + LedgerSuffix}
}

// LedgerSuffix is added to Config.Keep for the name of the provider's ledger.
const LedgerSuffix = ".provider.jsonl"

// Run runs the demo. An error means that it could not be run to its end; what it found out is
// in the result. When it returns, no process that it started is left, and no file that is not
// to be kept.
func Run(ctx context.Context, cfg Config) (res Result, err error) {
	if err := cfg.check(); err != nil {
		return Result{}, err
	}
	r := newRun(cfg)
	defer func() {
		if failed := r.close(); failed != nil {
			res.OK = false
			err = errors.Join(err, failed)
		}
	}()
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"make the database", r.makeDatabase},
		{"start the provider", r.startProvider},
		{"start the workers", r.startWorkers},
		{"run", r.disturbUntilDone},
		{"reconcile", r.heal},
		{"stop the workers", r.stopWorkers},
		{"compare", r.compare},
	} {
		if err := step.do(ctx); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			return Result{}, fmt.Errorf("demo: %s: %w", step.name, err)
		}
	}
	return r.result, nil
}
