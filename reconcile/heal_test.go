package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/reconcile"
)

// S095, S103, S106: webhooks were lost for payments that are a minute to 400 days old, some with a
// parked job and some with none; two reconcilers in two processes heal each once.
func TestTwoReconcilersHealEachPaymentOnce(t *testing.T) {
	onBoth(t, func(b *bank) {
		const n = 200
		jobs := map[string]pacht.ID{}
		for i := range n {
			ref := fmt.Sprintf("p%03d", i)
			b.add(ref, reconcile.Pending, 2*time.Minute+time.Duration(i)*48*time.Hour)
			b.psp.has(ref, reconcile.Succeeded)
			if i%3 == 0 {
				jobs[ref] = b.park(charge{ref}).ID
			}
		}
		reports := make([]reconcile.Report, 2)
		var both sync.WaitGroup
		for i, store := range []database{b.store, b.again()} {
			r := b.reconciler(func(c *reconcile.Config) { c.Store, c.Parallel = store, 8 })
			both.Go(func() {
				report, err := r.Pass(b.Context(), reconcile.LanePending, false)
				if err != nil {
					b.Error(err)
				}
				reports[i] = report
			})
		}
		both.Wait()
		b.same("healed", reports[0].Healed+reports[1].Healed, n)
		b.same("problems", line(reports[0].Problems, reports[1].Problems), "[] []")
		b.same("our records", b.rows("SELECT state, count(*) FROM payments GROUP BY state"), fmt.Sprintf("succeeded|%d", n))
		b.same("credits", b.credits(), line(n))
		b.same("follow-up jobs", b.rows("SELECT count(*) FROM "+b.table("jobs")+" WHERE kind = 'mail'"), line(n))
		b.same("decisions", b.rows("SELECT class, status, count(*), count(DISTINCT reference) FROM "+b.table("decisions")+" GROUP BY class, status"),
			fmt.Sprintf("paid_there_pending_here|healed|%d|%d", n, n))
		for ref, id := range jobs {
			ledger, err := b.store.Attempts(b.Context(), id)
			must(b, err)
			last := ledger[len(ledger)-1]
			if b.job(id).Status != pacht.Completed || last.Outcome != pacht.OutcomeResolved || !strings.Contains(string(last.Output), "ch_"+ref) {
				b.Errorf("job %d of %s: %+v", id, ref, last)
			}
		}
		again := b.pass(b.reconciler(), reconcile.LanePending)
		b.same("a pass afterwards", again.Healed+again.Looked, 0)
	})
}

// S106: webhooks, the return page and the reconciler confirm the same payment at the same
// moment, with a pause in the middle.
func TestPaymentConfirmedFromAllSidesAtOnceIsCreditedOnce(t *testing.T) {
	onBoth(t, func(b *bank) {
		const n = 20
		for i := range n {
			ref := fmt.Sprintf("p%02d", i)
			b.add(ref, reconcile.Pending, time.Hour)
			b.psp.has(ref, reconcile.Succeeded)
			b.park(charge{ref})
		}
		pause := make(chan struct{})
		var once sync.Once
		b.healing = func(string) error {
			once.Do(func() { close(pause) }) // somebody is in the middle of it
			return nil
		}
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				<-pause
				for i := range n {
					ref := fmt.Sprintf("p%02d", i)
					err := b.transition(b.Context(), ref, reconcile.PaidThere, reconcile.Record{}, func(context.Context, pacht.Tx) error { return nil })
					if err != nil {
						b.Errorf("webhook of %s: %v", ref, err)
					}
				}
			})
		}
		r := b.reconciler()
		all.Go(func() {
			if _, err := r.Pass(b.Context(), reconcile.LanePending, false); err != nil {
				b.Error(err)
			}
		})
		all.Wait()
		b.healing = nil
		b.pass(r, reconcile.LanePending) // jobs of payments that the webhook confirmed first
		b.same("credits", b.credits(), line(n))
		b.same("mails", b.rows("SELECT count(*) FROM "+b.table("jobs")+" WHERE kind = 'mail'"), line(n))
		b.same("parked", b.rows("SELECT count(*) FROM "+b.table("leases")+" WHERE status = 'Stuck'"), "0")
	})
}

