package database

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/sqlite"
)

func parse(rawURL string) (target, error) {
	scheme, rest, ok := strings.Cut(rawURL, ":")
	if !ok {
		// It may be a DSN with a password in it, so only a plain word is repeated.
		return target{}, refuse(word(rawURL))
	}
	switch strings.ToLower(scheme) {
	case "sqlite":
		return parseFile(rest)
	case "postgres", "postgresql":
		return parseServer(rawURL)
	}
	return target{}, refuse(word(scheme + ":..."))
}

func parseFile(rest string) (target, error) {
	path, query, _ := strings.Cut(rest, "?")
	if after, ok := strings.CutPrefix(path, "//"); ok {
		if !strings.HasPrefix(after, "/") {
			// It may be a server's, with a password in it.
			return target{}, refuse("sqlite://... (two slashes name a host)")
		}
		path = after
	}
	if path == "" || path == ":memory:" {
		return target{}, refuse("sqlite:" + path + " (no file)")
	}
	if strings.ContainsRune(path, 0) {
		return target{}, refuse("a file name with NUL")
	}
	opts, err := url.ParseQuery(query)
	if err != nil {
		return target{}, refuse(fmt.Sprintf("options that do not parse, %.60q,", query))
	}
	prefix, err := single(opts, "prefix")
	if err != nil {
		return target{}, err
	}
	t := target{file: path, prefix: prefix}
	opts.Del("prefix")
	for name := range opts {
		return target{}, &pacht.InvalidError{Field: "db", Value: fmt.Sprintf("the option %q", name), Bound: "for SQLite only prefix=NAME"}
	}
	// Here, so that a file which is not there yet does not hide it.
	if err := sqlite.ValidPrefix(t.prefix); err != nil {
		return target{}, err
	}
	return t, nil
}

func parseServer(rawURL string) (target, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		// The error of url.Parse repeats the URL, and the password with it.
		return target{}, refuse("a postgres URL that does not parse (is the password percent-encoded?)")
	}
	// What stands behind a # goes nowhere: mostly it is the rest of a password.
	if strings.Contains(rawURL, "#") {
		return target{}, refuse("a postgres URL with a # (is the password percent-encoded?)")
	}
	if u.Opaque != "" {
		return target{}, refuse("a postgres URL without // before its host")
	}
	if u.Scheme+"://" == strings.ToLower(rawURL) {
		return target{}, refuse("a postgres URL that names neither a host nor a database")
	}
	// url.Query passes over what it cannot read: an option such as sslmode would be lost.
	opts, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return target{}, refuse("a postgres URL whose options do not parse (a semicolon, or a percent sign that is not encoded?)")
	}
	schema, err := single(opts, "schema")
	if err != nil {
		return target{}, err
	}
	t := target{schema: schema}
	if pw, ok := u.User.Password(); ok {
		t.password = pw
	} else {
		t.password = opts.Get("password")
	}
	if opts.Has("schema") {
		opts.Del("schema")
		u.RawQuery = opts.Encode()
	}
	t.url = u.String()
	return t, nil
}

// single is the value of an option of ours, which may not be said twice.
func single(opts url.Values, name string) (string, error) {
	if said := opts[name]; len(said) > 1 {
		return "", &pacht.InvalidError{Field: "db", Value: fmt.Sprintf("%s twice, as %.60q and %.60q,", name, said[0], said[1]), Bound: "each option of ours once"}
	}
	return opts.Get(name), nil
}

func refuse(value string) error {
	return &pacht.InvalidError{Field: "db", Value: value, Bound: Forms}
}

// word repeats a refused value only as far as it can hold no secret.
func word(s string) string {
	if s == "" {
		return "an empty name"
	}
	if end := strings.IndexAny(s, "@=? \t\r\n"); end >= 0 {
		s = s[:end] + "..."
	}
	if len(s) > 60 {
		s = s[:60] + "..."
	}
	return fmt.Sprintf("%q", s)
}
