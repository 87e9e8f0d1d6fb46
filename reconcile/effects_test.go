package reconcile_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/effect"
	"github.com/pacht-queue/pacht/reconcile"
)

// parkCalled makes a job that called the provider and then did not know what came of it.
func (b *bank) parkCalled(args pacht.Args, name, reference string) pacht.JobInfo {
	b.Helper()
	answers, err := b.store.Enqueue(b.Context(), []pacht.NewJob{pacht.New(args)})
	must(b, err)
	job, ok, err := b.store.ClaimID(b.Context(), "worker", answers[0].ID)
	if err != nil || !ok {
		b.Fatalf("claim: %v, %v", ok, err)
	}
	begun, err := b.store.BeginEffect(b.Context(), job.Ref(), pacht.EffectIntent{Name: name, Key: fmt.Sprintf("key of %d", job.ID), Reference: reference})
	must(b, err)
	_, err = b.store.AnswerEffect(b.Context(), pacht.EffectAnswer{Job: job.ID, Name: name, Rev: begun.Effect.Rev, State: pacht.EffectUnknown, Error: "timeout"})
	must(b, err)
	settled, err := b.store.Settle(b.Context(), []pacht.Settlement{{Ref: job.Ref(), Outcome: pacht.OutcomeUnknown}})
	must(b, err)
	must(b, settled[0].Err)
	return b.job(job.ID)
}

// effects is the effects of a job in short.
func (b *bank) effects(id pacht.ID) string {
	b.Helper()
	list, err := b.store.Effects(b.Context(), id)
	must(b, err)
	text := ""
	for _, e := range list {
		text += fmt.Sprintf("%s %s %s", e.Name, e.State, e.Answer)
	}
	return text
}

type receipt struct {
	ID string `json:"id"`
}

// withProber asks about the effect "charge" as say does.
func (b *bank) withProber(say func(ctx context.Context, e pacht.Effect) (effect.Verdict[receipt], error)) *reconcile.Reconciler {
	b.Helper()
	all := effect.New(b.store)
	_, err := effect.Define(all, "charge", effect.Spec[receipt]{KeyLife: 24 * time.Hour, Consistency: time.Minute, Probe: say})
	must(b, err)
	return b.reconciler(func(c *reconcile.Config) { c.Effects = all })
}

// S100, R10: the prober's answer is stored before the payment is healed, and the job is closed.
func TestEffectWithoutAnAnswerGetsTheProbersAndItsPaymentIsHealed(t *testing.T) {
	onBoth(t, func(b *bank) {
		say := map[string]effect.Verdict[receipt]{
			"p1": {State: effect.Succeeded, Result: receipt{"ch_1"}},
			"p2": {State: effect.Failed, Reason: "card declined"},
		}
		b.psp.has("p1", reconcile.Succeeded)
		b.psp.has("p2", reconcile.Failed)
		jobs := map[string]pacht.JobInfo{}
		for ref := range say {
			b.add(ref, reconcile.Pending, time.Hour)
			jobs[ref] = b.parkCalled(charge{ref}, "charge", ref)
		}
		stored := map[string]string{}
		b.healing = func(ref string) error {
			list, err := b.store.OpenEffects(context.Background(), pacht.EffectCursor{}, 10)
			for _, e := range list {
				stored[ref] += e.Reference + " is open"
			}
			return err
		}
		r := b.withProber(func(_ context.Context, e pacht.Effect) (effect.Verdict[receipt], error) { return say[e.Reference], nil })
		report := b.pass(r, reconcile.LanePending)
		b.same("report", line(report.Answered, report.Healed, report.Resolved), "2 2 2")
		b.same("paid", line(b.state("p1"), b.effects(jobs["p1"].ID), b.job(jobs["p1"].ID).Status), line("succeeded|0", `charge succeeded {"id":"ch_1"}`, pacht.Completed))
		b.same("failed", line(b.state("p2"), b.effects(jobs["p2"].ID), b.job(jobs["p2"].ID).Status), line("failed|0", "charge failed ", pacht.Dead))
		if strings.Contains(stored["p1"], "p1") || strings.Contains(stored["p2"], "p2") {
			b.Errorf("while healing: %v", stored)
		}
	})
}

