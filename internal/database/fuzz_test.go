package database

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/pacht-queue/pacht"
)

// What --db says is taken whole or refused: no option of it is lost, a password stands in no error
// and in no description, and an error is one line that names what is allowed.
func FuzzURL(f *testing.F) {
	for _, s := range []string{
		"sqlite:pacht.db", "SQLITE:a b.db?prefix=q_", "sqlite:///var/p.db", "sqlite://host/p.db", "sqlite:p.db?prefix=a&prefix=b", "sqlite:p.db?prefix=%", "sqlite:a\nb", "sqlite::memory:", "sqlite:",
		"postgres://ann:SECRET@h/db?schema=s&sslmode=verify-full", "postgresql://ann:SECRET@h1,h2:5/db", "postgres://h/db?password=SECRET", "postgres:ann:SECRET@h/db", "postgres://h/db?schema=a;b&sslmode=verify-full",
		"postgres://h/db?sslmode=verify-full&sslmode=disable&schema=s", "postgres://h/db?schema=a&schema=b", "postgres://ann:SECRET%@h/db", "postgres://h/db#SECRET", "postgres://ann:5#SECRET@h/db", "postgres:///db?host=/run/pg&schema=The+%22Q%22",
		"mysql://root:SECRET@h/db", "host=h password=SECRET", "", "?", "sqlite", "postgres", "postgres://[::1]:5432/db", "postgres://ann:SECRET@h:port/db", "sqlite:p.db?schema=x",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := parse(raw)
		if err != nil {
			var invalid *pacht.InvalidError
			if !errors.As(err, &invalid) || invalid.Field == "" || invalid.Bound == "" {
				t.Fatalf("%q: %v", raw, err)
			}
			if text := err.Error(); !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%q: an error that is no line: %q", raw, text)
			}
			return
		}
		if (got.file == "") == (got.url == "") {
			t.Fatalf("%q is both or neither: %+v", raw, got)
		}
		_, query, _ := strings.Cut(raw, "?")
		asked, queryErr := url.ParseQuery(query)
		if queryErr != nil {
			t.Errorf("%q was taken as %+v, and its options do not parse: %v", raw, got, queryErr)
		}
		for _, ours := range []string{"schema", "prefix"} {
			if len(asked[ours]) > 1 {
				t.Errorf("%q was taken as %+v, and names the %s twice", raw, got, ours)
			}
		}
		if got.file != "" {
			if got.prefix != asked.Get("prefix") || len(asked) > 1 {
				t.Errorf("%q became %+v", raw, got)
			}
			return
		}
		u, err := url.Parse(got.url)
		if err != nil || got.schema != asked.Get("schema") {
			t.Fatalf("%q became %+v: %v", raw, got, err)
		}
		asked.Del("schema")
		if kept := u.Query(); kept.Encode() != asked.Encode() {
			t.Errorf("options of %q became %v", raw, kept)
		}
		if got.password != "" && len(got.password) > 3 && u.User.Username() != got.password && !strings.Contains(u.Host+u.Path, got.password) && strings.Contains(Describe(raw), got.password) {
			t.Errorf("%q is described as %q", raw, Describe(raw))
		}
	})
}

// Wherever in a URL a password may stand, it stands nowhere else.
func FuzzPassword(f *testing.F) {
	for _, scheme := range []string{"postgres", "sqlite", "mysql", "Postgres", "ann", ""} {
		for _, rest := range []string{"@h/db", "@h:port/db", "%@h/db", "@h/db?schema=s;", "@h\n/db", "@", "@h/db?%", "@[/db", "5#@h/db"} {
			f.Add(scheme, "ann", rest)
		}
	}
	f.Fuzz(func(t *testing.T, scheme, user, rest string) {
		const secret = "S3cretS3cret"
		if strings.Contains(scheme+user+rest, secret) {
			return
		}
		for _, raw := range []string{
			scheme + "://" + user + ":" + secret + rest,
			scheme + ":" + user + ":" + secret + rest,
			scheme + "://h/db?password=" + secret + "&" + rest,
			"host=h user=" + user + " password=" + secret + " " + rest,
		} {
			if said := Describe(raw); strings.Contains(said, secret) && !strings.HasPrefix(strings.ToLower(raw), "sqlite:") {
				t.Errorf("%q is described as %q", raw, said)
			}
			if _, err := parse(raw); err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("%q: %v", raw, err)
			}
		}
	})
}
