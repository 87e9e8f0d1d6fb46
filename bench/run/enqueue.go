package run

import (
	"context"
	"fmt"

	"github.com/pacht-queue/pacht/bench/child"
	"github.com/pacht-queue/pacht/bench/peer"
)

// Variants of the enqueue.
const (
	SingleInserts = "single"
	BulkInserts   = "bulk"
)

var enqueueScenario = scenario{
	name:   "enqueue",
	rounds: func(asked int) int { return asked },
	takes:  func(p peer.About) bool { return !p.SQLite && (p.Can(peer.Single) || p.Can(peer.Bulk)) },
	measure: func(b *Bench, ctx context.Context, p peer.About, record func(string, int, map[string]float64, error)) {
		if p.Can(peer.Single) {
			n, values, err := b.enqueue(ctx, p, "", child.Task{Do: "single", Bytes: smallArgs, Seconds: b.singleSeconds()})
			record(SingleInserts, n, values, err)
		}
		if p.Can(peer.Bulk) && ctx.Err() == nil {
			n, values, err := b.enqueue(ctx, p, "", child.Task{Do: "bulk", Bytes: smallArgs, Jobs: b.cfg.Jobs})
			record(BulkInserts, n, values, err)
		}
	},
}

func (b *Bench) singleSeconds() float64 {
	if b.cfg.Quick {
		return 1
	}
	return 2
}

// enqueue inserts into a fresh database, and checks that all that was said to be stored is.
func (b *Bench) enqueue(ctx context.Context, p peer.About, synchronous string, task child.Task) (n int, values map[string]float64, err error) {
	err = b.fresh(ctx, p, synchronous, func(d *database) error {
		task.At = d.at
		c, err := b.start(ctx, p, task)
		if err != nil {
			return err
		}
		m, err := d.meter(ctx)
		if err != nil {
			return err
		}
		if err := c.tell("go"); err != nil {
			return err
		}
		limit, cancel := context.WithTimeout(ctx, b.patience)
		defer cancel()
		r, err := c.report(limit)
		if err != nil {
			_ = c.cmd.Process.Kill()
			return fmt.Errorf("%w; %w", err, c.end(ctx))
		}
		used, err := m.Stop(ctx)
		if err != nil {
			return err
		}
		if err := c.end(ctx); err != nil {
			return err
		}
		n = r.Jobs
		found, err := d.count(ctx)
		if err != nil {
			return err
		}
		if found != n {
			return fmt.Errorf("%d inserts were answered and %d jobs are there", n, found)
		}
		values = map[string]float64{JobsPerSecond: float64(n) / r.Seconds, ClientCPU: r.CPU * 100_000 / float64(n)}
		if v := used.ServerPer100k(n); v != nil {
			values[ServerCPU] = *v
		}
		if v := used.WALPerJob(n); v != nil {
			values[WAL] = *v
		}
		return nil
	})
	return n, values, err
}
