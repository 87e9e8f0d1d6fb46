package sqlite

import (
	"context"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/pacht-queue/pacht/storetest"
)

func FuzzStored(f *testing.F) {
	s, err := Open(filepath.Join(f.TempDir(), "pacht.db"), Config{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := s.Close(); err != nil {
			f.Error(err)
		}
	})
	if _, err := s.MigrateUp(context.Background()); err != nil {
		f.Fatal(err)
	}
	storetest.Fuzz(f, s)
}

// The prefix stands in every statement, unquoted.
func FuzzPrefix(f *testing.F) {
	for _, s := range []string{"", "pacht_", "q", "Q", "q-", "q;", "1q", "q\n", "ä", "q_______________________________________", "q________________________________________"} {
		f.Add(s)
	}
	plain := regexp.MustCompile(`\A[a-z][a-z0-9_]{0,39}\z`)
	f.Fuzz(func(t *testing.T, s string) {
		if err := ValidPrefix(s); (err == nil) != (s == "" || plain.MatchString(s)) {
			t.Errorf("%q: %v", s, err)
		}
	})
}
