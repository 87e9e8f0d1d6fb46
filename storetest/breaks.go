package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pacht-queue/pacht"
)

// decision is a sound one, to be changed by a case.
func decision(reference string, rev int64, status pacht.BreakStatus) pacht.Decision {
	d := pacht.Decision{
		Reference: reference, Class: "paid_there_pending_here", Rev: rev, Status: status, Job: 7,
		AmountMinor: 1999, Currency: "EUR", By: "reconciler", Reason: "asked the provider",
		Ours: json.RawMessage(`{"state": "pending"}`), Theirs: json.RawMessage(`{"n": 9007199254740993}`),
	}
	if status == pacht.BreakWaiting {
		d.Wait = time.Minute
	}
	return d
}

// line is values in one line, with a blank between any two.
func line(values ...any) string { return strings.TrimRight(fmt.Sprintln(values...), "\n") }

func (c *kase) decide(d pacht.Decision) pacht.Break {
	c.Helper()
	b, err := c.Store.Decide(c.ctx, d)
	c.must(err)
	return b
}

// refused asserts that a decision is refused, and that the break stands as it did.
func (c *kase) refused(err error, rev int64, status pacht.BreakStatus) {
	c.Helper()
	var refusal *pacht.BreakError
	if !errors.As(err, &refusal) || refusal.Break.Rev != rev || refusal.Break.Status != status || refusal.Error() == "" {
		c.Errorf("got %v, want a refusal of a %q break with rev %d", err, status, rev)
	}
}

// breaks is a list of breaks in short.
func (c *kase) breaks(f pacht.BreakFilter) (text string) {
	c.Helper()
	list, err := c.Store.Breaks(c.ctx, f)
	c.must(err)
	for _, b := range list {
		text += fmt.Sprintf("%s/%s ", b.Reference, b.Class)
	}
	return text
}

// decisions is what was decided on a reference, in short.
func (c *kase) decisions(reference string) (text string) {
	c.Helper()
	list, err := c.Store.Decisions(c.ctx, reference)
	c.must(err)
	for _, d := range list {
		text += fmt.Sprintf("%d %s by %s, ", d.Rev, d.Status, d.By)
	}
	return text
}

