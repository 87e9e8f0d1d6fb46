package net_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/faults/crew"
	"github.com/pacht-queue/pacht/faults/lab"
	"github.com/pacht-queue/pacht/postgres"
	"github.com/pacht-queue/pacht/sqlite"
)

// store is a store as these tests need it.
type store interface {
	pacht.Store
	pacht.Migrator
}

// twin is one of two that go through the same: one without a fault, one whose answer is lost.
// All that they name bears their own name, so that both stand in one database and their states
// can be compared.
type twin struct {
	*testing.T
	ctx  context.Context
	name string
	on   pacht.Store // on which the verb is called
	base store       // all else
	pool *pgxpool.Pool
	ids  []pacht.ID
	held pacht.JobInfo // what prepare claimed, if it did

	begin func() (pacht.Tx, func() error) // a caller's transaction on the verb's connections
	age   func(d time.Duration)           // of leases of this twin's jobs

	migrate func() error // of tables of its own
}

// row is one verb whose answer is lost.
type row struct {
	verb string // the method
	name string // which form of it
	// prepare makes what the verb needs; act calls it.
	prepare, act func(*twin) error
	// inside: on PostgreSQL the store repeats it itself and the caller gets an answer.
	inside bool
	// again is what a caller does whose call went unanswered; nil: calls act again.
	again func(*twin) error
	// refused says which answer to the repeat is as good as a yes; nil: none.
	refused func(error) bool
	// twice: an act by hand stands in the audit, and a step among the steps, as often as it was
	// asked for.
	twice bool
}

// R4, R5, R9, R11, S022, S046: the commit of every verb that writes goes through and its answer
// is lost. The caller does what the verb's contract says, and what is stored then is what a run
// without a fault leaves.
func TestEveryVerbWhoseAnswerIsLostCanBeRepeated(t *testing.T) {
	t.Parallel()
	seed := lab.Seed(t)
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		url, base := crew.Database(t)
		cut := newCutter(t, url)
		through := crew.Open(t, cut.url, postgres.Config{})
		pool, err := pgxpool.New(t.Context(), cut.url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		for _, torn := range []bool{false, true}[:lab.Scale(1, 2)] {
			for _, r := range lab.Draw(t, seed, 10, rows()) {
				t.Run(fmt.Sprintf("%s, torn %t", r.title(), torn), func(t *testing.T) {
					twinOf := func(name string) *twin {
						w := &twin{T: t, ctx: t.Context(), name: name, on: through, base: base, pool: pool}
						w.begin = w.beginOn(pool, through)
						w.age = func(d time.Duration) { agePostgres(w, url, d) }
						w.migrate = func() error { return migrateSchema(w, pool) }
						return w
					}
					compare(t, r, twinOf, func(w *twin, act func() error) error {
						before := cut.count()
						cut.once(torn)
						err := act()
						cut.arm(false, nil)
						if cut.count() != before+1 {
							t.Fatalf("%d answers were lost", cut.count()-before)
						}
						switch {
						case r.inside && err != nil:
							t.Errorf("not repeated inside: %v", err)
						case !r.inside && err == nil:
							t.Error("an answer came, though it was lost: was the verb repeated that must not be?")
						case !r.inside && !strings.HasSuffix(r.verb, "Tx") && !errors.Is(err, pacht.ErrUnknown):
							t.Errorf("the answer is not ErrUnknown: %v", err)
						}
						return err
					})
				})
			}
		}
		crew.Checked(t, base)
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		s, err := sqlite.Open(filepath.Join(t.TempDir(), "pacht.db"), sqlite.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		if _, err := s.MigrateUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, r := range rows() {
			t.Run(r.title(), func(t *testing.T) {
				twinOf := func(name string) *twin {
					w := &twin{T: t, ctx: t.Context(), name: name, on: s, base: s}
					w.begin = func() (pacht.Tx, func() error) {
						tx, err := s.DB().BeginTx(w.ctx, nil)
						if err != nil {
							t.Fatal(err)
						}
						return s.Tx(tx), tx.Commit
					}
					w.age = func(d time.Duration) { ageSQLite(w, s, d) }
					w.migrate = func() error { _, err := s.MigrateUp(w.ctx); return err }
					return w
				}
				// No network stands before a file: the answer is lost between it and the caller.
				compare(t, r, twinOf, func(w *twin, act func() error) error {
					if err := act(); err != nil {
						t.Fatalf("the verb failed: %v", err)
					}
					return pacht.ErrUnknown
				})
			})
		}
		crew.Checked(t, s)
	})
}