// S107: an authorisation has lapsed at the provider; the payment fails here too, and its job is
// dead, without another call.
func TestPaymentThatFailedThereFailsHere(t *testing.T) {
	onBoth(t, func(b *bank) {
		b.add("p1", reconcile.Pending, 8*24*time.Hour)
		b.psp.has("p1", reconcile.Failed)
		job := b.park(charge{"p1"})
		report := b.pass(b.reconciler(), reconcile.LanePending)
		b.same("report", line(report.Healed, report.Resolved, b.state("p1"), b.job(job.ID).Status), line(1, 1, "failed|0", pacht.Dead))
		b.same("breaks", b.breaks("p1"), "failed_there_pending_here healed")
	})
}

// A success that comes after we gave up is accepted, with evidence; the finished job stays as it is.
func TestLateSuccessAfterAGiveUpIsAccepted(t *testing.T) {
	onBoth(t, func(b *bank) {
		for _, ref := range []string{"p1", "p2"} {
			b.add(ref, reconcile.Failed, 3*time.Hour)
			b.psp.has(ref, reconcile.Succeeded)
		}
		dead := b.park(charge{"p1"})
		must(b, b.store.Resolve(b.Context(), dead.Ref(), pacht.Resolution{Status: pacht.Dead}, pacht.Act{By: "anna", Reason: "gave up"}))
		lister := &listing{provider: b.psp}
		b.pass(b.reconciler(func(c *reconcile.Config) { c.Theirs = lister }), reconcile.LaneList)
		b.same("state", b.state("p1"), "succeeded|0")
		b.same("break", b.breaks("p1"), "paid_there_failed_here healed")
		b.same("the job", b.job(dead.ID).Status, pacht.Dead)
		entries, err := b.store.Decisions(b.Context(), "p1")
		must(b, err)
		if !strings.Contains(string(entries[0].Theirs), "ch_p1") || !strings.Contains(string(entries[0].Ours), "failed") {
			b.Errorf("evidence: %s, %s", entries[0].Ours, entries[0].Theirs)
		}
		// By policy it is flagged instead.
		b.add("p3", reconcile.Failed, 3*time.Hour)
		b.psp.has("p3", reconcile.Succeeded)
		b.pass(b.reconciler(func(c *reconcile.Config) {
			c.Theirs = lister
			c.Policies = map[reconcile.Class]reconcile.Policy{reconcile.PaidThereLate: {Action: reconcile.Hold}}
		}), reconcile.LaneList)
		b.same("flagged", b.state("p3")+" "+b.breaks("p3"), "failed|0 paid_there_failed_here person")
	})
}

