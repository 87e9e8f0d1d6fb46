package reconcile_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/money"
	"github.com/pacht-queue/pacht/reconcile"
)

// R10, R12, S104: whatever the provider or our own code answers, garbage changes no record, is kept
// with its reason, and stops no other row.
func TestGarbageChangesNothingIsRecordedAndStopsNobody(t *testing.T) {
	onBoth(t, func(b *bank) {
		says := func(change func(r *reconcile.Record)) func() (reconcile.Record, error) {
			return func() (reconcile.Record, error) {
				r := reconcile.Record{State: reconcile.Succeeded, Amount: euro(1999)}
				change(&r)
				return r, nil
			}
		}
		garbage := map[string]struct {
			why string
			say func() (reconcile.Record, error)
		}{
			"an error": {"connection refused", func() (reconcile.Record, error) { return reconcile.Record{}, errors.New("connection refused") }},
			"an error and more": {"503", func() (reconcile.Record, error) {
				r, _ := says(func(r *reconcile.Record) {})()
				return r, errors.New("503")
			}},
			"a panic":           {"panicked: nil map", func() (reconcile.Record, error) { panic("nil map") }},
			"silence":           {"says nothing", func() (reconcile.Record, error) { return reconcile.Record{}, nil }},
			"another payment":   {`about "p9"`, says(func(r *reconcile.Record) { r.Reference = "p9" })},
			"no reference":      {`about ""`, says(func(r *reconcile.Record) { r.Reference = "" })},
			"a new state":       {`"paid" is no state`, says(func(r *reconcile.Record) { r.State = "paid" })},
			"no amount":         {"no amount", says(func(r *reconcile.Record) { r.Amount = money.Amount{} })},
			"zero":              {"amount of 0", says(func(r *reconcile.Record) { r.Amount.Minor = 0 })},
			"negative":          {"amount of -1999", says(func(r *reconcile.Record) { r.Amount.Minor = -1999 })},
			"no currency":       {`"" is no currency`, says(func(r *reconcile.Record) { r.Amount.Currency = "" })},
			"odd currency":      {`"eur\x00" is no currency`, says(func(r *reconcile.Record) { r.Amount.Currency = "eur\x00" })},
			"negative refund":   {"-1 given back", says(func(r *reconcile.Record) { r.Refunded = -1 })},
			"empty refund":      {"nothing given back", says(func(r *reconcile.Record) { r.State = reconcile.Refunded })},
			"refund of nothing": {"failed, and 5 given back", says(func(r *reconcile.Record) { r.State, r.Refunded = reconcile.Failed, 5 })},
			"negative charges":  {"-1 charges", says(func(r *reconcile.Record) { r.Charges = -1 })},
			"odd detail":        {`"paid" is no state`, says(func(r *reconcile.Record) { r.State, r.Detail = "paid", json.RawMessage("\x00{") })},
		}
		for ref, g := range garbage {
			b.add(ref, reconcile.Pending, time.Hour)
			b.psp.lookup[ref] = func() (reconcile.Record, error) {
				r, err := g.say()
				if !strings.HasSuffix(ref, "payment") && !strings.HasSuffix(ref, "reference") {
					r.Reference = ref
				}
				return r, err
			}
			b.park(charge{ref})
		}
		b.add("~ a good one", reconcile.Pending, time.Hour)
		b.psp.has("~ a good one", reconcile.Succeeded)
		for ref, find := range map[string]func() (reconcile.Record, error){
			"our error": func() (reconcile.Record, error) { return reconcile.Record{}, errors.New("no such table") },
			"our panic": func() (reconcile.Record, error) { panic("ours") },
			"our zero": func() (reconcile.Record, error) {
				return reconcile.Record{Reference: "our zero", State: reconcile.Pending}, nil
			},
		} {
			b.add(ref, reconcile.Pending, time.Hour)
			b.psp.has(ref, reconcile.Succeeded)
			b.find[ref] = find
		}
		before := b.rows("SELECT reference, state FROM payments WHERE reference <> '~ a good one' ORDER BY reference")
		report := b.pass(b.reconciler(), reconcile.LanePending)
		b.same("our records", b.rows("SELECT reference, state FROM payments WHERE reference <> '~ a good one' ORDER BY reference"), before)
		b.same("the good one", b.state("~ a good one")+" "+b.credits(), "succeeded|0 1")
		b.same("waiting", report.Waiting, len(garbage)+3)
		b.same("parked", b.rows("SELECT count(*) FROM "+b.table("leases")+" WHERE status = 'Stuck'"), line(len(garbage)))
		for ref, g := range garbage {
			if why := b.reasons(ref); b.breaks(ref) != "unknown_there waiting" || !strings.Contains(why, g.why) {
				b.Errorf("%s: breaks %s, reasons %s; want %q", ref, b.breaks(ref), why, g.why)
			}
		}
		for _, ref := range []string{"our error", "our panic", "our zero"} {
			b.same(ref, b.breaks(ref), "unknown_here waiting")
		}
	})
}

