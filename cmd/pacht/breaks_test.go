package main

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/reconcile"
)

func aBreak(reference string, rev int64, status pacht.BreakStatus) pacht.Decision {
	d := pacht.Decision{
		Reference: reference, Class: string(reconcile.AmountDiffers), Rev: rev, Status: status, Job: 12, AmountMinor: 250, Currency: "EUR",
		Ours: json.RawMessage(`{"state":"pending"}`), Theirs: json.RawMessage(`{"state":"succeeded"}`),
		By: "reconciler", Reason: "we have 1999 EUR,\x1b[31m the provider has 2249 EUR",
	}
	if status == pacht.BreakWaiting {
		d.Wait = time.Hour
	}
	return d
}

func TestBreaksAreListedShownSummedUpAndClosed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shell) {
		if out := s.ok("breaks", "list"); out != "no breaks (open)\n" {
			t.Errorf("of an empty database: %s", out)
		}
		db := s.store()
		for _, d := range []pacht.Decision{aBreak("p 1", 0, pacht.BreakWaiting), aBreak("p 1", 1, pacht.BreakPerson), aBreak("p2", 0, pacht.BreakHealed), aBreak("p3", 0, pacht.BreakWaiting)} {
			if _, err := db.Decide(t.Context(), d); err != nil {
				t.Fatal(err)
			}
		}
		says := func(out string, words ...string) {
			t.Helper()
			for _, w := range words {
				if !strings.Contains(out, w) {
					t.Errorf("no %q in\n%s", w, out)
				}
			}
		}
		list := s.ok("breaks", "list", "--limit", "1")
		says(list, "p 1", "amount_differs", "person", "2.50 EUR", "12", `--after "p 1 amount_differs"`)
		if next := s.ok("breaks", "list", "--after", "p 1 amount_differs"); strings.Contains(next, "p 1") || !strings.Contains(next, "p3") || strings.Contains(next, "p2") {
			t.Errorf("the next page:\n%s", next)
		}
		says(s.ok("breaks", "list", "--all"), "p2", "healed")
		show := s.ok("breaks", "show", "p 1")
		says(show, "decisions", "by reconciler", "asked again after 1h", "the provider has 2249 EUR", `"state":"succeeded"`)
		if strings.Contains(show, "\x1b") {
			t.Error("what a terminal would obey is printed")
		}
		says(s.ok("breaks", "summary"), "CLASS", "amount_differs", "person", "waiting", "healed", "2.50 EUR")
		var sum reconcile.Summary
		s.document(&sum, exitOK, "breaks", "summary", "--json")
		if sum.AtRisk["EUR"] != 500 || len(sum.Open) != 2 || len(sum.Healed) != 1 {
			t.Errorf("summary %+v", sum)
		}

		s.refused(exitRefused, []string{"no break", "p9"}, "breaks", "show", "p9")
		s.refused(exitRefused, []string{"no break", "p9"}, ann("breaks", "close", "p9", "amount_differs")...)
		s.refused(exitRefused, []string{"ended", "healed"}, ann("breaks", "close", "p2", "amount_differs")...)
		s.refused(exitRefused, []string{"rev", "look again"}, ann("breaks", "close", "p 1", "amount_differs", "--rev", "1")...)
		s.ok(ann("breaks", "close", "p 1", "amount_differs")...)
		says(s.ok("breaks", "show", "p 1"), "closed", "by ann", "because")
		s.refused(exitRefused, []string{"ended", "closed"}, ann("breaks", "close", "p 1", "amount_differs")...)
		for _, c := range []struct {
			keys string
			args []string
		}{
			{"reference class rev status job amount_minor currency ours theirs checks first_seen last_seen next_at", []string{"breaks", "list"}},
			{"reference breaks decisions", []string{"breaks", "show", "p3"}},
			{"at open healed_today at_risk_minor", []string{"breaks", "summary"}},
			{"reference class status rev", ann("breaks", "close", "p3", "amount_differs")},
		} {
			got := keysOf(t, s.ok(append(c.args, "--json")...))
			if len(got) != len(strings.Fields(c.keys)) {
				t.Errorf("pacht %q: keys %v, want %s", c.args, got, c.keys)
			}
			for _, key := range got {
				if !strings.Contains(" "+c.keys+" ", " "+key+" ") {
					t.Errorf("pacht %q: key %s is not documented", c.args, key)
				}
			}
		}
	})
}

// Amounts are for people in text and integers in JSON, and what is no sum is not shown as one.
func TestAmountsAtRiskAreDecimalsAndACappedSumIsMarked(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shell) {
		db := s.store()
		for reference, amount := range map[string]struct {
			minor    int64
			currency string
		}{
			"e": {100, "EUR"}, "j": {100, "JPY"}, "k": {100, "KWD"}, "q": {100, "QQQ"}, "n": {7, ""},
			"u1": {math.MaxInt64 - 1, "USD"}, "u2": {math.MaxInt64 - 1, "USD"},
		} {
			d := aBreak(reference, 0, pacht.BreakPerson)
			d.AmountMinor, d.Currency = amount.minor, amount.currency
			if _, err := db.Decide(t.Context(), d); err != nil {
				t.Fatal(err)
			}
		}
		for what, words := range map[string][]string{
			"list":    {" 1.00 EUR", " 100 JPY", " 0.100 KWD", "100 minor units of QQQ", "7 minor units of no currency", "92233720368547758.06 USD"},
			"summary": {" 1.00 EUR", "0.100 KWD", "100 minor units of QQQ", ">= 92233720368547758.07 USD"},
		} {
			out := s.ok("breaks", what)
			for _, w := range words {
				if !strings.Contains(out, w) {
					t.Errorf("breaks %s does not say %q:\n%s", what, w, out)
				}
			}
		}
		var sum reconcile.Summary
		s.document(&sum, exitOK, "breaks", "summary", "--json")
		if len(sum.AtRiskCapped) != 1 || sum.AtRiskCapped[0] != "USD" || sum.AtRisk["EUR"] != 100 {
			t.Errorf("summary %+v", sum)
		}
		for _, c := range sum.Open {
			if c.Capped != (c.Currency == "USD") {
				t.Errorf("%+v", c)
			}
		}
	})
}

// Nothing that matched is not nothing at all: the filters are named, and a class that is nowhere.
func TestAListThatMatchedNothingSaysWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shell) {
		for _, c := range []struct {
			out, err string
			args     []string
		}{
			{"no breaks (open, class \"frob\", due)\n", "no break has ever had the class frob; the reconciler's are paid_there", []string{"--class", "frob", "--due"}},
			{"[]\n", "no break has ever had the class frob", []string{"--class", "frob", "--json"}},
			{"no breaks (status person, class \"amount_differs\")\n", "", []string{"--class", "amount_differs", "--status", "person"}},
			{"no breaks\n", "", []string{"--all"}},
		} {
			r := s.run(append([]string{"breaks", "list"}, c.args...)...)
			if r.code != exitOK || r.out != c.out || !strings.Contains(r.err, c.err) || c.err == "" && r.err != "" {
				t.Errorf("%q: %d %q %q", c.args, r.code, r.out, r.err)
			}
		}
		s.refused(exitUsage, []string{"pacht breaks close", "REFERENCE CLASS", `got 1: "x"`}, "breaks", "close", "x")
		s.refused(exitUsage, []string{"pacht jobs show", "ID", "got none"}, "jobs", "show")
	})
}
