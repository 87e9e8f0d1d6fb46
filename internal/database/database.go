// Package database opens the store that a URL names: what the command and the examples have
// in common.
package database

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/postgres"
	"github.com/pacht-queue/pacht/sqlite"
)

// Forms is what a database's URL may look like, for help and refusals.
const Forms = "postgres://USER@HOST/NAME, postgresql://... (?schema=NAME) or sqlite:FILE (?prefix=NAME)"

// Database is a store that can bring its own schema up.
type Database interface {
	pacht.Store
	pacht.Migrator
}

// Open opens the store that a URL names. Its options stand in the URL: "?schema=NAME" for
// PostgreSQL, "?prefix=NAME" for SQLite. A SQLite file that is not there is made. No error
// shows a password.
func Open(ctx context.Context, rawURL string) (Database, error) {
	t, err := parse(rawURL)
	if err != nil {
		return nil, err
	}
	if t.file != "" {
		s, err := sqlite.Open(t.file, sqlite.Config{Prefix: t.prefix})
		if err != nil {
			return nil, err // not s: a nil *Store in an interface is not nil
		}
		return s, nil
	}
	s, err := postgres.Open(ctx, t.url, postgres.Config{Schema: t.schema})
	var unread *pgconn.ParseConfigError
	switch {
	case errors.As(err, &unread):
		return nil, refuse(t.redact(unread).Error())
	case err != nil:
		return nil, t.redact(err)
	}
	return s, nil
}

// OpenExisting is Open for those who must not make a new file: a missing one is a missing
// schema (pacht.ErrSchema).
func OpenExisting(ctx context.Context, rawURL string) (Database, error) {
	t, err := parse(rawURL)
	if err != nil {
		return nil, err
	}
	if t.file != "" {
		if _, err := os.Stat(t.file); errors.Is(err, fs.ErrNotExist) {
			return nil, &pacht.SchemaError{Detail: fmt.Sprintf(`there is no file %q: run "pacht migrate up" to make it`, t.file)}
		}
	}
	return Open(ctx, rawURL)
}

// IsSQLite says whether a URL names a file.
func IsSQLite(rawURL string) bool {
	t, err := parse(rawURL)
	return err == nil && t.file != ""
}

// Location is what a URL names: a file and the prefix of its tables, or a server and its schema.
type Location struct {
	File, Prefix string
	URL, Schema  string // the URL without our own options; it may hold a password
}

// Locate reads a URL, for those who look at the tables themselves. What the URL leaves out has
// its default.
func Locate(rawURL string) (Location, error) {
	t, err := parse(rawURL)
	if err != nil {
		return Location{}, err
	}
	if t.file != "" {
		return Location{File: t.file, Prefix: cmp.Or(t.prefix, sqlite.DefaultPrefix)}, nil
	}
	return Location{URL: t.url, Schema: cmp.Or(t.schema, "pacht")}, nil
}

// Describe names a database for people and logs, without password and options.
func Describe(rawURL string) string {
	t, err := parse(rawURL)
	switch {
	case err != nil:
		return "unknown"
	case t.file != "":
		path, err := filepath.Abs(t.file)
		if err != nil {
			path = t.file
		}
		return "sqlite:" + path
	}
	u, err := url.Parse(t.url)
	if err != nil {
		return "postgres"
	}
	u.RawQuery = ""
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	return u.String()
}

// target is what a URL means: a file, or a PostgreSQL URL without our own options.
type target struct {
	file, prefix string
	url, schema  string
	password     string
}

// redact takes the password out of the text of an error that a driver made.
func (t target) redact(err error) error {
	text := err.Error()
	if t.password == "" || !strings.Contains(text, t.password) {
		return err
	}
	return &redacted{strings.ReplaceAll(text, t.password, "xxxxx"), err}
}

// redacted is an error with another text. What is behind it is there for errors.As: a password
// that is also the user's name stands in most of what a server says.
type redacted struct {
	text string
	err  error
}

func (r *redacted) Error() string { return r.text }
func (r *redacted) Unwrap() error { return r.err }

// Hopeless says that a server has answered and that asking again cannot help: it wants another
// password or user, or does not have the database, or gives no rights. One that is down, starting
// or full is not hopeless.
func Hopeless(err error) bool {
	var said *pgconn.PgError
	return errors.As(err, &said) && slices.Contains([]string{
		"28000", // invalid_authorization_specification
		"28P01", // invalid_password
		"3D000", // invalid_catalog_name
		"42501", // insufficient_privilege
	}, said.Code)
}

// MigrationSQL is the SQL of all migrations for a database that need not be there.
func MigrationSQL(ctx context.Context, rawURL string) (sql string, err error) {
	t, err := parse(rawURL)
	if err != nil {
		return "", err
	}
	if t.file != "" {
		// A store of SQLite makes its file, so it gets one that nobody misses.
		dir, err := os.MkdirTemp("", "pacht-sql-")
		if err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		rawURL = "sqlite:" + filepath.Join(dir, "none.db")
		if t.prefix != "" {
			rawURL += "?prefix=" + url.QueryEscape(t.prefix)
		}
	}
	if t.file == "" {
		return t.migrationSQL(ctx)
	}
	db, err := Open(ctx, rawURL)
	if err != nil {
		return "", err
	}
	return db.MigrationSQL(), db.Close()
}

// migrationSQL makes a store on a pool that opens no connection.
func (t target) migrationSQL(ctx context.Context) (sql string, err error) {
	pool, err := pgxpool.New(ctx, t.url)
	if err != nil {
		return "", refuse(t.redact(err).Error())
	}
	defer pool.Close()
	s, err := postgres.New(pool, postgres.Config{Schema: t.schema})
	if err != nil {
		return "", err
	}
	return s.MigrationSQL(), s.Close()
}