// S104: a mismatch is a break, never a success.
func TestAmountOrCurrencyThatDiffersGoesToAPerson(t *testing.T) {
	onBoth(t, func(b *bank) {
		risk := map[string]string{}
		for ref, each := range map[string]struct {
			amount money.Amount
			risk   string
		}{
			"lower":          {euro(1900), "99|EUR"},
			"higher":         {euro(2100), "101|EUR"},
			"other currency": {money.Amount{Minor: 1999, Currency: "USD"}, "1999|USD"},
			"exponent":       {euro(199900), "197901|EUR"},
		} {
			b.add(ref, reconcile.Pending, time.Hour)
			b.psp.has(ref, reconcile.Succeeded, func(r *reconcile.Record) { r.Amount = each.amount })
			risk[ref] = each.risk
		}
		r := b.reconciler()
		report := b.pass(r, reconcile.LanePending)
		b.same("held", line(report.Held, report.Healed, b.credits()), "4 0 0")
		for ref, want := range risk {
			b.same(ref, b.state(ref)+" "+b.breaks(ref), "pending|0 amount_differs person")
			b.same(ref, b.rows("SELECT amount_minor, currency FROM "+b.table("breaks")+" WHERE reference = $1", ref), want)
		}
		// It stays with a person, who is not told again and again.
		b.same("asked again at once", b.pass(r, reconcile.LanePending).LookUps, 0)
		b.same("asked again by the slow lane", b.pass(r, reconcile.LaneSettled).LookUps, 4)
		b.same("decisions", b.rows("SELECT count(*) FROM "+b.table("decisions")), "4")
		// A person may accept it as it is; something else opens it again.
		accept := func(ref string) {
			found, err := b.store.Breaks(b.Context(), pacht.BreakFilter{Reference: ref})
			must(b, err)
			x := found[0]
			_, err = b.store.Decide(b.Context(), pacht.Decision{Reference: ref, Class: x.Class, Rev: x.Rev, Status: pacht.BreakClosed,
				Ours: x.Ours, Theirs: x.Theirs, By: "anna", Reason: "a rebate"})
			must(b, err)
		}
		accept("lower")
		again := b.pass(r, reconcile.LanePending)
		b.same("accepted", line(again.Accepted, b.breaks("lower")), "1 amount_differs closed")
		b.psp.has("lower", reconcile.Succeeded, func(r *reconcile.Record) { r.Amount = euro(1800) })
		b.pass(r, reconcile.LanePending)
		b.same("something else", b.breaks("lower"), "amount_differs person")
		// And what came right by itself is closed by itself.
		b.exec("UPDATE payments SET state = 'succeeded', amount = 2100 WHERE reference = 'higher'")
		b.pass(r, reconcile.LaneSettled)
		b.same("came right", b.breaks("higher"), "amount_differs closed")
	})
}