func breakCases(g *group) {
	g.run("R3/each decision is kept, and its break stands as the last one says", breakLife)
	g.run("R3/of many that decide on the same break at once one wins", func(c *kase) {
		stores := []Store{c.Store, c.Reopen(c.T)}
		for rev, status := range []pacht.BreakStatus{pacht.BreakWaiting, pacht.BreakWaiting, pacht.BreakHealed} {
			var done atomic.Int32
			c.together(6, func(i int) {
				_, err := stores[i%2].Decide(c.ctx, decision("p1", int64(rev), status))
				if err == nil {
					done.Add(1)
					return
				}
				c.refused(err, int64(rev)+1, status)
			})
			c.same("decided", done.Load(), int32(1))
		}
		c.same("decisions", c.decisions("p1"), "0 waiting by reconciler, 1 waiting by reconciler, 2 healed by reconciler, ")
	})
	g.run("what is with a person does not go back to waiting by itself", func(c *kase) {
		c.decide(decision("p1", 0, pacht.BreakPerson))
		_, err := c.Store.Decide(c.ctx, decision("p1", 1, pacht.BreakWaiting))
		c.refused(err, 1, pacht.BreakPerson)
		for from := range pacht.BreakStatuses {
			for to, next := range pacht.BreakStatuses {
				ref := fmt.Sprint("p", from, to)
				c.decide(decision(ref, 0, pacht.BreakStatuses[from]))
				_, err := c.Store.Decide(c.ctx, decision(ref, 1, next))
				if can := pacht.BreakStatuses[from].CanBecome(next); can != (err == nil) {
					c.Errorf("from %s to %s: %v, and the table says %v", pacht.BreakStatuses[from], next, err, can)
				}
			}
		}
	})
	g.run("a decision in a transaction commits with the business write", func(c *kase) {
		c.book()
		tx := c.begin()
		c.must(c.note(tx, "healed"))
		c.must(tx.DecideTx(c.ctx, decision("p1", 0, pacht.BreakHealed)))
		c.must(tx.Rollback(c.ctx))
		c.same("after a rollback", c.booked()+c.decisions("p1")+c.breaks(pacht.BreakFilter{Ended: true}), "0")
		c.inTx(func(tx Txn) {
			c.must(c.note(tx, "healed"))
			c.must(tx.DecideTx(c.ctx, decision("p1", 0, pacht.BreakHealed)))
			c.must(tx.DecideTx(c.ctx, decision("p1", 1, pacht.BreakClosed)))
		})
		c.same("business rows", c.booked(), "1")
		c.same("decisions", c.decisions("p1"), "0 healed by reconciler, 1 closed by reconciler, ")
	})
	g.run("R4/a decision that is refused breaks the transaction", func(c *kase) {
		c.decide(decision("p1", 0, pacht.BreakPerson))
		before := c.decisions("p1")
		invalid := decision("p1", 1, pacht.BreakHealed)
		invalid.Reason = ""
		for _, d := range []pacht.Decision{
			decision("p1", 0, pacht.BreakHealed), decision("p1", 2, pacht.BreakHealed), decision("p2", 1, pacht.BreakHealed),
			decision("p1", 1, pacht.BreakWaiting), invalid,
		} {
			c.brokenTx(func(tx Txn) error { return tx.DecideTx(c.ctx, d) })
		}
		c.same("decisions", c.decisions("p1")+c.decisions("p2"), before)
	})
	g.run("S106, R3/of many that heal in transactions one commits its business write", func(c *kase) {
		c.book()
		c.decide(decision("p1", 0, pacht.BreakWaiting))
		var won atomic.Int32
		c.together(4, func(int) {
			tx, err := c.Begin(c.ctx)
			if err != nil {
				c.Error(err)
				return
			}
			defer func() { _ = tx.Rollback(c.ctx) }()
			if err := c.note(tx, "healed"); err != nil {
				c.Error(err)
			}
			err = tx.DecideTx(c.ctx, decision("p1", 1, pacht.BreakHealed))
			var refusal *pacht.BreakError
			if err != nil && !errors.As(err, &refusal) {
				c.Error(err)
			}
			if tx.Commit(c.ctx) == nil {
				won.Add(1)
			}
		})
		c.same("committed", fmt.Sprint(won.Load(), c.booked()), "11")
		c.same("decisions", c.decisions("p1"), "0 waiting by reconciler, 1 healed by reconciler, ")
	})
	g.run("S104/a decision that makes no sense is refused and changes nothing", breakInvalid)
	g.run("breaks are listed by reference and class, page by page", breakLists)
	g.run("breaks are summed up exactly, by class, status and currency", breakSums)
	g.run("breaks and decisions outlive their job", func(c *kase) {
		held := c.take("a")
		d := decision("p1", 0, pacht.BreakHealed)
		d.Job = held.ID
		c.decide(d)
		c.close(held.Ref(), pacht.OutcomeCompleted)
		n, err := c.Store.Prune(c.ctx, pacht.PruneRequest{Status: pacht.Completed, Limit: 10})
		c.must(err)
		c.same("pruned", n, 1)
		c.same("breaks", c.breaks(pacht.BreakFilter{Reference: "p1", Ended: true}), "p1/paid_there_pending_here ")
		c.same("decisions", c.decisions("p1"), "0 healed by reconciler, ")
	})
	g.run("R12/what was seen is stored whatever it was", func(c *kase) {
		d := decision("p1", 0, pacht.BreakWaiting)
		d.Ours, d.Theirs = json.RawMessage("no JSON \x00 \xff"), nil
		b := c.decide(d)
		var said string
		if err := json.Unmarshal(b.Ours, &said); err != nil || b.Theirs != nil {
			c.Errorf("ours %s, theirs %s", b.Ours, b.Theirs)
		}
	})
}

