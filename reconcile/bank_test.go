package reconcile_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/pgtest"
	"github.com/pacht-queue/pacht/money"
	"github.com/pacht-queue/pacht/postgres"
	"github.com/pacht-queue/pacht/reconcile"
	"github.com/pacht-queue/pacht/sqlite"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type database interface {
	pacht.Store
	pacht.Migrator
	Age(ctx context.Context, d time.Duration) error
}

// bank is a small payments system on a real database: our records, and the one transition that
// changes them.
type bank struct {
	*testing.T
	store database
	db    *sql.DB
	tx    func(*sql.Tx) pacht.Tx
	again func() database // the same database, as another process opens it
	table func(string) string

	psp *provider
	// healing is called in the middle of Heal, before CommitTx.
	healing func(reference string) error
	// find replaces Find for a reference.
	find map[string]func() (reconcile.Record, error)
}

// onBoth runs a test on both databases.
func onBoth(t *testing.T, test func(b *bank)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "bank.db")
		open := func() *sqlite.Store {
			s, err := sqlite.Open(path, sqlite.Config{})
			must(t, err)
			t.Cleanup(func() { must(t, s.Close()) })
			return s
		}
		s := open()
		test(newBank(t, s, s.DB(), s.Tx, func() database { return open() }, func(name string) string { return "pacht_" + name }))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		url := pgtest.Database(t)
		open := func() *postgres.Store {
			s, err := postgres.Open(t.Context(), url, postgres.Config{})
			must(t, err)
			t.Cleanup(func() { must(t, s.Close()) })
			return s
		}
		s := open()
		conn, err := pgx.ParseConfig(url)
		must(t, err)
		db := stdlib.OpenDB(*conn)
		t.Cleanup(func() { must(t, db.Close()) })
		test(newBank(t, s, db, s.SQLTx, func() database { return open() }, func(name string) string { return "pacht." + name }))
	})
}