// Whoever has a break before them needs its job: it is written down when it is known, and a look that
// knows of none does not take it away.
func TestABreakNamesItsJobAsSoonAsItIsKnown(t *testing.T) {
	onBoth(t, func(b *bank) {
		b.add("p1", reconcile.Pending, time.Hour)
		b.psp.has("p1", reconcile.Succeeded, func(r *reconcile.Record) { r.Amount = euro(1900) })
		r := b.reconciler()
		named := func() pacht.ID {
			found, err := b.store.Breaks(b.Context(), pacht.BreakFilter{Reference: "p1"})
			must(b, err)
			b.same("breaks", b.breaks("p1"), "amount_differs person")
			return found[0].Job
		}
		b.pass(r, reconcile.LanePending)
		b.same("no job is known", named(), pacht.ID(0))
		job := b.park(charge{"p1"})
		b.pass(r, reconcile.LanePending)
		b.same("its job", named(), job.ID)
		must(b, b.store.Resolve(b.Context(), job.Ref(), pacht.Resolution{Status: pacht.Dead}, pacht.Act{By: "ann", Reason: "test"}))
		b.psp.has("p1", reconcile.Succeeded, func(r *reconcile.Record) { r.Amount = euro(1800) })
		b.pass(r, reconcile.LaneSettled)
		b.same("its job, when that is over and the amount another one", named(), job.ID)
		b.same("decisions", b.rows("SELECT count(*) FROM "+b.table("decisions")), "3")
	})
}

// S102: "not found" right after a success is no answer; for ever, it is a person's matter; it is never
// turned into a failure or another charge.
func TestNotFoundIsAskedAgainAndThenAPersons(t *testing.T) {
	onBoth(t, func(b *bank) {
		for _, ref := range []string{"late", "never"} {
			b.add(ref, reconcile.Pending, 2*time.Minute)
			b.park(charge{ref})
		}
		b.add("aged out", reconcile.Succeeded, 180*24*time.Hour)
		r := b.reconciler()
		asked := func() string { return fmt.Sprint(b.psp.asked["late"], b.psp.asked["never"]) }
		b.pass(r, reconcile.LanePending)
		b.same("after a first look", b.breaks("late")+", "+b.breaks("never"), "here_not_there waiting, here_not_there waiting")
		b.same("it is not asked at once again", line(b.pass(r, reconcile.LanePending).Looked, asked()), line(0, "1 1"))
		b.age(90 * time.Second)
		b.psp.has("late", reconcile.Succeeded)
		b.pass(r, reconcile.LanePending)
		b.same("found at last", b.state("late")+" "+b.breaks("late"), "succeeded|0 here_not_there closed, paid_there_pending_here healed")
		for range 12 {
			b.age(10 * time.Minute)
			b.pass(r, reconcile.LanePending)
		}
		b.same("never found", b.state("never")+" "+b.breaks("never"), "pending|0 here_not_there person")
		b.same("parked", b.rows("SELECT count(*) FROM "+b.table("leases")+" WHERE status = 'Stuck'"), "1")
		b.pass(r, reconcile.LaneSettled)
		b.same("aged out", b.state("aged out")+" "+b.breaks("aged out"), "succeeded|0 here_not_there waiting")
		b.age(2 * time.Hour)
		b.pass(r, reconcile.LaneSettled)
		b.same("aged out", b.breaks("aged out"), "here_not_there person")
	})
}

// S096: the reconciler was off for three days. Nothing is too old to be asked, the pauses grow with
// the age, and what has an open break is asked until it is resolved or a person's.
func TestNothingIsTooOldToBeAsked(t *testing.T) {
	onBoth(t, func(b *bank) {
		for ref, age := range map[string]time.Duration{"minutes": 16 * time.Minute, "days": 3 * 24 * time.Hour, "a year": 400 * 24 * time.Hour} {
			b.add(ref, reconcile.Pending, age)
			b.psp.has(ref, reconcile.Succeeded)
		}
		b.add("only here", reconcile.Succeeded, 3*24*time.Hour)
		b.psp.has("only there", reconcile.Succeeded, func(r *reconcile.Record) { r.At = time.Now().Add(-3 * 24 * time.Hour) })
		b.psp.has("", reconcile.Succeeded, func(r *reconcile.Record) { r.ProviderID = "ch_77" })
		b.add("undecided", reconcile.Pending, 3*24*time.Hour)
		b.psp.has("undecided", reconcile.Pending)
		r := b.reconciler(func(c *reconcile.Config) { c.Theirs, c.Grace = &listing{provider: b.psp}, 15*time.Minute })
		for _, lane := range reconcile.Lanes {
			b.pass(r, lane)
		}
		b.pass(r, reconcile.LaneSettled) // looks at what is with a person
		b.same("healed", b.rows("SELECT count(*) FROM payments WHERE state = 'succeeded'")+" "+b.credits(), "4 3")
		b.same("only here", b.breaks("only here"), "here_not_there waiting")
		b.same("only there", b.breaks("only there"), "there_not_here person")
		b.same("without a reference", b.breaks("provider:ch_77"), "there_not_here person")
		b.same("undecided", b.breaks("undecided"), "unknown_there waiting")
		var pauses []time.Duration
		for hours := 0; hours < 80; hours++ {
			list, err := b.store.Breaks(b.Context(), pacht.BreakFilter{Reference: "undecided"})
			must(b, err)
			if list[0].Status == pacht.BreakPerson {
				break
			}
			if pause := list[0].NextAt.Sub(list[0].LastSeen); len(pauses) == 0 || pause > 2*pauses[len(pauses)-1] {
				pauses = append(pauses, pause)
			}
			b.age(time.Hour)
			b.pass(r, reconcile.LanePending)
		}
		if len(pauses) < 2 || pauses[0] > time.Minute || pauses[len(pauses)-1] > 70*time.Minute {
			b.Errorf("pauses %v", pauses)
		}
		b.same("after three days", b.breaks("undecided"), "unknown_there person")
	})
}