// Without a prober the record counts, once both sides agree; also for a job that is finished.
func TestEffectWithoutAProberIsAnsweredByTheRecord(t *testing.T) {
	onBoth(t, func(b *bank) {
		b.add("p1", reconcile.Pending, time.Hour)
		b.psp.has("p1", reconcile.Succeeded)
		parked := b.parkCalled(charge{"p1"}, "charge", "p1")
		b.add("p2", reconcile.Failed, time.Hour)
		b.psp.has("p2", reconcile.Failed)
		dead := b.parkCalled(charge{"p2"}, "charge", "p2")
		must(b, b.store.Resolve(b.Context(), dead.Ref(), pacht.Resolution{Status: pacht.Dead}, pacht.Act{By: "anna", Reason: "gave up"}))
		report := b.pass(b.reconciler(), reconcile.LanePending)
		b.same("report", line(report.Answered, report.Healed, report.Resolved), "2 1 1")
		if got := b.effects(parked.ID); !strings.HasPrefix(got, "charge succeeded") || !strings.Contains(got, "ch_p1") {
			b.Error(got)
		}
		b.same("dead", b.effects(dead.ID), "charge failed ")
		open, err := b.store.OpenEffects(b.Context(), pacht.EffectCursor{}, 10)
		must(b, err)
		b.same("open effects", len(open), 0)
	})
}

// S102: not found counts only after the effect's consistency delay; then the job goes on, which calls
// again under the same key. It is never turned into a failure.
func TestEffectThatIsNotThereMayBeCalledAgainAfterTheDelay(t *testing.T) {
	onBoth(t, func(b *bank) {
		b.add("p1", reconcile.Pending, time.Hour)
		job := b.parkCalled(charge{"p1"}, "charge", "p1")
		r := b.withProber(func(context.Context, pacht.Effect) (effect.Verdict[receipt], error) {
			return effect.Verdict[receipt]{State: effect.NotFound}, nil
		})
		report := b.pass(r, reconcile.LanePending)
		b.same("within the delay", line(report.Retried, b.job(job.ID).Status, b.breaks("p1")), line(0, pacht.Stuck, "here_not_there waiting"))
		b.age(2 * time.Minute)
		report = b.pass(r, reconcile.LanePending)
		b.same("after it", line(report.Retried, b.job(job.ID).Status, b.breaks("p1")), line(1, pacht.Pending, "here_not_there waiting"))
		b.same("the effect and the record", b.effects(job.ID)+b.state("p1"), "charge unknown pending|0")
		audit, err := b.store.Audit(b.Context(), job.ID)
		must(b, err)
		b.same("audit", line(len(audit), audit[0].Act), "1 retry")
	})
}

// Garbage from a prober is inconclusive and leaves everything as it is.
func TestProberThatPanicsOrLiesChangesNothing(t *testing.T) {
	onBoth(t, func(b *bank) {
		var jobs []pacht.ID
		for _, ref := range []string{"panics", "lies", "errs"} {
			b.add(ref, reconcile.Pending, time.Hour)
			jobs = append(jobs, b.parkCalled(charge{ref}, "charge", ref).ID)
			b.psp.lookup[ref] = func() (reconcile.Record, error) { return reconcile.Record{}, nil }
		}
		r := b.withProber(func(_ context.Context, e pacht.Effect) (effect.Verdict[receipt], error) {
			switch e.Reference {
			case "panics":
				panic("nil map")
			case "lies":
				return effect.Verdict[receipt]{State: "done"}, nil
			}
			return effect.Verdict[receipt]{State: effect.Succeeded}, fmt.Errorf("503")
		})
		report := b.pass(r, reconcile.LanePending)
		b.same("report", line(report.Answered, report.Healed, report.Resolved, report.Retried, report.Waiting), "0 0 0 0 3")
		for _, id := range jobs {
			b.same("effect and job", b.effects(id)+string(b.job(id).Status), "charge unknown "+string(pacht.Stuck))
		}
	})
}

// A parked job with an effect that the record does not tell is not closed by the record.
func TestJobWithAnotherOpenEffectIsNotClosedByTheRecord(t *testing.T) {
	onBoth(t, func(b *bank) {
		b.add("p1", reconcile.Succeeded, time.Hour)
		b.psp.has("p1", reconcile.Succeeded)
		job := b.parkCalled(charge{"p1"}, "receipt", "mail-7")
		b.pass(b.reconciler(), reconcile.LanePending)
		b.same("job", line(b.job(job.ID).Status, b.effects(job.ID)), line(pacht.Stuck, "receipt unknown "))
		b.same("break", b.breaks("p1"), "unknown_there waiting")
		b.add("p2", reconcile.Pending, time.Hour)
		b.psp.has("p2", reconcile.Succeeded)
		other := b.parkCalled(charge{"p2"}, "receipt", "mail-8")
		b.pass(b.reconciler(), reconcile.LanePending)
		b.same("healed, and not closed", line(b.state("p2"), b.job(other.ID).Status, b.breaks("p2")), line("succeeded|0", pacht.Stuck, "paid_there_pending_here healed, unknown_there waiting"))
	})
}

