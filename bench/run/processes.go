package run

import (
	"context"
	"fmt"

	"github.com/pacht-queue/pacht/bench/peer"
)

// ProcessCounts are how many processes drain one queue together.
var ProcessCounts = []int{1, 2, 4, 8}

// processesBacklog is how many times the jobs of a drain they find: each new process costs time that says
// nothing about how they get on together.
const processesBacklog = 2

// ProcessVariant names a number of processes.
func ProcessVariant(n int) string { return fmt.Sprintf("%d", n) }

var processesScenario = scenario{
	name:   "processes",
	rounds: func(asked int) int { return max(1, asked-1) },
	takes:  func(p peer.About) bool { return !p.SQLite && p.Processes },
	measure: func(b *Bench, ctx context.Context, p peer.About, record func(string, int, map[string]float64, error)) {
		n := processesBacklog * jobs(p, b.cfg.Jobs)
		for _, processes := range ProcessCounts {
			if ctx.Err() != nil {
				return
			}
			values, err := b.drainFresh(ctx, p, "", n, smallArgs, processes)
			record(ProcessVariant(processes), n, values, err)
		}
	},
}