// A provider that says now this and now that does not begin a new age each time.
func TestAgeOfABreakOutlivesAChangeOfItsClass(t *testing.T) {
	onBoth(t, func(b *bank) {
		b.add("p1", reconcile.Pending, time.Hour)
		flip := 0
		b.psp.lookup["p1"] = func() (reconcile.Record, error) {
			if flip++; flip%2 == 0 {
				return reconcile.Record{State: reconcile.NotFound}, nil
			}
			return reconcile.Record{}, errors.New("503")
		}
		r := b.reconciler()
		for range 10 {
			b.pass(r, reconcile.LanePending)
			b.age(20 * time.Minute)
		}
		if got := b.breaks("p1"); !strings.Contains(got, "here_not_there person") {
			b.Errorf("after three hours: %s\n%s", got, b.reasons("p1"))
		}
		// And with a person it stays, whatever is said.
		flip = 0
		b.pass(r, reconcile.LaneSettled)
		b.same("one open break", b.rows("SELECT class, status FROM "+b.table("breaks")+" WHERE status IN ('waiting', 'person')"), "here_not_there|person")
	})
}

// S098: the provider has it as failed, and we have it as paid: it is not lowered by itself.
func TestPaidRecordIsNotLoweredByAFailure(t *testing.T) {
	onBoth(t, func(b *bank) {
		b.add("p1", reconcile.Succeeded, time.Hour)
		b.psp.has("p1", reconcile.Failed)
		b.pass(b.reconciler(), reconcile.LaneSettled)
		b.same("p1", b.state("p1")+" "+b.breaks("p1"), "succeeded|0 paid_here_failed_there person")
	})
}

// A parked job on which both sides agree already is closed; one that is nobody's is left alone, as is
// one whose own effect nobody knows, and a reconciler's own crashed pass is buried.
func TestParkedJobsOnWhichBothSidesAgreeAreClosed(t *testing.T) {
	onBoth(t, func(b *bank) {
		b.add("paid", reconcile.Succeeded, time.Hour)
		b.psp.has("paid", reconcile.Succeeded)
		b.add("failed", reconcile.Failed, time.Hour)
		paid, failed := b.park(charge{"paid"}), b.park(charge{"failed"})
		foreign, unheard, odd := b.park(mail{"paid", "x"}), b.park(charge{"unheard of"}), b.park(kind("panics"))
		own := b.park(reconcile.Pass{Lane: reconcile.LanePending})
		report := b.pass(b.reconciler(), reconcile.LanePending)
		b.same("paid", b.job(paid.ID).Status, pacht.Completed)
		b.same("failed", b.job(failed.ID).Status, pacht.Dead)
		b.same("own", b.job(own.ID).Status, pacht.Dead)
		b.same("left alone", line(b.job(foreign.ID).Status, b.job(unheard.ID).Status, b.job(odd.ID).Status), line(pacht.Stuck, pacht.Stuck, pacht.Stuck))
		b.same("report", line(report.Resolved, report.NobodysMany, report.Failed, report.Problems[0].Reference),
			line(2, 2, 1, "job "+odd.ID.String()))
		audit, err := b.store.Audit(b.Context(), paid.ID)
		must(b, err)
		if len(audit) != 1 || !strings.Contains(audit[0].Reason, "both sides agree") {
			b.Errorf("audit %+v", audit)
		}
	})
}