func (r row) title() string {
	if r.name == "" {
		return r.verb
	}
	return r.verb + " " + r.name
}

// compare runs both twins and compares what they leave.
func compare(t *testing.T, r row, twinOf func(name string) *twin, lose func(*twin, func() error) error) {
	t.Helper()
	play := func(w *twin, how func(*twin, func() error) error) string {
		if r.prepare != nil {
			if err := r.prepare(w); err != nil {
				t.Fatalf("prepare %s: %v", w.name, err)
			}
		}
		if err := how(w, func() error { return r.act(w) }); err != nil {
			again := r.again
			if again == nil {
				again = r.act
			}
			if err := again(w); err != nil && (r.refused == nil || !r.refused(err)) {
				t.Errorf("the repeat: %v", err)
			}
		}
		return w.state(r.twice)
	}
	id := regexp.MustCompile(`\W+`).ReplaceAllString(t.Name(), "-")
	id = id[max(0, len(id)-80):]
	want := play(twinOf("well-"+id), func(_ *twin, act func() error) error {
		if err := act(); err != nil {
			t.Fatalf("without a fault: %v", err)
		}
		return nil
	})
	got := play(twinOf("sick-"+id), lose)
	if got != want {
		t.Errorf("after a lost answer\n%s\nwithout a fault\n%s", got, want)
	}
}

var stamps = regexp.MustCompile(`"(created_at|claimed_at|lease_until|finished_at|ended_at|at|first_called_at|called_at|answered_at|first_seen|last_seen|started_at|beat_at|stopped_at|last_until|not_before|next_at)":"[^"]*"`)
var numbers = regexp.MustCompile(`"(id|job)":"(\d+)"`)
var waits = regexp.MustCompile(`"(run_at|next_run_at)":"([^"]*)"`)