// S105: refunds of 30 and 20 were made at the provider's dashboard.
func TestRefundsMadeThereAreAddedHereAndNeverTooMany(t *testing.T) {
	onBoth(t, func(b *bank) {
		for _, ref := range []string{"p1", "p2", "p3", "p4", "p5"} {
			b.add(ref, reconcile.Succeeded, time.Hour)
		}
		refunded := func(minor int64) func(*reconcile.Record) {
			return func(r *reconcile.Record) { r.Refunded = minor }
		}
		r := b.reconciler()
		b.psp.has("p1", reconcile.Refunded, refunded(30))
		b.psp.has("p2", reconcile.Refunded, refunded(2000)) // more than was taken
		b.psp.has("p3", reconcile.Succeeded)
		b.exec("UPDATE payments SET refunded = 60, state = 'refunded' WHERE reference = 'p3'") // which the provider does not have
		b.psp.has("p4", reconcile.ChargedBack, func(r *reconcile.Record) { r.ChargedBack = 1999 })
		b.psp.has("p5", reconcile.Succeeded, func(r *reconcile.Record) { r.Charges = 2 })
		first := b.pass(r, reconcile.LaneSettled)
		b.psp.has("p1", reconcile.Refunded, refunded(50))
		b.pass(r, reconcile.LaneSettled)
		b.same("p1", b.state("p1"), "refunded|50")
		b.same("its refunds", b.rows("SELECT what FROM credits WHERE reference = 'p1' ORDER BY what"), "reversed_there 30\nreversed_there 50")
		b.same("given back too often", b.state("p2")+" "+b.breaks("p2"), "succeeded|0 amount_differs person")
		b.same("only here", b.state("p3")+" "+b.breaks("p3"), "refunded|60 here_not_there waiting")
		b.same("charged back", b.state("p4")+" "+b.breaks("p4"), "charged_back|0 reversed_there healed")
		b.same("charged twice", b.state("p5")+" "+b.breaks("p5"), "succeeded|0 charged_twice person")
		b.same("first report", line(first.Healed, first.Held, first.Waiting), "2 2 1")
		sum, err := reconcile.Summarize(b.Context(), b.store)
		must(b, err)
		b.same("at risk", sum.AtRisk["EUR"], int64(1+60+1999))
		b.same("healed today", line(sum.Healed[0].Class, sum.Healed[0].Breaks), "reversed_there 2")
	})
}

// S105: a bank takes money back in parts. Each is healed; less there than here is for a person.
func TestPartsThatAreChargedBackThereAreAddedHere(t *testing.T) {
	onBoth(t, func(b *bank) {
		b.add("p1", reconcile.Succeeded, time.Hour)
		r := b.reconciler()
		for _, total := range []int64{500, 1200} {
			b.psp.has("p1", reconcile.ChargedBack, func(r *reconcile.Record) { r.ChargedBack = total })
			b.pass(r, reconcile.LaneSettled)
			b.same("taken back", b.rows("SELECT state, charged_back FROM payments"), fmt.Sprintf("charged_back|%d", total))
		}
		b.same("once each", b.rows("SELECT what FROM credits ORDER BY what"), "reversed_there 1200\nreversed_there 500")
		b.psp.has("p1", reconcile.ChargedBack, func(r *reconcile.Record) { r.ChargedBack = 900 })
		b.pass(r, reconcile.LaneSettled)
		b.same("less there", b.rows("SELECT charged_back FROM payments")+" "+b.breaks("p1"), "1200 here_not_there waiting, reversed_there healed")
	})
}

// What the user's transition says it can never write down is not tried for a day: a person gets it.
func TestHealThatSaysHoldGoesToAPersonAtOnce(t *testing.T) {
	onBoth(t, func(b *bank) {
		b.healing = func(reference string) error {
			if reference == "p1" {
				return fmt.Errorf("no room for it: %w", reconcile.ErrHold)
			}
			return errors.New("the database is away")
		}
		for _, ref := range []string{"p1", "p2"} {
			b.add(ref, reconcile.Succeeded, time.Hour)
			b.psp.has(ref, reconcile.Refunded, func(r *reconcile.Record) { r.Refunded = 500 })
		}
		b.pass(b.reconciler(), reconcile.LaneSettled)
		b.same("never", b.state("p1")+" "+b.breaks("p1"), "succeeded|0 reversed_there person")
		b.same("not now", b.state("p2")+" "+b.breaks("p2"), "succeeded|0 reversed_there waiting")
	})
}

// A payment that was paid and refunded while we still had it as pending gets there in two steps.
func TestPendingPaymentThatWasPaidAndRefundedIsHealedInTwoSteps(t *testing.T) {
	onBoth(t, func(b *bank) {
		b.add("p1", reconcile.Pending, time.Hour)
		b.psp.has("p1", reconcile.Refunded, func(r *reconcile.Record) { r.Refunded = 500 })
		job := b.park(charge{"p1"})
		b.pass(b.reconciler(), reconcile.LanePending)
		b.same("state", b.state("p1"), "refunded|500")
		b.same("breaks", b.breaks("p1"), "paid_there_pending_here healed, reversed_there healed")
		b.same("job", b.job(job.ID).Status, pacht.Completed)
	})
}

