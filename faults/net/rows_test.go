package net_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/faults/crew"
)

var byHand = pacht.Act{By: "an operator", Reason: "a test of lost answers"}

// jobsOf makes n jobs of the twin's queue, with keys or without.
func (w *twin) jobsOf(n int, keyed bool) []pacht.NewJob {
	jobs := make([]pacht.NewJob, n)
	for i := range jobs {
		opts := []pacht.Option{pacht.Queue(w.name)}
		if keyed {
			opts = append(opts, pacht.IdempotencyKey(fmt.Sprint(w.name, i)))
		}
		jobs[i] = pacht.New(crew.Task{N: i}, opts...)
	}
	return jobs
}

// add stores jobs without a fault.
func (w *twin) add(n int, opts ...pacht.Option) error {
	for i := range n {
		a, err := w.base.Enqueue(w.ctx, []pacht.NewJob{pacht.New(crew.Task{N: i}, append(opts, pacht.Queue(w.name))...)})
		if err != nil {
			return err
		}
		if a[0].Err != nil {
			return a[0].Err
		}
		w.ids = append(w.ids, a[0].ID)
	}
	return nil
}

func (w *twin) request(limit int) pacht.ClaimRequest {
	return pacht.ClaimRequest{Owner: w.name, Queue: w.name, Kinds: []string{"task"}, Limit: limit}
}

// hold stores a job and claims it, without a fault.
func hold(w *twin) error {
	if err := w.add(1); err != nil {
		return err
	}
	claims, err := w.base.Claim(w.ctx, w.request(1))
	if err != nil || len(claims.Jobs) != 1 {
		return fmt.Errorf("claimed %d: %w", len(claims.Jobs), err)
	}
	w.held = claims.Jobs[0]
	return nil
}

// ended is hold, and a settle with this outcome.
func ended(s pacht.Settlement) func(*twin) error {
	return func(w *twin) error {
		if err := hold(w); err != nil {
			return err
		}
		s.Ref = w.held.Ref()
		return settle(w, w.base, s)
	}
}

func settle(w *twin, on pacht.Leaser, s pacht.Settlement) error {
	answers, err := on.Settle(w.ctx, []pacht.Settlement{s})
	if err != nil {
		return err
	}
	return answers[0].Err
}

// adopt asks for what is held after a claim that went unanswered (R4).
func adopt(want int) func(*twin) error {
	return func(w *twin) error {
		held, err := w.on.HeldBy(w.ctx, w.name)
		if err == nil && len(held.Jobs) != want {
			err = fmt.Errorf("held are %d, want %d", len(held.Jobs), want)
		}
		return err
	}
}

// inTx does something as the last thing in a caller's transaction.
func inTx(fn func(*twin, pacht.Tx) error) func(*twin) error {
	return func(w *twin) error {
		tx, commit := w.begin()
		if err := fn(w, tx); err != nil {
			if commit() == nil {
				return fmt.Errorf("the transaction was committed after %w", err)
			}
			return err
		}
		return commit()
	}
}

func is(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }

func refusedBreak(err error) bool {
	var refused *pacht.BreakError
	return errors.As(err, &refused) && refused.Break.Rev == refused.Rev+1
}

// enqueueOnce is never repeated: nobody could tell the second job from the first (R11).
func never(*twin) error { return nil }

func enqueueRow(name string, n int, keyed bool) row {
	return keyedRow(keyed, row{verb: "Enqueue", name: name, act: func(w *twin) error {
		answers, err := w.on.Enqueue(w.ctx, w.jobsOf(n, keyed))
		for _, a := range answers {
			err = errors.Join(err, a.Err)
		}
		return err
	}})
}

func enqueueManyRow(name string, n int, keyed bool) row {
	return keyedRow(keyed, row{verb: "EnqueueInTurn", name: name, act: func(w *twin) error {
		_, err := pacht.NewClient(w.on).EnqueueMany(w.ctx, slices.Values(w.jobsOf(n, keyed)))
		return err
	}})
}

// keyedRow is the row of an enqueue, which is repeated inside with keys, and never without.
func keyedRow(keyed bool, r row) row {
	r.inside = keyed
	if !keyed {
		r.again = never
	}
	return r
}

func settleRow(name string, s pacht.Settlement) row {
	return row{verb: "Settle", name: name, inside: true, prepare: hold, act: func(w *twin) error {
		s.Ref = w.held.Ref()
		return settle(w, w.on, s)
	}}
}

