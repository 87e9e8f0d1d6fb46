package failover

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pacht-queue/pacht/faults/lab"
	"github.com/pacht-queue/pacht/internal/netfault"
	"github.com/pacht-queue/pacht/internal/pgtest"
)

// pair is a primary and its standby, with Pacht's tables in a database of the name lab.
type pair struct {
	primary, standby *pgtest.Server
	link             *netfault.Proxy // between the two
	both             string          // a URL of both hosts, the primary first
}

const named = "lab"

func startPair(t *testing.T, synchronous bool) *pair {
	t.Helper()
	// A server that is killed leaves no shared memory behind with mmap.
	p := &pair{primary: pgtest.NewServer(t, "dynamic_shared_memory_type=mmap")}
	p.link = netfault.New(t, p.primary.Addr())
	p.standby = p.primary.Standby(t, "b", p.link.Addr())
	if _, err := p.primary.Create(t.Context(), named); err != nil {
		t.Fatal(err)
	}
	p.both = fmt.Sprintf("postgres://postgres@%s,%s/%s?sslmode=disable&target_session_attrs=read-write",
		p.primary.Addr(), p.standby.Addr(), named)
	lab.Fresh(t, p.primary.URL(named))
	if synchronous {
		admin := p.primary.URL("postgres")
		lab.Exec(t, admin, "ALTER SYSTEM SET synchronous_standby_names = 'b'")
		lab.Exec(t, admin, "SELECT pg_reload_conf()")
		lab.Await(t, 20*time.Second, "the standby is synchronous", func() bool {
			return ask[int](t, admin, "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == 1
		})
	}
	t.Cleanup(func() {
		// A stopped server cannot be asked to end.
		if err := p.primary.Thaw(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// ask answers the one value of a query, on a connection of its own.
func ask[T any](t *testing.T, url, query string, args ...any) (value T) {
	t.Helper()
	read(t, url, func(rows pgx.Rows) error { return rows.Scan(&value) }, query, args...)
	return value
}

// read calls row for each row of a query, on a connection of its own.
func read(t *testing.T, url string, row func(pgx.Rows) error, query string, args ...any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	rows, err := conn.Query(ctx, query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// gap is for how long nothing of a kind was written around a moment, by the servers' clock.
func gap(t *testing.T, url string, moment time.Time, query string) time.Duration {
	t.Helper()
	var before, after *time.Time
	read(t, url, func(rows pgx.Rows) error { return rows.Scan(&before, &after) },
		fmt.Sprintf("SELECT max(at) FILTER (WHERE at < $1), min(at) FILTER (WHERE at >= $1) FROM (%s) AS w (at)", query), moment)
	if before == nil || after == nil {
		t.Fatalf("nothing on one side of the fault: %s", query)
	}
	return after.Sub(*before).Round(time.Millisecond)
}

// interruption is how long the queue stood still, for each verb.
func interruption(t *testing.T, url string, moment time.Time) []lab.Fact {
	t.Helper()
	var facts []lab.Fact
	for _, verb := range []struct{ name, query string }{
		{"enqueue", "SELECT created_at FROM pacht.jobs"},
		{"claim", "SELECT claimed_at FROM pacht.attempts"},
		{"settle", "SELECT ended_at FROM pacht.attempts WHERE outcome <> 'Expired'"},
	} {
		facts = append(facts, lab.F(verb.name+"_gap", gap(t, url, moment, verb.query)))
	}
	return facts
}
