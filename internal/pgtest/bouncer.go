package pgtest

import (
	"testing"

	"github.com/pacht-queue/pacht/internal/pgserver"
)

// Bouncer starts a PgBouncer in transaction mode in front of a database, with 3 server
// connections and no support for prepared statements, and returns the URL through it. Settings
// are lines of its configuration.
func Bouncer(t testing.TB, database string, settings ...string) string {
	t.Helper()
	b, err := pgserver.StartBouncer(t.Context(), database, settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Remove(); err != nil {
			t.Errorf("pgtest: pgbouncer: %v", err)
		}
	})
	return b.URL()
}