// gone sweeps or prunes until the twin's job is no more.
func gone(sweep func(*twin) error) func(*twin) error {
	return func(w *twin) error {
		for deadline := time.Now().Add(10 * time.Second); ; {
			if err := sweep(w); err != nil {
				return err
			}
			if _, err := w.base.Job(w.ctx, w.ids[0]); errors.Is(err, pacht.ErrNotFound) {
				return nil
			}
			if time.Now().After(deadline) {
				return errors.New("the job is not swept away")
			}
		}
	}
}

func sweepRow(target pacht.Target) row {
	sweep := func(w *twin) error {
		_, err := w.on.Sweep(w.ctx, pacht.SweepRequest{By: w.name, Target: target, Limit: pacht.MaxBatch, Period: 10 * time.Millisecond, Force: true})
		return err
	}
	r := row{verb: "Sweep", name: string(target), prepare: ended(pacht.Settlement{Outcome: pacht.OutcomeCompleted}), act: sweep}
	if target == pacht.SweepCompleted {
		r.act = gone(sweep)
	}
	return r
}

func resolve(w *twin) error {
	return w.on.Resolve(w.ctx, w.ref(), pacht.Resolution{Status: pacht.Completed, Output: json.RawMessage(`{"found": true}`)}, byHand)
}

// ref is the first job's with the token it has now.
func (w *twin) ref() pacht.Ref {
	if w.held.ID != 0 {
		return w.held.Ref()
	}
	return pacht.Ref{Job: w.ids[0]}
}

func (w *twin) decision() pacht.Decision {
	return pacht.Decision{Reference: w.name, Class: "missing_here", Status: pacht.BreakWaiting, AmountMinor: 100, Currency: "EUR", By: w.name, Reason: "seen"}
}

func (w *twin) intent() pacht.EffectIntent {
	return pacht.EffectIntent{Name: "charge", Key: w.name, Reference: w.name}
}

// called is hold with an effect that was called.
func called(w *twin) error {
	if err := hold(w); err != nil {
		return err
	}
	_, err := w.base.BeginEffect(w.ctx, w.held.Ref(), w.intent())
	return err
}

func answerRow(name string, a pacht.EffectAnswer) row {
	return row{verb: "AnswerEffect", name: name, inside: true, prepare: called, act: func(w *twin) error {
		a.Job, a.Name, a.Rev = w.held.ID, "charge", 1
		_, err := w.on.AnswerEffect(w.ctx, a)
		return err
	}}
}

func waitForWork(n int) func(*twin) error { return func(w *twin) error { return w.add(n) } }

// overdue is hold, and the end of the lease.
func overdue(w *twin) error {
	err := hold(w)
	w.age(2 * pacht.DefaultTTL)
	return err
}

func expire(w *twin) error {
	_, err := w.on.Expire(w.ctx, pacht.ExpireRequest{By: w.name, Limit: pacht.MaxBatch, Period: time.Hour, Force: true})
	return err
}

