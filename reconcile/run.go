package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
)

// Pass is the job that makes one pass. Give Reconciler.Handle to a worker, and let
// Reconciler.Run enqueue it.
type Pass struct {
	Lane   Lane      `json:"lane"`
	Bucket time.Time `json:"bucket"` // the period that it is the pass of
}

// Kind implements pacht.Args.
func (Pass) Kind() string { return kindOfPasses }

// EnqueueOptions implements pacht.ArgsWithOptions. A pass is worth little effort: the next one
// comes anyhow.
func (Pass) EnqueueOptions() []pacht.Option {
	return []pacht.Option{pacht.OnCrash(pacht.CrashRetry), pacht.MaxAttempts(3)}
}

// keyScope separates the keys of passes from those of users.
const keyScope = kindOfPasses

// Run enqueues a pass for each lane whenever one is due, until ctx ends; then it returns nil. Any
// number of processes may run it: a period's pass has an idempotency key, so it is enqueued once.
// What is wrong meanwhile is logged, and tried again.
func (r *Reconciler) Run(ctx context.Context) error {
	const soon, late = 100 * time.Millisecond, 10 * time.Second
	done := map[Lane]time.Time{}
	for retry := soon; ctx.Err() == nil; {
		next, err := r.enqueueDue(ctx, done)
		if err == nil {
			retry = soon
		} else if ctx.Err() == nil {
			r.cfg.Logger.Warn("reconcile: a pass could not be enqueued", "err", err)
			next, retry = retry, min(2*retry, late)
		}
		if clock.Sleep(ctx, clock.Jitter(next)) != nil {
			break
		}
	}
	return nil
}

// enqueueDue enqueues the passes of the periods that have begun, and says when the next begins.
func (r *Reconciler) enqueueDue(ctx context.Context, done map[Lane]time.Time) (time.Duration, error) {
	now, err := r.cfg.Store.Now(ctx)
	if err != nil {
		return 0, err
	}
	next := time.Minute // the database's clock may run otherwise than ours
	for lane, period := range map[Lane]time.Duration{LanePending: r.cfg.Period, LaneSettled: r.cfg.SlowPeriod, LaneList: r.cfg.ListPeriod} {
		if lane == LaneList && r.lister == nil {
			continue
		}
		bucket := now.UTC().Truncate(period)
		next = min(next, bucket.Add(period).Sub(now)+time.Millisecond)
		if done[lane].Equal(bucket) {
			continue
		}
		job := pacht.New(Pass{lane, bucket}, pacht.Queue(r.cfg.Queue), pacht.KeyScope(keyScope),
			pacht.IdempotencyKey(fmt.Sprintf("%s:%s", lane, bucket.Format(time.RFC3339Nano))), pacht.KeyLife(max(2*period, time.Hour)))
		answers, err := r.cfg.Store.Enqueue(ctx, []pacht.NewJob{job})
		if err == nil {
			err = answers[0].Err
		}
		if err != nil {
			return 0, fmt.Errorf("enqueue the pass over lane %s of %s: %w", lane, bucket, err)
		}
		done[lane] = bucket
	}
	return next, nil
}

// Handle makes the pass of a job: the handler of kind pacht.reconcile. It ends when the lease is
// lost. While an earlier pass over the same lane is under way, there is nothing to do, unless that
// one has taken so long that it may be stuck. The report is the job's output.
func (r *Reconciler) Handle(ctx context.Context, job *pacht.Job[Pass]) error {
	busy, err := r.underWay(ctx, job.JobInfo, job.Args.Lane)
	if err != nil {
		return err
	}
	if busy != 0 {
		return job.SetOutput(map[string]any{"lane": job.Args.Lane, "under_way": busy})
	}
	report, err := r.Pass(ctx, job.Args.Lane, false)
	r.log(report, err)
	if outErr := job.SetOutput(report.short()); outErr != nil {
		return errors.Join(err, outErr)
	}
	var invalid *pacht.InvalidError
	if errors.As(err, &invalid) {
		return pacht.Permanent(err)
	}
	return err
}

// patience is how many periods of its lane a pass may take before it stands in nobody's way.
const patience = 10

// underWay is an earlier pass over the same lane that is being made now; 0 if there is none.
func (r *Reconciler) underWay(ctx context.Context, mine pacht.JobInfo, lane Lane) (pacht.ID, error) {
	period := map[Lane]time.Duration{LanePending: r.cfg.Period, LaneSettled: r.cfg.SlowPeriod, LaneList: r.cfg.ListPeriod}[lane]
	running, err := r.cfg.Store.Jobs(ctx, pacht.Filter{Status: pacht.Processing, Kind: kindOfPasses, Limit: pageSize})
	if err != nil {
		return 0, fmt.Errorf("list passes under way: %w", err)
	}
	for _, j := range running {
		earlier := j.ClaimedAt.Before(mine.ClaimedAt) || j.ClaimedAt.Equal(mine.ClaimedAt) && j.ID < mine.ID
		if j.ID == mine.ID || !earlier || mine.ClaimedAt.Sub(j.ClaimedAt) > patience*period || mine.ClaimedAt.After(j.LeaseUntil) {
			continue
		}
		full, err := r.cfg.Store.Job(ctx, j.ID)
		if errors.Is(err, pacht.ErrNotFound) {
			continue
		}
		if err != nil {
			return 0, err
		}
		var args Pass
		if json.Unmarshal(full.Args, &args) == nil && args.Lane == lane {
			return j.ID, nil
		}
	}
	return 0, nil
}

// log tells what people should know of. An error is the handler's to return.
func (r *Reconciler) log(report Report, err error) {
	level := slog.LevelDebug
	switch {
	case report.Failed > 0 || len(report.Problems) > 0:
		level = slog.LevelWarn
	case report.Healed > 0:
		level = slog.LevelInfo
	}
	attrs := []any{"lane", report.Lane, "looked", report.Looked, "healed", report.Healed, "waiting", report.Waiting,
		"held", report.Held, "failed", report.Failed, "complete", err == nil}
	if len(report.Problems) > 0 {
		attrs = append(attrs, "first_reference", report.Problems[0].Reference, "first_error", report.Problems[0].Error)
	}
	r.cfg.Logger.Log(context.Background(), level, "reconcile: a pass has ended", attrs...)
}

// buryPass closes a pass that crashed too often. Later ones were made meanwhile.
func (p *pass) buryPass(ctx context.Context, j pacht.JobInfo) {
	if p.dry {
		return
	}
	res := pacht.Resolution{Status: pacht.Dead, Error: "this pass crashed too often"}
	err := p.cfg.Store.Resolve(ctx, j.Ref(), res, pacht.Act{By: p.cfg.By, Reason: "a pass of the reconciler itself; later ones are made anyhow"})
	if err != nil && !tookJob(err) && ctx.Err() == nil {
		p.problem("job "+j.ID.String(), err)
	}
}
