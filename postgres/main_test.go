package postgres

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/pgtest"
)

func TestMain(m *testing.M) {
	if url := os.Getenv("PACHT_TEST_MIGRATE"); url != "" {
		if err := migrateInChild(url); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	pgtest.Main(m)
}

// newStore is storeAt on a fresh database.
func newStore(t *testing.T) (*Store, *pgxpool.Pool) {
	t.Helper()
	return storeAt(t, pgtest.Database(t), Config{})
}

// storeAt is a migrated store on a pool of its own; its rules are checked at the end.
func storeAt(t *testing.T, url string, cfg Config, change ...func(*pgxpool.Config)) (*Store, *pgxpool.Pool) {
	t.Helper()
	s, pool := openAt(t, url, cfg, change...)
	t.Cleanup(func() { check(t, s) })
	return s, pool
}

// openAt is a migrated store on a pool of its own.
func openAt(t *testing.T, url string, cfg Config, change ...func(*pgxpool.Config)) (*Store, *pgxpool.Pool) {
	t.Helper()
	pool := poolAt(t, url, change...)
	s, err := New(pool, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if _, err := s.MigrateUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s, pool
}

func poolAt(t *testing.T, url string, change ...func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range change {
		f(cfg)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// check asserts that no stored fact breaks a rule.
func check(t *testing.T, s *Store) {
	t.Helper()
	if t.Failed() {
		return
	}
	found, err := s.Check(context.Background())
	if err != nil {
		t.Errorf("check: %v", err)
	}
	for _, v := range found {
		t.Errorf("check: %s, job %d: %s", v.Rule, v.Job, v.Detail)
	}
}

// mode sets how the caller's pool runs statements.
func mode(m pgx.QueryExecMode) func(*pgxpool.Config) {
	return func(cfg *pgxpool.Config) { cfg.ConnConfig.DefaultQueryExecMode = m }
}

// setting sets a server's setting for each session of a URL.
func setting(t *testing.T, database string, settings ...string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	for _, s := range settings {
		q.Set("options", q.Get("options")+" -c "+s)
	}
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20") // pgx takes a plus for a plus
	return u.String()
}

type charge struct {
	N int `json:"n"`
}

func (charge) Kind() string { return "charge" }

// enqueue stores n jobs, none of which may be refused.
func enqueue(t *testing.T, s *Store, n int, opts ...pacht.Option) []pacht.ID {
	t.Helper()
	jobs := make([]pacht.NewJob, n)
	for i := range jobs {
		jobs[i] = pacht.New(charge{i}, opts...)
	}
	answers, err := s.Enqueue(t.Context(), jobs)
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]pacht.ID, n)
	for i, a := range answers {
		if a.Err != nil {
			t.Fatal(a.Err)
		}
		ids[i] = a.ID
	}
	return ids
}

func request(owner string, limit int) pacht.ClaimRequest {
	return pacht.ClaimRequest{Owner: owner, Queue: pacht.DefaultQueue, Kinds: []string{"charge"}, Limit: limit}
}

func claim(t *testing.T, s *Store, limit int) []pacht.JobInfo {
	t.Helper()
	claims, err := s.Claim(t.Context(), request("owner", limit))
	if err != nil {
		t.Fatal(err)
	}
	return claims.Jobs
}

// held is one job in the hands of "owner".
func held(t *testing.T, s *Store, opts ...pacht.Option) pacht.JobInfo {
	t.Helper()
	id := enqueue(t, s, 1, opts...)[0]
	job, ok, err := s.ClaimID(t.Context(), "owner", id)
	if err != nil || !ok {
		t.Fatalf("claim job %d: %v, %v", id, ok, err)
	}
	return job
}

func settlements(jobs []pacht.JobInfo, outcome pacht.Outcome) []pacht.Settlement {
	list := make([]pacht.Settlement, len(jobs))
	for i, j := range jobs {
		list[i] = pacht.Settlement{Ref: j.Ref(), Outcome: outcome}
	}
	return list
}

// complete settles jobs, each of which must be accepted.
func complete(t *testing.T, s *Store, jobs []pacht.JobInfo) {
	t.Helper()
	answers, err := s.Settle(t.Context(), settlements(jobs, pacht.OutcomeCompleted))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range answers {
		if a.Err != nil || a.Status != pacht.Completed {
			t.Fatalf("settle %s: %+v", a.Ref, a)
		}
	}
}

// value is the one value that a statement answers, as text.
func value(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) string {
	t.Helper()
	var v any
	if err := pool.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return fmt.Sprint(v)
}

func execute(t *testing.T, pool *pgxpool.Pool, sql string) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