// R10: a break that the reconciler closed because the difference had gone was accepted by nobody:
// when it comes again with the same evidence it is open again, and no parked job is forgotten.
func TestDifferenceThatComesAgainIsOpenAgainUnlessAPersonAcceptedIt(t *testing.T) {
	onBoth(t, func(b *bank) {
		b.add("p1", reconcile.Succeeded, time.Hour)
		b.psp.has("p1", reconcile.Succeeded)
		r := b.reconciler()
		b.parkCalled(charge{"p1"}, "receipt", "mail-7")
		b.pass(r, reconcile.LanePending)
		first := b.jobsStuck()[0]
		effects, err := b.store.Effects(b.Context(), first)
		must(b, err)
		_, err = b.store.AnswerEffect(b.Context(), pacht.EffectAnswer{Job: first, Name: "receipt", Rev: effects[0].Rev, State: pacht.EffectSucceeded})
		must(b, err)
		b.age(time.Hour)
		b.pass(r, reconcile.LanePending)
		b.same("gone", line(b.breaks("p1"), len(b.jobsStuck())), "unknown_there closed 0")
		b.parkCalled(charge{"p1"}, "receipt", "mail-8")
		b.pass(r, reconcile.LanePending)
		b.same("again", line(b.breaks("p1"), len(b.jobsStuck())), "unknown_there waiting 1")
		// Ended by a person, it is not opened again.
		last, err := b.store.Breaks(b.Context(), pacht.BreakFilter{Reference: "p1", Limit: 10})
		must(b, err)
		_, err = b.store.Decide(b.Context(), pacht.Decision{
			Reference: "p1", Class: last[0].Class, Rev: last[0].Rev, Status: pacht.BreakClosed, Ours: last[0].Ours, Theirs: last[0].Theirs, By: "ann", Reason: "as it is",
		})
		must(b, err)
		report := b.pass(r, reconcile.LanePending)
		b.same("accepted", line(b.breaks("p1"), report.Accepted), "unknown_there closed 1")
	})
}

func (b *bank) jobsStuck() (ids []pacht.ID) {
	b.Helper()
	jobs, err := b.store.Jobs(b.Context(), pacht.Filter{Status: pacht.Stuck, Limit: 10})
	must(b, err)
	for _, j := range jobs {
		ids = append(ids, j.ID)
	}
	return ids
}

// R10: a call without an answer stays with a person, whatever the records say: that both sides agree
// does not tell what came of it. Its job may be finished by then.
func TestUnknownEffectStaysWithAPersonThoughTheRecordsAgree(t *testing.T) {
	onBoth(t, func(b *bank) {
		b.add("p1", reconcile.Failed, time.Hour) // given up, and the provider does not know it
		b.add("p2", reconcile.Failed, time.Hour)
		b.parkCalled(charge{"p1"}, "charge", "p1")
		dead := b.parkCalled(charge{"p2"}, "charge", "p2")
		must(b, b.store.Resolve(b.Context(), dead.Ref(), pacht.Resolution{Status: pacht.Dead}, pacht.Act{By: "ann", Reason: "test"}))
		r := b.reconciler()
		b.pass(r, reconcile.LanePending)
		b.age(2 * time.Hour)
		for range 2 {
			b.pass(r, reconcile.LanePending)
			b.pass(r, reconcile.LaneSettled)
			b.same("breaks", line(b.breaks("p1"), b.breaks("p2")), "here_not_there person here_not_there person")
		}
	})
}

// A payment that is settled here is not put back to be called again, though its key would allow it.
func TestJobOfASettledRecordIsNotPutBackToCallAgain(t *testing.T) {
	onBoth(t, func(b *bank) {
		r := b.withProber(func(context.Context, pacht.Effect) (v effect.Verdict[receipt], err error) {
			v.State = effect.NotFound
			return v, nil
		})
		for _, state := range []reconcile.State{reconcile.Failed, reconcile.Succeeded, reconcile.Pending} {
			b.add(string(state), state, time.Hour)
			b.parkCalled(charge{string(state)}, "charge", string(state))
		}
		b.age(10 * time.Minute)
		report := b.pass(r, reconcile.LanePending)
		b.same("put back", line(report.Retried, len(b.jobsStuck())), "1 2")
	})
}
