package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pacht-queue/pacht/bench/child"
	"github.com/pacht-queue/pacht/bench/peer"
)

// Values of the pickup, milliseconds from the answer of the commit to the start of the handler.
const (
	PickupP50 = "p50_ms"
	PickupP99 = "p99_ms"
	PickupMax = "max_ms"
)

const pickupEvery = 20 * time.Millisecond

var pickupScenario = scenario{
	name:   "pickup",
	rounds: func(asked int) int { return asked },
	takes:  func(p peer.About) bool { return !p.SQLite && p.Can(peer.Pickup) },
	measure: func(b *Bench, ctx context.Context, p peer.About, record func(string, int, map[string]float64, error)) {
		n := 300
		if b.cfg.Quick {
			n = 100
		}
		values, err := b.pickup(ctx, p, n)
		record("", n, values, err)
	},
}

// settling is how long a worker is left alone before its jobs come: leaders are elected,
// listeners connected, first polls made.
const settling = 1500 * time.Millisecond

// pickup has one process insert a job each 20 ms, and an idle worker in another process.
func (b *Bench) pickup(ctx context.Context, p peer.About, n int) (values map[string]float64, err error) {
	err = b.fresh(ctx, p, "", func(d *database) error {
		worker, err := b.team(ctx, d, n, 1)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, worker.end(ctx)) }()
		committed := d.out + "-committed"
		feeder, err := b.start(ctx, p, child.Task{
			Do: "feed", At: d.at, Jobs: n, Bytes: smallArgs, Every: pickupEvery.Seconds(), Out: committed,
		})
		if err != nil {
			return errors.Join(err, worker.kill())
		}
		if err := worker.members[0].tell("go"); err != nil {
			return err
		}
		time.Sleep(settling)
		m, err := d.meter(ctx)
		if err != nil {
			return err
		}
		if err := feeder.tell("go"); err != nil {
			return err
		}
		if _, err := worker.finished(ctx); err != nil {
			return errors.Join(err, worker.kill(), feeder.cmd.Process.Kill(), feeder.end(ctx))
		}
		used, err := m.Stop(ctx)
		if err != nil {
			return err
		}
		limit, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if _, err := feeder.report(limit); err != nil {
			return err
		}
		if err := errors.Join(feeder.end(ctx), worker.members[0].tell("stop")); err != nil {
			return err
		}
		if _, err := worker.members[0].report(limit); err != nil {
			return err
		}
		if err := worker.check(); err != nil {
			return err
		}
		values, err = latencies(committed, worker.out(0)+".times", n)
		if v := used.ServerPer100k(n); err == nil && v != nil {
			values[ServerCPU] = *v
		}
		return err
	})
	return values, err
}

func latencies(committed, started string, n int) (map[string]float64, error) {
	from, err := child.ReadTimes(committed, n)
	if err != nil {
		return nil, err
	}
	to, err := child.ReadTimes(started, n)
	if err != nil {
		return nil, err
	}
	all := make([]float64, n)
	for i := range all {
		if from[i] == 0 || to[i] == 0 {
			return nil, fmt.Errorf("job %d has no times", i)
		}
		// Less than zero if the worker was faster than the answer to the one who inserted.
		all[i] = float64(to[i]-from[i]) / 1e6
	}
	slices.Sort(all)
	return map[string]float64{PickupP50: quantile(all, 50), PickupP99: quantile(all, 99), PickupMax: all[n-1]}, nil
}

// quantile is the least value that so many percent of a sorted list do not exceed.
func quantile(sorted []float64, percent int) float64 {
	return sorted[(len(sorted)*percent+99)/100-1]
}
