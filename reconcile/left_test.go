package reconcile_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/reconcile"
)

// differ brings a reference to a state that is of this class.
func (b *bank) differ(reference string, class reconcile.Class) {
	b.Helper()
	sides := map[reconcile.Class][2]reconcile.State{
		reconcile.PaidThere: {reconcile.Pending, reconcile.Succeeded}, reconcile.PaidThereLate: {reconcile.Failed, reconcile.Succeeded},
		reconcile.FailedThere: {reconcile.Pending, reconcile.Failed}, reconcile.ReversedThere: {reconcile.Succeeded, reconcile.Refunded},
		reconcile.UnknownThere: {reconcile.Pending, reconcile.Pending}, reconcile.UnknownHere: {reconcile.Pending, reconcile.Succeeded},
		reconcile.MissingThere: {reconcile.Succeeded, ""}, reconcile.MissingHere: {"", reconcile.Succeeded},
		reconcile.AmountDiffers: {reconcile.Pending, reconcile.Succeeded}, reconcile.ChargedTwice: {reconcile.Succeeded, reconcile.Succeeded},
		reconcile.PaidHere: {reconcile.Succeeded, reconcile.Failed},
	}
	s, ok := sides[class]
	if !ok {
		b.Fatalf("nothing is known to be of class %s", class)
	}
	if s[0] != "" {
		b.add(reference, s[0], time.Hour)
	}
	if s[1] != "" {
		b.psp.has(reference, s[1], func(r *reconcile.Record) {
			switch class {
			case reconcile.ReversedThere:
				r.Refunded = 500
			case reconcile.AmountDiffers:
				r.Amount.Minor++
			case reconcile.ChargedTwice:
				r.Charges = 2
			}
		})
	}
	if class == reconcile.UnknownHere {
		b.find[reference] = func() (reconcile.Record, error) { return reconcile.Record{}, errors.New("no such column") }
	}
}

// put makes a decision that is not the reconciler's, and answers the break.
func (b *bank) put(reference string, class reconcile.Class, status pacht.BreakStatus) pacht.Break {
	b.Helper()
	d := pacht.Decision{Reference: reference, Class: string(class), Status: status, By: "ann", Reason: "as it is"}
	old, err := b.store.Breaks(b.Context(), pacht.BreakFilter{Reference: reference, Class: string(class), Ended: true})
	must(b, err)
	if len(old) > 0 {
		d.Rev, d.Ours, d.Theirs = old[0].Rev, old[0].Ours, old[0].Theirs
	}
	made, err := b.store.Decide(b.Context(), d)
	must(b, err)
	return made
}

// R12: whatever a due reference has come to, and whatever is known of it, a look leaves none of its
// breaks waiting undecided: it is decided again, or it is ended.
func TestALookLeavesNoDueBreakUndecidedWhateverTheClass(t *testing.T) {
	onBoth(t, func(b *bank) {
		hold := map[reconcile.Class]reconcile.Policy{}
		for _, class := range reconcile.Classes {
			hold[class] = reconcile.Policy{Action: reconcile.Hold}
		}
		b.healing = func(string) error { return errors.New("out of order") }
		holding, usual := b.reconciler(func(c *reconcile.Config) { c.Policies = hold }), b.reconciler()
		each := func(do func(ref string, now, was reconcile.Class)) {
			for _, now := range reconcile.Classes {
				for _, was := range reconcile.Classes {
					if was != now {
						do(string(now)+" "+string(was), now, was)
					}
				}
			}
		}
		placed := map[string]pacht.Break{}
		decided := func(what string) {
			b.Helper()
			for ref, old := range placed {
				list, err := b.store.Breaks(b.Context(), pacht.BreakFilter{Reference: ref, Class: old.Class})
				must(b, err)
				if len(list) > 0 && list[0].Rev == old.Rev {
					b.Errorf("%s: %q is left undecided as %s: %s", what, ref, old.Class, b.breaks(ref))
				}
			}
			clear(placed)
		}

		each(func(ref string, now, was reconcile.Class) {
			b.differ(ref, now)
			placed[ref] = b.put(ref, was, pacht.BreakWaiting)
		})
		b.pass(holding, reconcile.LanePending)
		decided("given to a person")

		// The difference is with a person, and a break of the time before was left over.
		each(func(ref string, _, was reconcile.Class) { placed[ref] = b.put(ref, was, pacht.BreakWaiting) })
		b.pass(usual, reconcile.LaneSettled)
		decided("with a person")

		each(func(ref string, now, was reconcile.Class) {
			b.put(ref, now, pacht.BreakClosed)
			placed[ref] = b.put(ref, was, pacht.BreakWaiting)
		})
		report := b.pass(usual, reconcile.LanePending)
		b.same("accepted", report.Accepted, len(placed))
		some := string(reconcile.AmountDiffers) + " " + string(reconcile.UnknownThere)
		decided("accepted by a person")
		if why := b.reasons(some); !strings.HasSuffix(why, "unknown_there closed: it is now amount_differs, which a person has accepted") {
			b.Errorf("%s", why)
		}
	})
}

// R12: what the provider has without a reference of ours cannot be looked up, and leaves the
// provider's list some day. A break of it that waits goes to a person at its age all the same.
func TestABreakOfWhatHasLeftTheListGoesToAPerson(t *testing.T) {
	onBoth(t, func(b *bank) {
		list := attempts{provider: b.psp, rows: []reconcile.Record{
			{ProviderID: "ch_9", State: reconcile.Succeeded, Amount: euro(1999), At: time.Now().Add(-time.Hour)},
		}}
		r := b.reconciler(func(c *reconcile.Config) {
			c.Theirs = &list
			c.Policies = map[reconcile.Class]reconcile.Policy{reconcile.MissingHere: {Action: reconcile.Heal, MaxAge: 3 * time.Hour}}
		})
		b.pass(r, reconcile.LaneList)
		b.same("first", b.breaks("provider:ch_9"), "there_not_here waiting")
		list.rows = nil
		b.age(2 * time.Hour)
		report := b.pass(r, reconcile.LanePending)
		b.same("asked again", line(b.breaks("provider:ch_9"), report.Waiting, report.LookUps), "there_not_here waiting 1 0")
		b.age(2 * time.Hour)
		b.pass(r, reconcile.LanePending)
		b.same("at its age", b.breaks("provider:ch_9"), "there_not_here person")
	})
}
