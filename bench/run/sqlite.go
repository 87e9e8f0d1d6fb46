package run

import (
	"context"
	"fmt"

	"github.com/pacht-queue/pacht/bench/child"
	"github.com/pacht-queue/pacht/bench/peer"
)

// Synchronous are SQLite's settings of that name. NORMAL may lose the last commits with the
// power; Pacht has no such mode.
var Synchronous = []string{"FULL", "NORMAL"}

// SQLiteProcesses are how many processes drain one file together.
var SQLiteProcesses = []int{1, 3}

// SQLiteVariant names a run on a file.
func SQLiteVariant(synchronous, what string) string { return synchronous + ", " + what }

// SQLiteDrain names a drain of a file.
func SQLiteDrain(processes int) string { return fmt.Sprintf("drain by %d", processes) }

var sqliteScenario = scenario{
	name:   "sqlite",
	rounds: func(asked int) int { return asked },
	takes:  func(p peer.About) bool { return p.SQLite },
	measure: func(b *Bench, ctx context.Context, p peer.About, record func(string, int, map[string]float64, error)) {
		for _, synchronous := range Synchronous {
			if synchronous == "NORMAL" && p.Name == "pacht-sqlite" {
				continue
			}
			n := b.cfg.Jobs / 10
			for _, processes := range SQLiteProcesses {
				values, err := b.drainFresh(ctx, p, synchronous, n, smallArgs, processes)
				record(SQLiteVariant(synchronous, SQLiteDrain(processes)), n, values, err)
			}
			inserted, values, err := b.enqueue(ctx, p, synchronous, child.Task{Do: "single", Bytes: smallArgs, Seconds: b.singleSeconds()})
			record(SQLiteVariant(synchronous, SingleInserts), inserted, values, err)
			if p.Can(peer.Bulk) {
				inserted, values, err := b.enqueue(ctx, p, synchronous, child.Task{Do: "bulk", Bytes: smallArgs, Jobs: n})
				record(SQLiteVariant(synchronous, BulkInserts), inserted, values, err)
			}
			if ctx.Err() != nil {
				return
			}
		}
	},
}