func rows() []row {
	completed := pacht.Settlement{Outcome: pacht.OutcomeCompleted}
	failed := pacht.Settlement{Outcome: pacht.OutcomeFailed, Permanent: true, Error: "for good"}
	claim := func(w *twin) error { _, err := w.on.Claim(w.ctx, w.request(2)); return err }
	claimMany := func(w *twin) error { _, err := w.on.Claim(w.ctx, w.request(60)); return err }
	claimID := func(w *twin) error { _, _, err := w.on.ClaimID(w.ctx, w.name, w.ids[0]); return err }
	retry := func(w *twin) error { return w.on.Retry(w.ctx, w.ids[0], byHand) }
	cancel := func(w *twin) error { _, err := w.on.Cancel(w.ctx, w.ids[0], byHand); return err }
	release := func(w *twin) error { _, err := w.on.Release(w.ctx, w.ref(), byHand); return err }
	settleTx := func(w *twin, tx pacht.Tx) error {
		return tx.SettleTx(w.ctx, pacht.Settlement{Ref: w.held.Ref(), Outcome: pacht.OutcomeCompleted})
	}
	setStepTx := func(w *twin, tx pacht.Tx) error {
		return tx.SetStepTx(w.ctx, w.held.Ref(), "paid", json.RawMessage(`{"n": 1}`))
	}
	enqueueTx := func(keyed bool) func(*twin, pacht.Tx) error {
		return func(w *twin, tx pacht.Tx) error { _, err := tx.EnqueueTx(w.ctx, w.jobsOf(2, keyed)); return err }
	}
	return slices.Concat([]row{
		enqueueRow("one", 1, false),
		enqueueRow("several", 3, false),
		enqueueRow("hundreds", 250, false),
		enqueueRow("one with a key", 1, true),
		enqueueRow("several with keys", 3, true),
		enqueueRow("hundreds with keys", 250, true),
		enqueueManyRow("hundreds", 250, false),
		enqueueManyRow("hundreds with keys", 250, true),
		{verb: "EnqueueTx", name: "without keys", act: inTx(enqueueTx(false)), again: never},
		{verb: "EnqueueTx", name: "with keys", act: inTx(enqueueTx(true))},

		{verb: "Claim", name: "adopted", prepare: waitForWork(3), act: claim, again: adopt(2)},
		{verb: "Claim", name: "of many, in turn", prepare: waitForWork(3), act: claimMany, again: adopt(3)},
		{verb: "Claim", name: "given back", prepare: waitForWork(1), act: func(w *twin) error {
			claims, err := w.on.Claim(w.ctx, w.request(1))
			if err != nil {
				return err
			}
			return settle(w, w.base, pacht.Settlement{Ref: claims.Jobs[0].Ref(), Outcome: pacht.OutcomeReleased})
		}, again: func(w *twin) error {
			held, err := w.on.HeldBy(w.ctx, w.name)
			if err != nil || len(held.Jobs) > 1 {
				return fmt.Errorf("held are %d: %w", len(held.Jobs), err)
			}
			for _, job := range held.Jobs {
				err = settle(w, w.base, pacht.Settlement{Ref: job.Ref(), Outcome: pacht.OutcomeReleased})
			}
			return err
		}},
		{verb: "ClaimID", name: "due", prepare: waitForWork(1), act: claimID, again: adopt(1)},
		{verb: "ClaimID", name: "expired", prepare: overdue, act: claimID, again: adopt(1)},
		{verb: "Renew", inside: true, prepare: hold, act: func(w *twin) error {
			answer, err := w.on.Renew(w.ctx, []pacht.Ref{w.held.Ref()})
			if err == nil && answer.Rows[0].State != pacht.RenewExtended {
				err = errors.New(answer.Rows[0].State.String())
			}
			return err
		}},

		settleRow("completed", completed),
		settleRow("completed with output", pacht.Settlement{Outcome: pacht.OutcomeCompleted, Output: json.RawMessage(`{"receipt": 7}`)}),
		settleRow("failed", pacht.Settlement{Outcome: pacht.OutcomeFailed, Error: "no", Delay: time.Hour}),
		settleRow("failed for good", failed),
		settleRow("failed and given back", pacht.Settlement{Outcome: pacht.OutcomeFailed, GiveBack: true, Delay: time.Hour}),
		settleRow("released", pacht.Settlement{Outcome: pacht.OutcomeReleased}),
		settleRow("snoozed", pacht.Settlement{Outcome: pacht.OutcomeSnoozed, Delay: 2 * time.Hour}),
		settleRow("cancelled", pacht.Settlement{Outcome: pacht.OutcomeCancelled, Error: "not needed"}),
		settleRow("unknown", pacht.Settlement{Outcome: pacht.OutcomeUnknown, Error: "no answer"}),
		{verb: "Settle", name: "too late, kept as a report", inside: true, prepare: func(w *twin) error {
			if err := overdue(w); err != nil {
				return err
			}
			_, err := w.base.Expire(w.ctx, pacht.ExpireRequest{By: w.name, Limit: pacht.MaxBatch, Period: time.Hour, Force: true})
			return err
		}, act: func(w *twin) error {
			err := settle(w, w.on, pacht.Settlement{Ref: w.held.Ref(), Outcome: pacht.OutcomeCompleted})
			if errors.Is(err, pacht.ErrLeaseLost) {
				return nil // is the answer
			}
			return fmt.Errorf("not refused: %w", err)
		}},
		{verb: "SettleTx", prepare: hold, act: inTx(settleTx), refused: is(pacht.ErrAlreadySettled)},

		{verb: "SetStep", prepare: hold, twice: true, act: func(w *twin) error {
			return w.on.SetStep(w.ctx, w.held.Ref(), "paid", json.RawMessage(`{"n": 1}`))
		}},
		{verb: "SetStepTx", prepare: hold, twice: true, act: inTx(setStepTx)},
		{verb: "Beat", inside: true, act: func(w *twin) error {
			return w.on.Beat(w.ctx, pacht.WorkerInfo{Owner: w.name, Host: "here", PID: 7, Queues: []string{w.name}, Kinds: []string{"task"}, BeatEvery: time.Second})
		}},
		{verb: "Leave", inside: true, prepare: func(w *twin) error {
			return w.base.Beat(w.ctx, pacht.WorkerInfo{Owner: w.name, Host: "here", PID: 7, BeatEvery: time.Second})
		}, act: func(w *twin) error { return w.on.Leave(w.ctx, w.name) }},
		{verb: "Sleep", inside: true, act: func(w *twin) error { return w.on.Sleep(w.ctx, w.name, []string{w.name}, time.Minute) }},
		{verb: "Rise", inside: true, act: func(w *twin) error { return w.on.Rise(w.ctx, w.name, []string{w.name}) }},
		{verb: "Expire", prepare: overdue, act: expire},
	}, handRows(ended(completed), ended(failed), retry, cancel, release))
}