// What counts as healed is what was committed with its decision.
func TestHealThatDoesNotCommitItsDecisionIsNone(t *testing.T) {
	onBoth(t, func(b *bank) {
		for name, heal := range map[string]func(ctx context.Context, f *reconcile.Finding) error{
			"fails":   func(context.Context, *reconcile.Finding) error { return errors.New("the disk is full") },
			"panics":  func(context.Context, *reconcile.Finding) error { panic("index out of range") },
			"forgets": func(context.Context, *reconcile.Finding) error { return nil },
			"rolls back": func(ctx context.Context, f *reconcile.Finding) error {
				tx, err := b.db.BeginTx(ctx, nil)
				if err != nil {
					return err
				}
				defer func() { _ = tx.Rollback() }()
				return f.CommitTx(ctx, b.tx(tx))
			},
		} {
			b.add(name, reconcile.Pending, time.Hour)
			b.psp.has(name, reconcile.Succeeded)
			job := b.park(charge{name})
			r := b.reconciler(func(c *reconcile.Config) { c.Ours = healer{b, heal} })
			for range 2 {
				report := b.pass(r, reconcile.LanePending)
				b.same(name, line(report.Healed, report.Lost, b.job(job.ID).Status, b.state(name)), line(0, 0, pacht.Stuck, "pending|0"))
				b.same(name, b.breaks(name), "paid_there_pending_here waiting")
				b.age(20 * time.Minute)
			}
			b.age(24 * time.Hour) // and in the end it is a person's
			b.pass(r, reconcile.LanePending)
			b.same(name, b.breaks(name), "paid_there_pending_here person")
			if why := b.reasons(name); !strings.Contains(why, "Ours.Heal") {
				b.Errorf("%s: reasons %s", name, why)
			}
			// A person's break is healed by the slow lane, if it can be by then.
			b.pass(b.reconciler(), reconcile.LaneSettled)
			b.same(name, b.breaks(name)+" "+b.state(name), "paid_there_pending_here healed succeeded|0")
		}
	})
}

// healer heals otherwise.
type healer struct {
	*bank
	heal func(ctx context.Context, f *reconcile.Finding) error
}

func (h healer) Heal(ctx context.Context, f *reconcile.Finding) error { return h.heal(ctx, f) }

// A transition that says it healed and did not is not made again and again.
func TestHealThatChangesNothingIsNotRepeatedInOneLook(t *testing.T) {
	onBoth(t, func(b *bank) {
		b.add("p1", reconcile.Pending, time.Hour)
		b.psp.has("p1", reconcile.Succeeded)
		healed := 0
		r := b.reconciler(func(c *reconcile.Config) {
			c.Ours = healer{b, func(ctx context.Context, f *reconcile.Finding) error {
				healed++
				return b.transition(ctx, "nobody", f.Class, f.Theirs, f.CommitTx)
			}}
		})
		b.pass(r, reconcile.LanePending)
		b.same("healed", healed, 1)
		b.same("break", b.breaks("p1"), "paid_there_pending_here waiting")
		if why := b.reasons("p1"); !strings.Contains(why, "still differs") {
			b.Errorf("reasons %s", why)
		}
	})
}

func TestFindingOfNobodyCommitsNothing(t *testing.T) {
	onBoth(t, func(b *bank) {
		b.add("p1", reconcile.Pending, time.Hour)
		f := &reconcile.Finding{Class: reconcile.PaidThere, Theirs: reconcile.Record{Reference: "p1"}}
		if err := b.Heal(b.Context(), f); err == nil {
			b.Error("a finding that no reconciler made was committed")
		}
		b.same("state", b.state("p1"), "pending|0")
	})
}
