package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/examples/payments"
	"github.com/pacht-queue/pacht/examples/payments/psp"
	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/money"
)

// run is one run of the demo: what it has started and must end.
type run struct {
	cfg      Config
	start    clock.Instant
	screen   *screen
	folder   string
	place    *place
	fleet    *fleet
	psp      psp.Config
	provider *psp.Client
	hook     *hook
	chaos    *chaos
	result   Result
}

func newRun(cfg Config) *run {
	return &run{cfg: cfg, start: clock.Now(), screen: newScreen(cfg.Out, cfg.Width)}
}

// makeDatabase makes what all later steps need: a folder, and a fresh database in it or on
// the server.
func (r *run) makeDatabase(ctx context.Context) (err error) {
	if r.folder, err = os.MkdirTemp("", "pacht-demo-"); err != nil {
		return err
	}
	at := payments.Address{File: filepath.Join(r.folder, "demo.db")}
	switch {
	case r.cfg.Postgres != "":
		at = payments.Address{Postgres: r.cfg.Postgres, Schema: fmt.Sprintf("pacht_demo_%x", r.start.Time().UnixNano())}
	case r.cfg.Keep != "":
		at.File = r.cfg.Keep
	}
	if r.place, err = openPlace(ctx, at); err != nil {
		return err
	}
	if err := r.place.Migrate(ctx); err != nil {
		return err
	}
	// All jobs of the queue, the reconciler's and the follow-ups too: a lease that outlives its
	// killed worker by a minute would make the demo a long one.
	if err := r.place.Store.SetQueue(ctx, queue, pacht.QueueSettings{TTL: ttl, MaxCrashes: 100}, pacht.Act{By: "demo", Reason: "short leases"}); err != nil {
		return err
	}
	r.fleet = newFleet(r.cfg.Executable, r.folder)
	r.screen.introduce(r.cfg, at)
	return nil
}

// startProvider starts the provider in a process of its own. It is as slow as the run should
// last, so that there is time to disturb the workers however fast the machine is.
func (r *run) startProvider(ctx context.Context) error {
	latency := pace * workers * slots / time.Duration(r.cfg.Payments)
	ledger := filepath.Join(r.folder, "provider.jsonl")
	if r.cfg.Keep != "" {
		ledger = r.cfg.Keep + LedgerSuffix
	}
	r.psp = psp.Config{
		Ledger: ledger, Seed: r.cfg.Seed,
		Latency:  min(max(latency, 2*time.Millisecond), 400*time.Millisecond),
		FailRate: 0.03, LoseRate: 0.03,
		Mix: mix(), Delay: delay, Silence: 700 * time.Millisecond, QuietAnswers: true,
		HoldAnswers: true, FreeAnswers: max(r.cfg.Payments-reserve, 0),
		IgnoreKeys: r.cfg.IgnoreKeys, Blind: r.cfg.IgnoreKeys,
	}
	url, err := r.fleet.startProvider(ctx, r.psp)
	if err != nil {
		return err
	}
	r.provider = psp.NewClient(url, 10*time.Second)
	return r.startHook(ctx)
}

// mix is what happens to the payments: three of four go well, and of the others a few meet with
// each thing that can happen.
func mix() map[string]int {
	weights := map[string]int{}
	for _, name := range psp.Scenarios() {
		weights[name] = 2
	}
	weights[psp.Success] = 6 * len(weights)
	return weights
}

func (r *run) startWorkers(ctx context.Context) error {
	r.fleet.task = workerTask{Place: r.place.at, Provider: r.fleet.provider.said.URL}
	for range workers {
		if _, err := r.fleet.startWorker(ctx); err != nil {
			return err
		}
	}
	return nil
}

// disturbUntilDone enqueues the payments and disturbs the workers until all of them are
// through, and shows how far that has come.
func (r *run) disturbUntilDone(ctx context.Context) error {
	limit := 2*time.Minute + time.Duration(r.cfg.Payments)*20*time.Millisecond
	r.chaos = &chaos{run: r, chance: clock.Seeded(r.cfg.Seed, "disturbances")}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errLimit)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return r.fleet.watch(ctx) })
	g.Go(func() error { return r.enqueue(ctx) })
	g.Go(func() error { return r.chaos.disturb(ctx) })
	g.Go(func() error {
		if err := r.follow(ctx); err != nil {
			return err
		}
		return errDone // ends the others
	})
	err := g.Wait()
	switch {
	case errors.Is(err, errDone):
		return nil
	case errors.Is(context.Cause(ctx), errLimit):
		r.screen.event("gave up after %s; what is unfinished counts as lost", limit)
		return nil
	}
	return err
}

var (
	errDone  = errors.New("all payments are through")
	errLimit = errors.New("the run takes too long")
)

// enqueue creates the payments, some in each transaction with their charge jobs: several
// transactions at a time on a server, one after the other on a file, which has one writer.
func (r *run) enqueue(ctx context.Context) error {
	const together = 20
	chance := clock.Seeded(r.cfg.Seed, "amounts")
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(1)
	if r.cfg.Postgres != "" {
		g.SetLimit(connections)
	}
	for i := 0; i < r.cfg.Payments && ctx.Err() == nil; {
		var some []payments.Payment
		for ; i < r.cfg.Payments && len(some) < together; i++ {
			some = append(some, payments.Payment{ID: paymentID(i), Amount: money.Amount{Minor: 200 + chance.Int64N(49_800), Currency: "EUR"}})
		}
		g.Go(func() error {
			// Crashes in a row would park a job for a person after three; here they are made on
			// purpose, and few payments may have to take all of them.
			return r.place.Book.CreateAll(ctx, some, pacht.MaxCrashes(100), pacht.MaxAttempts(1000))
		})
	}
	return g.Wait()
}

func paymentID(i int) string { return fmt.Sprintf("pay_%06d", i+1) }

// follow shows the progress until every payment is through and every disturbance is over.
func (r *run) follow(ctx context.Context) error {
	for {
		tally, err := r.place.Book.Tally(ctx)
		if err != nil {
			return err
		}
		r.screen.progress(r.cfg.Payments, tally)
		r.chaos.setUnfinished(int64(r.cfg.Payments) - tally.Completed - tally.EndedBadly)
		// A job that was parked is not through, but nothing of ours will go on with it.
		if tally.Payments == int64(r.cfg.Payments) && tally.Pending+tally.Processing == 0 && r.chaos.over() {
			return nil
		}
		if err := clock.Sleep(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

// stopWorkers ends the workers in order, so that nothing is written while we compare.
func (r *run) stopWorkers(context.Context) error {
	r.screen.endProgress()
	return r.fleet.stopWorkers()
}

// close ends and removes all that the run has made, however far it came.
func (r *run) close() error {
	r.screen.endProgress()
	var errs []error
	if r.hook != nil {
		errs = append(errs, r.hook.close())
	}
	if r.provider != nil {
		r.provider.Close()
	}
	if r.fleet != nil {
		errs = append(errs, r.fleet.kill())
	}
	if r.place != nil {
		if r.cfg.Keep == "" {
			errs = append(errs, r.place.drop())
		}
		errs = append(errs, r.place.Close())
	}
	if r.folder != "" {
		errs = append(errs, os.RemoveAll(r.folder))
	}
	return errors.Join(errs...)
}