type kind string

func (k kind) Kind() string { return string(k) }

// A dry run says what would be done and changes nothing at all.
func TestDryRunChangesNothing(t *testing.T) {
	onBoth(t, func(b *bank) {
		for i, state := range []reconcile.State{reconcile.Succeeded, reconcile.Failed, reconcile.Pending, reconcile.NotFound} {
			ref := fmt.Sprint("p", i)
			b.add(ref, reconcile.Pending, time.Hour)
			b.park(charge{ref})
			if state != reconcile.NotFound {
				b.psp.has(ref, state)
			}
		}
		b.add("paid", reconcile.Succeeded, time.Hour)
		b.psp.has("paid", reconcile.Succeeded, func(r *reconcile.Record) { r.Charges = 3 })
		b.park(charge{"paid"})
		b.add("done", reconcile.Succeeded, time.Hour)
		b.psp.has("done", reconcile.Succeeded)
		b.park(charge{"done"})
		_, err := b.store.Decide(b.Context(), pacht.Decision{Reference: "done", Class: string(reconcile.MissingThere), Status: pacht.BreakWaiting, By: "x", Reason: "y"})
		must(b, err)
		before := b.everything()
		r := b.reconciler(func(c *reconcile.Config) { c.Theirs = &listing{provider: b.psp} })
		for _, lane := range reconcile.Lanes {
			report, err := r.Pass(b.Context(), lane, true)
			must(b, err)
			if lane == reconcile.LanePending {
				b.same("would do", line(report.Healed, report.Waiting, report.Held, report.Closed, report.Resolved), "2 2 1 1 1")
				for _, word := range []string{"dry run", "nothing was changed", "healed", "paid_there_pending_here", "charged_twice"} {
					if !strings.Contains(report.String(), word) {
						b.Errorf("no %q in\n%s", word, report)
					}
				}
				if raw, err := json.Marshal(report); err != nil || !strings.Contains(string(raw), `"dry_run":true`) {
					b.Errorf("%s, %v", raw, err)
				}
			}
		}
		b.same("everything", b.everything(), before)
	})
}

// A pass stops when its lease is lost.
func TestPassEndsWithItsLease(t *testing.T) {
	onBoth(t, func(b *bank) {
		lost, cancel := context.WithCancelCause(b.Context())
		for i := range 9 {
			ref := fmt.Sprint("p", i)
			b.add(ref, reconcile.Pending, time.Hour)
			b.psp.has(ref, reconcile.Succeeded)
		}
		b.psp.lookup["p0"] = func() (reconcile.Record, error) {
			cancel(pacht.ErrLeaseLost)
			return reconcile.Record{}, context.Canceled
		}
		report, err := b.reconciler(func(c *reconcile.Config) { c.Parallel = 1 }).Pass(lost, reconcile.LanePending, false)
		if !errors.Is(err, pacht.ErrLeaseLost) || report.Complete || report.Healed != 0 {
			b.Errorf("report %+v, %v", report, err)
		}
		b.same("nothing is made of it", b.breaks("p0")+b.credits(), "0")
	})
}

// A break of a class that is none of the reconciler's is somebody else's: it neither keeps a payment
// from being healed, nor is it closed because both sides agree.
func TestBreaksOfOtherClassesAreLeftAlone(t *testing.T) {
	onBoth(t, func(b *bank) {
		b.add("p1", reconcile.Pending, time.Hour)
		b.psp.has("p1", reconcile.Succeeded)
		_, err := b.store.Decide(b.Context(), pacht.Decision{
			Reference: "p1", Class: "likely_duplicate", Status: pacht.BreakPerson, AmountMinor: 1999, Currency: "EUR", By: "shop", Reason: "pressed twice?",
		})
		must(b, err)
		r := b.reconciler()
		b.pass(r, reconcile.LanePending)
		b.pass(r, reconcile.LaneSettled)
		b.same("healed, and still with a person", line(b.state("p1"), b.breaks("p1")), "succeeded|0 likely_duplicate person, paid_there_pending_here healed")
	})
}