// handRows are acts by hand, of the reconciler, and of the sweeper.
func handRows(completed, failed, retry, cancel, release func(*twin) error) []row {
	unknown := ended(pacht.Settlement{Outcome: pacht.OutcomeUnknown})
	return []row{
		{verb: "Retry", name: "of a Dead one", prepare: failed, act: retry, refused: is(pacht.ErrWrongStatus)},
		{verb: "Retry", name: "of a Stuck one", prepare: unknown, act: retry, refused: is(pacht.ErrWrongStatus)},
		{verb: "Cancel", name: "of a Pending one", prepare: waitForWork(1), act: cancel, refused: is(pacht.ErrWrongStatus)},
		{verb: "Cancel", name: "of a Processing one", prepare: hold, act: cancel, twice: true},
		{verb: "Release", prepare: hold, act: release, refused: is(pacht.ErrLeaseLost)},
		{verb: "Resolve", name: "of a Pending one", prepare: waitForWork(1), act: resolve, refused: is(pacht.ErrLeaseLost)},
		{verb: "Resolve", name: "of a Stuck one", prepare: unknown, act: resolve, refused: is(pacht.ErrLeaseLost)},
		{verb: "ResolveTx", prepare: unknown, act: inTx(func(w *twin, tx pacht.Tx) error {
			return tx.ResolveTx(w.ctx, w.ref(), pacht.Resolution{Status: pacht.Dead, Error: "never paid"}, byHand)
		}), refused: is(pacht.ErrLeaseLost)},
		{verb: "SetQueue", twice: true, act: func(w *twin) error {
			return w.on.SetQueue(w.ctx, w.name, pacht.QueueSettings{TTL: time.Hour, MaxAttempts: 7}, byHand)
		}},

		{verb: "Decide", act: func(w *twin) error { _, err := w.on.Decide(w.ctx, w.decision()); return err }, refused: refusedBreak},
		{verb: "DecideTx", act: inTx(func(w *twin, tx pacht.Tx) error { return tx.DecideTx(w.ctx, w.decision()) }), refused: refusedBreak},
		// Nobody may call after an intent that went unanswered: it stands as called (R10).
		{verb: "BeginEffect", prepare: hold, act: func(w *twin) error {
			_, err := w.on.BeginEffect(w.ctx, w.held.Ref(), w.intent())
			return err
		}, again: func(w *twin) error {
			begun, err := w.on.BeginEffect(w.ctx, w.held.Ref(), w.intent())
			if err == nil && (begun.Begun || begun.Effect.State != pacht.EffectCalled) {
				err = fmt.Errorf("the effect may be called a second time: %+v", begun)
			}
			return err
		}},
		answerRow("succeeded", pacht.EffectAnswer{State: pacht.EffectSucceeded, Answer: json.RawMessage(`{"id": "ch_1"}`)}),
		answerRow("failed", pacht.EffectAnswer{State: pacht.EffectFailed, Error: "declined"}),
		answerRow("unknown", pacht.EffectAnswer{State: pacht.EffectUnknown, Error: "timeout"}),
		answerRow("ready", pacht.EffectAnswer{State: pacht.EffectReady, Error: "not now", Wait: time.Hour}),

		{verb: "Prune", inside: true, prepare: completed, act: gone(func(w *twin) error {
			_, err := w.on.Prune(w.ctx, pacht.PruneRequest{Status: pacht.Completed, Limit: pacht.MaxBatch})
			return err
		})},
		sweepRow(pacht.SweepCompleted), sweepRow(pacht.SweepKeys), sweepRow(pacht.SweepWorkers),
		{verb: "MigrateUp", inside: true, act: func(w *twin) error { return w.migrate() }},
	}
}