func breakLife(c *kase) {
	before := c.now()
	first := c.decide(decision("p1", 0, pacht.BreakWaiting))
	c.same("first", line(first.Rev, first.Status, first.Job, first.AmountMinor, first.Currency, first.Checks, string(first.Ours), string(first.Theirs)),
		`1 waiting 7 1999 EUR 1 {"state": "pending"} {"n": 9007199254740993}`)
	c.near("first seen", first.FirstSeen, before)
	c.same("times", first.NextAt.Sub(first.LastSeen).String()+first.LastSeen.Sub(first.FirstSeen).String(), "1m0s0s")
	c.age(time.Hour)
	d := decision("p1", 1, pacht.BreakPerson)
	d.By, d.Job, d.Currency, d.Theirs = "anna", 0, "", nil
	second := c.decide(d)
	c.same("second", line(second.Rev, second.Status, second.Job, second.Currency, second.Checks, second.Theirs == nil, second.NextAt.IsZero()),
		"2 person 0  2 true true")
	if open := second.LastSeen.Sub(second.FirstSeen); open < time.Hour || open > time.Hour+time.Minute {
		c.Errorf("open for %s", open)
	}
	list, err := c.Store.Breaks(c.ctx, pacht.BreakFilter{})
	c.must(err)
	c.same("list", fmt.Sprintf("%+v", list), fmt.Sprintf("%+v", []pacht.Break{second}))
	third := c.decide(decision("p1", 2, pacht.BreakHealed))
	c.same("open ones", c.breaks(pacht.BreakFilter{}), "")
	// It comes back: the age counts from then on, the fence goes on.
	c.age(time.Hour)
	fourth := c.decide(decision("p1", 3, pacht.BreakWaiting))
	ancient := decision("p2", 0, pacht.BreakWaiting)
	ancient.Since = first.FirstSeen
	c.same("with the age of another", c.decide(ancient).FirstSeen.Equal(first.FirstSeen), true)
	ancient.Reference, ancient.Since = "p3", first.FirstSeen.Add(100*time.Hour)
	c.same("first seen in the future", c.decide(ancient).FirstSeen.Before(ancient.Since), true)
	c.same("opened again", fmt.Sprint(third.Rev, third.Checks, fourth.Rev, fourth.Checks, fourth.FirstSeen.Equal(fourth.LastSeen)), "3 3 4 1 true")
	entries, err := c.Store.Decisions(c.ctx, "p1")
	c.must(err)
	c.same("decisions", c.decisions("p1"), "0 waiting by reconciler, 1 person by anna, 2 healed by reconciler, 3 waiting by reconciler, ")
	e := entries[0]
	e.Decision.Ours, e.Decision.Theirs = nil, nil
	want := decision("p1", 0, pacht.BreakWaiting)
	want.Ours, want.Theirs = nil, nil
	c.same("entry", fmt.Sprintf("%+v", e.Decision), fmt.Sprintf("%+v", want))
	if gap := entries[1].At.Sub(entries[0].At); gap < time.Hour || gap > time.Hour+time.Minute {
		c.Errorf("%s between the decisions", gap)
	}
}

func breakInvalid(c *kase) {
	for field, change := range map[string]func(*pacht.Decision){
		"reference":      func(d *pacht.Decision) { d.Reference = "" },
		"reference ":     func(d *pacht.Decision) { d.Reference = "a\x00" },
		"class":          func(d *pacht.Decision) { d.Class = "a class" },
		"rev of a break": func(d *pacht.Decision) { d.Rev = -1 },
		"break status":   func(d *pacht.Decision) { d.Status = "open" },
		"break status ":  func(d *pacht.Decision) { d.Status = "" },
		"job of a break": func(d *pacht.Decision) { d.Job = -1 },
		"amount at risk": func(d *pacht.Decision) { d.AmountMinor = -1 },
		"currency":       func(d *pacht.Decision) { d.Currency = "eur" },
		"currency ":      func(d *pacht.Decision) { d.Currency = "EURO" },
		"wait":           func(d *pacht.Decision) { d.Wait = -1 },
		"wait ":          func(d *pacht.Decision) { d.Wait = 2 * pacht.MaxDelay },
		"wait  ":         func(d *pacht.Decision) { d.Status = pacht.BreakPerson },
		"by":             func(d *pacht.Decision) { d.By = "" },
		"reason":         func(d *pacht.Decision) { d.Reason = string(make([]byte, 9)) },
	} {
		d := decision("p1", 0, pacht.BreakWaiting)
		change(&d)
		var invalid *pacht.InvalidError
		if _, err := c.Store.Decide(c.ctx, d); !errors.As(err, &invalid) || invalid.Field != strings.TrimRight(field, " ") {
			c.Errorf("%s: %v", field, err)
		}
	}
	for _, f := range []pacht.BreakFilter{{Limit: 1001}, {Limit: -1}, {Status: "open"}, {Reference: "\xff"}} {
		var invalid *pacht.InvalidError
		if _, err := c.Store.Breaks(c.ctx, f); !errors.As(err, &invalid) {
			c.Errorf("%+v: %v", f, err)
		}
	}
	_, err := c.Store.Decide(c.ctx, decision("p1", 1, pacht.BreakWaiting)) // of a break that is not there
	c.refused(err, 0, "")
	c.same("breaks", c.breaks(pacht.BreakFilter{Ended: true})+c.decisions("p1"), "")
}