// state is all that the store can tell of the twin: ids become places, names lose whose they
// are, times only say whether they are set; those to wait for, how long.
func (w *twin) state(twice bool) string {
	w.Helper()
	var b strings.Builder
	now, err := w.base.Now(w.ctx)
	if err != nil {
		w.Fatal(err)
	}
	jobs, err := w.base.Jobs(w.ctx, pacht.Filter{Queue: w.name, Limit: 1000})
	if err != nil {
		w.Fatal(err)
	}
	ids := slices.Clone(w.ids)
	for _, j := range jobs {
		ids = append(ids, j.ID)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	say := func(what string, v any, err error) {
		w.Helper()
		if err != nil && !errors.Is(err, pacht.ErrNotFound) {
			w.Fatalf("%s: %v", what, err)
		}
		raw, jsonErr := json.Marshal(v)
		if jsonErr != nil {
			w.Fatal(jsonErr)
		}
		text := stamps.ReplaceAllString(string(raw), `"$1":"set"`)
		text = waits.ReplaceAllStringFunc(text, func(found string) string {
			part := waits.FindStringSubmatch(found)
			at, err := time.Parse(time.RFC3339Nano, part[2])
			if err != nil {
				return found
			}
			return fmt.Sprintf("%q:%q", part[1], max(at.Sub(now), 0).Round(time.Minute))
		})
		text = strings.ReplaceAll(text, w.name, "twin")
		text = numbers.ReplaceAllStringFunc(text, func(found string) string {
			part := numbers.FindStringSubmatch(found)
			return fmt.Sprintf("%q:%d", part[1], slices.IndexFunc(ids, func(id pacht.ID) bool { return id.String() == part[2] }))
		})
		fmt.Fprintf(&b, "%s: %s\n", what, text)
	}
	const most = 20 // of hundreds the first ones tell, and how many there are
	for place, id := range ids[:min(len(ids), most)] {
		job, err := w.base.Job(w.ctx, id)
		say(fmt.Sprint("job ", place), job, err)
		attempts, err := w.base.Attempts(w.ctx, id)
		say("attempts", attempts, err)
		steps, err := w.base.Steps(w.ctx, id)
		say("steps", once(steps, twice, func(a, b pacht.Step) bool { return a.Token == b.Token && a.Name == b.Name }), err)
		reports, err := w.base.Reports(w.ctx, id)
		say("reports", reports, err)
		effects, err := w.base.Effects(w.ctx, id)
		say("effects", effects, err)
		audit, err := w.base.Audit(w.ctx, id)
		say("audit", once(audit, twice, sameAct), err)
	}
	say("number of jobs", len(jobs), nil)
	breaks, err := w.base.Breaks(w.ctx, pacht.BreakFilter{Reference: w.name, Ended: true})
	say("breaks", breaks, err)
	decisions, err := w.base.Decisions(w.ctx, w.name)
	say("decisions", decisions, err)
	workers, err := w.base.Workers(w.ctx)
	say("workers", slices.DeleteFunc(workers, func(i pacht.WorkerInfo) bool { return i.Owner != w.name }), err)
	queues, err := w.base.Queues(w.ctx)
	say("queues", slices.DeleteFunc(queues, func(q pacht.QueueInfo) bool { return q.Name != w.name }), err)
	audit, err := w.base.Audit(w.ctx, 0)
	say("audit of queues", once(slices.DeleteFunc(audit, func(a pacht.AuditEntry) bool { return a.Queue != w.name }), twice, sameAct), err)
	return b.String()
}

// once leaves out what was asked for a second time, if it may stand there.
func once[E any](list []E, twice bool, same func(a, b E) bool) []E {
	if !twice {
		return list
	}
	return slices.CompactFunc(list, same)
}

func sameAct(a, b pacht.AuditEntry) bool { return a.Act == b.Act && a.Reason == b.Reason }

// migrateSchema makes the tables in a schema of the twin's own.
func migrateSchema(w *twin, pool *pgxpool.Pool) error {
	s, err := postgres.New(pool, postgres.Config{Schema: w.name[max(0, len(w.name)-30):] + w.name[:4]})
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := s.MigrateUp(w.ctx); err != nil {
		return err
	}
	if found, wanted, err := s.Schema(w.ctx); err != nil || found != wanted {
		return fmt.Errorf("the schema has version %d, want %d: %w", found, wanted, err)
	}
	return nil
}

func (w *twin) beginOn(pool *pgxpool.Pool, s *postgres.Store) func() (pacht.Tx, func() error) {
	return func() (pacht.Tx, func() error) {
		tx, err := pool.Begin(w.ctx)
		if err != nil {
			w.Fatal(err)
		}
		w.Cleanup(func() { _ = tx.Rollback(context.Background()) })
		return s.Tx(tx), func() error { return tx.Commit(w.ctx) }
	}
}

// agePostgres moves the leases of the twin's jobs back in time.
func agePostgres(w *twin, url string, d time.Duration) {
	conn, err := pgx.Connect(w.ctx, url)
	if err != nil {
		w.Fatal(err)
	}
	defer conn.Close(w.ctx)
	_, err = conn.Exec(w.ctx, `
		UPDATE pacht.leases
		SET claimed_at = claimed_at - $1::interval,
		    lease_until = lease_until - $1::interval
		WHERE queue = $2 AND status = 'Processing'`, d, w.name)
	if err != nil {
		w.Fatal(err)
	}
}

func ageSQLite(w *twin, s *sqlite.Store, d time.Duration) {
	_, err := s.DB().ExecContext(w.ctx, `
		UPDATE pacht_leases
		SET claimed_at = claimed_at - ?1,
		    lease_until = lease_until - ?1
		WHERE queue = ?2 AND status = 'Processing'`, d.Milliseconds(), w.name)
	if err != nil {
		w.Fatal(err)
	}
}

// reads are the methods that write nothing, and so have no answer that could matter.
var reads = []string{
	"Attempts", "Audit", "BatchSize", "BreakCounts", "Breaks", "Check", "ClaimSQL", "Close", "Counts", "Decisions", "Due", "Effects",
	"HeldBy", "Job", "Jobs", "LeaseStats", "Listen", "Now", "OpenEffects", "Queues", "Reports", "Schema", "Steps", "Waiting",
	"Watch", "Workers", "MigrationSQL", "Migrations",
}

// A verb that comes later has its row here, or this says that one is missing.
func TestEveryVerbThatWritesHasARowOfLostAnswers(t *testing.T) {
	have := map[string]bool{}
	for _, r := range rows() {
		have[r.verb] = true
	}
	known := map[string]bool{}
	for _, of := range []reflect.Type{reflect.TypeFor[pacht.Store](), reflect.TypeFor[pacht.Tx](), reflect.TypeFor[pacht.Migrator]()} {
		for i := range of.NumMethod() {
			name := of.Method(i).Name
			known[name] = true
			if have[name] == slices.Contains(reads, name) {
				t.Errorf("%s.%s: in a row of lost answers: %t; among those that only read: %t", of, name, have[name], !have[name])
			}
		}
	}
	for name := range have {
		if !known[name] {
			t.Errorf("a row names %s, and there is no such verb", name)
		}
	}
}