func newBank(t *testing.T, s database, db *sql.DB, tx func(*sql.Tx) pacht.Tx, again func() database, table func(string) string) *bank {
	_, err := s.MigrateUp(t.Context())
	must(t, err)
	b := &bank{T: t, store: s, db: db, tx: tx, again: again, table: table, psp: newProvider(), find: map[string]func() (reconcile.Record, error){}}
	b.exec(`CREATE TABLE payments (reference text PRIMARY KEY, state text NOT NULL, amount bigint NOT NULL, currency text NOT NULL,
		refunded bigint NOT NULL DEFAULT 0, charged_back bigint NOT NULL DEFAULT 0, at bigint NOT NULL)`)
	b.exec(`CREATE TABLE credits (reference text NOT NULL, what text NOT NULL)`) // a second one would be money lost
	t.Cleanup(func() {
		broken, err := s.Check(context.Background())
		must(t, err)
		for _, v := range broken {
			t.Errorf("rule %s is broken by job %d: %s", v.Rule, v.Job, v.Detail)
		}
	})
	return b
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (b *bank) exec(query string, args ...any) {
	b.Helper()
	_, err := b.db.ExecContext(b.Context(), query, args...)
	must(b, err)
}

// rows is the answer of a query, one line for each row.
func (b *bank) rows(query string, args ...any) string {
	b.Helper()
	rows, err := b.db.QueryContext(b.Context(), query, args...)
	must(b, err)
	defer rows.Close()
	columns, err := rows.Columns()
	must(b, err)
	var lines []string
	for rows.Next() {
		values, dest := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range values {
			dest[i] = &values[i]
		}
		must(b, rows.Scan(dest...))
		var cells []string
		for _, v := range values {
			cells = append(cells, v.String)
		}
		lines = append(lines, strings.Join(cells, "|"))
	}
	must(b, rows.Err())
	return strings.Join(lines, "\n")
}

// everything is all that could be changed.
func (b *bank) everything() string {
	b.Helper()
	all := b.rows("SELECT reference, state, refunded, charged_back FROM payments ORDER BY reference") + "\n" + b.rows("SELECT reference, what FROM credits ORDER BY 1, 2")
	for _, q := range []string{
		"SELECT reference, class, rev, status FROM " + b.table("breaks") + " ORDER BY 1, 2",
		"SELECT reference, class, rev FROM " + b.table("decisions") + " ORDER BY 1, 2, 3",
		"SELECT job_id, token, status FROM " + b.table("leases") + " ORDER BY 1",
		"SELECT job_id, token, outcome FROM " + b.table("attempts") + " ORDER BY 1, 2",
		"SELECT job_id, name, state, rev FROM " + b.table("effects") + " ORDER BY 1, 2",
		"SELECT actor, act, job_id FROM " + b.table("audit") + " ORDER BY audit_id",
		"SELECT job_id FROM " + b.table("jobs") + " ORDER BY 1",
	} {
		all += "\n" + b.rows(q)
	}
	return all
}

func (b *bank) same(what string, got, want any) {
	b.Helper()
	if got != want {
		b.Errorf("%s:\n got  %v\n want %v", what, got, want)
	}
}

// line is values in one line, with a blank between any two.
func line(values ...any) string { return strings.TrimRight(fmt.Sprintln(values...), "\n") }

func euro(minor int64) money.Amount { return money.Amount{Minor: minor, Currency: "EUR"} }

// add makes a payment of ours, of 19.99 EUR, so old.
func (b *bank) add(reference string, state reconcile.State, age time.Duration) {
	b.Helper()
	b.exec("INSERT INTO payments (reference, state, amount, currency, at) VALUES ($1, $2, 1999, 'EUR', $3)", reference, string(state), time.Now().Add(-age).UnixMilli())
}

// state is our record in short.
func (b *bank) state(reference string) string {
	b.Helper()
	return b.rows("SELECT state, refunded FROM payments WHERE reference = $1", reference)
}

func (b *bank) credits() string {
	b.Helper()
	return b.rows("SELECT count(*) FROM credits")
}

type charge struct {
	Payment string `json:"payment"`
}

func (charge) Kind() string { return "charge" }

type mail struct {
	Payment string `json:"payment"`
	What    string `json:"what"`
}

func (mail) Kind() string { return "mail" }

// park makes a job whose outcome is unknown.
func (b *bank) park(args pacht.Args) pacht.JobInfo {
	b.Helper()
	answers, err := b.store.Enqueue(b.Context(), []pacht.NewJob{pacht.New(args)})
	must(b, err)
	must(b, answers[0].Err)
	job, ok, err := b.store.ClaimID(b.Context(), "worker", answers[0].ID)
	if err != nil || !ok {
		b.Fatalf("claim job %d: %v, %v", answers[0].ID, ok, err)
	}
	settled, err := b.store.Settle(b.Context(), []pacht.Settlement{{Ref: job.Ref(), Outcome: pacht.OutcomeUnknown}})
	must(b, err)
	must(b, settled[0].Err)
	return b.job(job.ID)
}

func (b *bank) job(id pacht.ID) pacht.JobInfo {
	b.Helper()
	job, err := b.store.Job(b.Context(), id)
	must(b, err)
	return job
}

// Reference implements reconcile.Ours.
func (b *bank) Reference(job pacht.JobInfo) string {
	switch job.Kind {
	case "charge":
		return strings.TrimSuffix(strings.TrimPrefix(string(job.Args), `{"payment":"`), `"}`)
	case "panics":
		panic("of what kind is this?")
	}
	return ""
}

// config is that of a reconciler in a hurry.
func (b *bank) config(change ...func(*reconcile.Config)) reconcile.Config {
	cfg := reconcile.Config{Store: b.store, Ours: b, Theirs: b.psp, Grace: time.Minute, Rate: 10000, By: "reconciler of " + b.Name()}
	for _, f := range change {
		f(&cfg)
	}
	return cfg
}

func (b *bank) reconciler(change ...func(*reconcile.Config)) *reconcile.Reconciler {
	b.Helper()
	r, err := reconcile.New(b.config(change...))
	must(b, err)
	return r
}

// pass makes one that must come to its end.
func (b *bank) pass(r *reconcile.Reconciler, lane reconcile.Lane) reconcile.Report {
	b.Helper()
	report, err := r.Pass(b.Context(), lane, false)
	must(b, err)
	return report
}

// age lets time pass: for breaks, and for our records.
func (b *bank) age(d time.Duration) {
	b.Helper()
	must(b, b.store.Age(b.Context(), d))
	b.exec("UPDATE payments SET at = at - $1", d.Milliseconds())
}

// breaks is the breaks of a reference in short.
func (b *bank) breaks(reference string) string {
	b.Helper()
	list, err := b.store.Breaks(b.Context(), pacht.BreakFilter{Reference: reference, Ended: true, Limit: 1000})
	must(b, err)
	var all []string
	for _, x := range list {
		all = append(all, x.Class+" "+string(x.Status))
	}
	return strings.Join(all, ", ")
}

// reasons is what was decided on a reference, in short.
func (b *bank) reasons(reference string) string {
	b.Helper()
	list, err := b.store.Decisions(b.Context(), reference)
	must(b, err)
	var all []string
	for _, d := range list {
		all = append(all, fmt.Sprintf("%s %s: %s", d.Class, d.Status, d.Reason))
	}
	return strings.Join(all, "\n")
}