func breakLists(c *kase) {
	for _, each := range []struct {
		reference, class string
		status           pacht.BreakStatus
	}{
		{"a", "x", pacht.BreakWaiting}, {"a", "y", pacht.BreakPerson}, {"B", "x", pacht.BreakHealed},
		{"b", "x", pacht.BreakWaiting}, {"b", "z", pacht.BreakClosed}, {"é", "x", pacht.BreakPerson},
	} {
		d := decision(each.reference, 0, each.status)
		d.Class = each.class
		if each.reference == "b" {
			d.Wait = 0
		}
		c.decide(d)
	}
	for _, each := range []struct {
		filter pacht.BreakFilter
		want   string
	}{
		{pacht.BreakFilter{}, "a/x a/y b/x é/x "},
		{pacht.BreakFilter{Ended: true}, "B/x a/x a/y b/x b/z é/x "},
		{pacht.BreakFilter{Ended: true, Class: "x", After: pacht.BreakCursor{Reference: "B", Class: "x"}}, "a/x b/x é/x "},
		{pacht.BreakFilter{Status: pacht.BreakPerson}, "a/y é/x "},
		{pacht.BreakFilter{Status: pacht.BreakHealed}, "B/x "},
		{pacht.BreakFilter{Class: "x"}, "a/x b/x é/x "},
		{pacht.BreakFilter{Reference: "b"}, "b/x "},
		{pacht.BreakFilter{Reference: "b", Ended: true}, "b/x b/z "},
		{pacht.BreakFilter{Reference: "b", Ended: true, After: pacht.BreakCursor{Reference: "b", Class: "x"}}, "b/z "},
		{pacht.BreakFilter{Reference: "a", Class: "y"}, "a/y "},
		{pacht.BreakFilter{Due: true}, "b/x "},
		{pacht.BreakFilter{Due: true, Reference: "a"}, ""},
	} {
		c.same(fmt.Sprintf("%+v", each.filter), c.breaks(each.filter), each.want)
	}
	paged := ""
	f := pacht.BreakFilter{Limit: 1}
	for {
		page, err := c.Store.Breaks(c.ctx, f)
		c.must(err)
		if len(page) == 0 {
			break
		}
		paged += c.breaks(f)
		f.After = pacht.BreakCursor{Reference: page[0].Reference, Class: page[0].Class}
	}
	c.same("page by page", paged, "a/x a/y b/x é/x ")
	c.age(2 * time.Minute)
	c.same("due by now", c.breaks(pacht.BreakFilter{Due: true}), "a/x b/x ")
}

func breakSums(c *kase) {
	add := func(reference string, amount int64, currency string, status pacht.BreakStatus) {
		d := decision(reference, 0, status)
		d.AmountMinor, d.Currency = amount, currency
		c.decide(d)
	}
	add("a", 1, "EUR", pacht.BreakWaiting)
	add("b", 9007199254740993, "EUR", pacht.BreakWaiting)
	add("c", math.MaxInt64, "JPY", pacht.BreakPerson)
	add("d", math.MaxInt64, "JPY", pacht.BreakPerson)
	add("e", 5, "", pacht.BreakPerson)
	add("f", 6, "EUR", pacht.BreakHealed)
	c.age(time.Hour)
	add("g", 7, "EUR", pacht.BreakHealed)
	add("h", 8, "EUR", pacht.BreakClosed)
	sums := func(since time.Duration) (text string) {
		counts, err := c.Store.BreakCounts(c.ctx, c.now().Add(-since))
		c.must(err)
		for _, n := range counts {
			text += fmt.Sprintf("%s %q %d %d, ", n.Status, n.Currency, n.Breaks, n.AmountMinor)
			c.same("capped "+n.Currency, n.Capped, n.AmountMinor == math.MaxInt64)
			if n.Status == pacht.BreakWaiting {
				c.near("oldest", n.Oldest, c.now().Add(-time.Hour-10*time.Second))
			}
		}
		return text
	}
	open := fmt.Sprintf(`person "" 1 5, person "JPY" 2 %d, waiting "EUR" 2 9007199254740994, `, int64(math.MaxInt64))
	c.same("sums", sums(time.Minute), `healed "EUR" 1 7, `+open)
	c.same("sums of more", sums(2*time.Hour), `healed "EUR" 2 13, `+open)
}
