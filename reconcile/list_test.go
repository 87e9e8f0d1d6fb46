package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/reconcile"
)

// listing is a provider that also lists what it has, three to a page.
type listing struct {
	*provider
	fail string // the cursor at which it fails
	each func(cursor string)
}

// List implements reconcile.Lister.
func (l *listing) List(_ context.Context, since time.Time, cursor string) (page []reconcile.Record, next string, err error) {
	if l.each != nil {
		l.each(cursor)
	}
	if l.fail != "" && cursor == l.fail {
		return nil, "", errors.New("502 bad gateway")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var refs []string
	for ref, r := range l.records {
		if ref > cursor && r.At.After(since) || ref == "" && cursor == "" {
			refs = append(refs, ref)
		}
	}
	slices.Sort(refs)
	for _, ref := range refs[:min(3, len(refs))] {
		page = append(page, l.records[ref])
		next = ref
	}
	if len(refs) <= 3 {
		next = ""
	}
	return page, next, nil
}

// S099: a record that is younger than the grace may be of a transaction of ours that is not
// committed yet. Later it is a break, not silence.
func TestRecordThatOnlyTheProviderHasIsABreakAfterTheGrace(t *testing.T) {
	onBoth(t, func(b *bank) {
		b.psp.has("young", reconcile.Succeeded, func(r *reconcile.Record) { r.At = time.Now() })
		b.psp.has("old", reconcile.Succeeded)
		b.psp.has("failed", reconcile.Failed)
		b.psp.has("ancient", reconcile.Succeeded, func(r *reconcile.Record) { r.At = time.Now().Add(-40 * 24 * time.Hour) })
		b.add("known", reconcile.Succeeded, time.Hour)
		b.psp.has("known", reconcile.Succeeded)
		r := b.reconciler(func(c *reconcile.Config) { c.Theirs = &listing{provider: b.psp} })
		report := b.pass(r, reconcile.LaneList)
		b.same("breaks", b.rows("SELECT reference, class, status, amount_minor FROM "+b.table("breaks")), "old|there_not_here|person|1999")
		b.same("what agrees is not looked up", line(report.Agreed, b.psp.asked["known"], b.psp.asked["old"]), "2 0 1")
		// Our transaction has been committed by now.
		b.add("old", reconcile.Succeeded, time.Hour)
		b.pass(r, reconcile.LaneSettled)
		b.same("closed", b.breaks("old"), "there_not_here closed")
	})
}

// An incomplete walk is inconclusive: it concludes nothing from what it did not see, and the next
// walk sees it.
func TestListThatFailsOrShiftsOnTheWayLosesNothing(t *testing.T) {
	onBoth(t, func(b *bank) {
		for i := range 8 {
			ref := fmt.Sprint("p", i)
			b.add(ref, reconcile.Pending, time.Second) // too young for the other lane
			b.psp.has(ref, reconcile.Succeeded)
		}
		l := &listing{provider: b.psp, fail: "p2"}
		r := b.reconciler(func(c *reconcile.Config) { c.Theirs = l })
		report, err := r.Pass(b.Context(), reconcile.LaneList, false)
		if err == nil || !strings.Contains(err.Error(), "502") || report.Complete || report.Healed != 3 {
			b.Errorf("report %+v, %v", report, err)
		}
		b.same("breaks of what was not seen", b.rows("SELECT count(*) FROM "+b.table("breaks")+" WHERE reference > 'p2'"), "0")
		// While the second walk is under way, records come in before its cursor.
		l.fail = ""
		l.each = func(cursor string) {
			if cursor != "" && b.state("o"+cursor) == "" {
				b.add("o"+cursor, reconcile.Pending, time.Second)
				b.psp.has("o"+cursor, reconcile.Succeeded)
			}
		}
		b.pass(r, reconcile.LaneList)
		l.each = nil
		b.pass(r, reconcile.LaneList)
		b.same("all are paid", b.rows("SELECT state, count(*) FROM payments GROUP BY state"), "succeeded|10")
		b.same("once each", b.credits(), "10")
	})
}

// A list or a table that does not go on is an error, not a pass without an end. What is listed
// wrongly is kept as a problem.
func TestListsThatDoNotGoOnEndThePass(t *testing.T) {
	onBoth(t, func(b *bank) {
		r := b.reconciler(func(c *reconcile.Config) { c.Theirs, c.Ours = stuckList{b.psp}, stuckTable{b} })
		for lane, word := range map[reconcile.Lane]string{reconcile.LaneList: "does not go on", reconcile.LanePending: "does not go on", reconcile.LaneSettled: "panicked"} {
			report, err := r.Pass(b.Context(), lane, false)
			if err == nil || !strings.Contains(err.Error(), word) || report.Complete {
				b.Errorf("lane %s: %v", lane, err)
			}
			if lane == reconcile.LaneList && report.Failed != 4 { // two on each of two pages
				b.Errorf("problems %+v", report.Problems)
			}
		}
		var invalid *pacht.InvalidError
		if _, err := r.Pass(b.Context(), "all", false); !errors.As(err, &invalid) {
			b.Errorf("lane all: %v", err)
		}
		if _, err := b.reconciler().Pass(b.Context(), reconcile.LaneList, false); !errors.As(err, &invalid) {
			b.Errorf("a list of no Lister: %v", err)
		}
	})
}

// attempts is a provider whose list has a row for each attempt, and whose look-up sums them up.
type attempts struct {
	*provider
	rows []reconcile.Record
	next map[string]string // by cursor
}

func (a attempts) List(_ context.Context, _ time.Time, cursor string) ([]reconcile.Record, string, error) {
	if cursor != "" {
		return nil, a.next[cursor], nil
	}
	return a.rows, a.next[cursor], nil
}

// S098, S095: the list has an attempt that failed before one that took the money, or one that took
// it a second time. That the first row agrees with ours says nothing of the others.
func TestListWithSeveralAttemptsOfOneReferenceIsLookedUp(t *testing.T) {
	onBoth(t, func(b *bank) {
		b.add("late", reconcile.Failed, time.Hour)
		b.psp.has("late", reconcile.Succeeded)
		b.add("twice", reconcile.Succeeded, time.Hour)
		b.psp.has("twice", reconcile.Succeeded, func(r *reconcile.Record) { r.Charges = 2 })
		row := func(reference, id string, state reconcile.State) reconcile.Record {
			return reconcile.Record{Reference: reference, ProviderID: id, State: state, Amount: euro(1999), At: time.Now().Add(-time.Hour)}
		}
		list := attempts{provider: b.psp, rows: []reconcile.Record{
			row("late", "ch_1", reconcile.Failed), row("twice", "ch_2", reconcile.Succeeded),
			row("late", "ch_3", reconcile.Succeeded), row("twice", "ch_4", reconcile.Succeeded), row("twice", "ch_5", reconcile.Failed),
		}}
		r := b.reconciler(func(c *reconcile.Config) { c.Theirs = list })
		b.pass(r, reconcile.LaneList)
		b.same("ours", line(b.state("late"), b.breaks("late"), b.breaks("twice")), "succeeded|0 paid_there_failed_here healed charged_twice person")
	})
}

// A list whose cursors lead in a circle is an error, not a pass without an end.
func TestListThatLeadsInACircleEndsThePass(t *testing.T) {
	onBoth(t, func(b *bank) {
		list := attempts{provider: b.psp, next: map[string]string{"": "a", "a": "b", "b": "c", "c": "a"}}
		r := b.reconciler(func(c *reconcile.Config) { c.Theirs = list })
		ctx, cancel := context.WithTimeout(b.Context(), 20*time.Second)
		defer cancel()
		report, err := r.Pass(ctx, reconcile.LaneList, false)
		if err == nil || !strings.Contains(err.Error(), "does not go on") || report.Complete {
			b.Errorf("%+v, %v", report, err)
		}
	})
}

type stuckList struct{ *provider }

func (stuckList) List(context.Context, time.Time, string) ([]reconcile.Record, string, error) {
	return []reconcile.Record{{}, {ProviderID: "x", State: "odd"}}, "again", nil
}

type stuckTable struct{ *bank }

func (s stuckTable) Pending(_ context.Context, _ time.Duration, _ string, limit int) ([]reconcile.Record, error) {
	same := make([]reconcile.Record, limit)
	for i := range same {
		same[i].Reference = fmt.Sprint("p", i)
	}
	return same, nil
}

func (s stuckTable) Reversible(context.Context, string, int) ([]reconcile.Record, error) {
	panic("no rows")
}
