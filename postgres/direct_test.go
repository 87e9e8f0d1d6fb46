package postgres

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pacht-queue/pacht/internal/pgtest"
)

// Prepared statements are left behind on direct connections, and nowhere else (S047).
func TestOnlyDirectConnectionsPrepareStatements(t *testing.T) {
	for name, there := range map[string]struct {
		url  func(testing.TB, string, ...string) string
		mode pgx.QueryExecMode
	}{
		"direct":   {func(_ testing.TB, url string, _ ...string) string { return url }, pgx.QueryExecModeCacheStatement},
		"a pooler": {pgtest.Bouncer, pgx.QueryExecModeCacheDescribe},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := storeAt(t, there.url(t, pgtest.Database(t)), Config{}, mode(pgx.QueryExecModeCacheDescribe))
			enqueue(t, s, 1)
			complete(t, s, claim(t, s, 1))
			conn, err := s.own.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Release()
			if mode := conn.Conn().Config().DefaultQueryExecMode; mode != there.mode {
				t.Errorf("the store's own connections work in mode %s, not %s", mode, there.mode)
			}
			var prepared int
			if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_prepared_statements", pgx.QueryExecModeExec).Scan(&prepared); err != nil {
				t.Fatal(err)
			}
			if direct := there.mode == pgx.QueryExecModeCacheStatement; direct != (prepared > 0) {
				t.Errorf("%d statements are prepared in its session", prepared)
			}
		})
	}
}
