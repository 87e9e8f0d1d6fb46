package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pacht-queue/pacht/internal/bench"
)

func benchDrainCommand(f *benchFlags) *cobra.Command {
	var d bench.Drain
	var b bench.Bounds
	cmd := &cobra.Command{
		Use:   "drain",
		Short: "How fast workers do jobs that wait and do nothing",
		Long: `Enqueue jobs that do nothing, then start a worker and measure until the last of them is
settled. Each job is leased for 60 s, its completion is durable before its slot is free, and its
attempt stands in the ledger, as for any user.

--finished, --future, --foreign, --parked, --held and --stale-statistics put the database into a
state that must not hurt; --snapshot keeps an old transaction open meanwhile.

The bounds are for CI: exceeding one exits with 1. With several rounds all figures are medians.

` + benchHelp + `

JSON: {jobs, seconds, jobs_per_s, client_cpu_s_per_100k, server_cpu_s_per_100k,
wal_bytes_per_job, exactly_once}, with several --rounds also rounds: [...].`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDrain(cmd, f, d, b) },
	}
	flags := cmd.Flags()
	flags.IntVar(&d.Jobs, "jobs", 100_000, "how many jobs")
	flags.IntVar(&d.ArgsBytes, "args-bytes", 200, "bytes of JSON of each job's args")
	flags.IntVar(&d.Concurrency, "concurrency", 1000, "jobs that each worker runs at once")
	flags.IntVar(&d.Workers, "workers", 1, "worker processes; 1 works in this process")
	flags.IntVar(&d.Rounds, "rounds", 1, "repeat on the same tables")
	flags.BoolVar(&d.Snapshot, "snapshot", false, "another session holds a REPEATABLE READ transaction open (PostgreSQL)")
	flags.IntVar(&d.State.Finished, "finished", 0, "finished jobs in the tables before")
	flags.IntVar(&d.State.Future, "future", 0, "jobs for tomorrow at the best priority")
	flags.IntVar(&d.State.Foreign, "foreign", 0, "due jobs before all others, of a kind without a handler")
	flags.IntVar(&d.State.Parked, "parked", 0, "jobs that are Stuck")
	flags.IntVar(&d.State.Held, "held", 0, "jobs before all others, held by somebody else")
	flags.BoolVar(&d.State.StaleStatistics, "stale-statistics", false, "statistics of the empty table, and no autovacuum on it (with --postgres)")
	flags.Float64Var(&b.CPU, "max-cpu-s-per-100k", 0, "bound of client and server CPU seconds per 100,000 jobs; 0 = none")
	flags.Float64Var(&b.ClientCPU, "max-client-cpu-s-per-100k", 0, "bound of client CPU seconds per 100,000 jobs; 0 = none")
	flags.Float64Var(&b.WAL, "max-wal-bytes-per-job", 0, "bound of WAL bytes per job; 0 = none")
	return cmd
}

func runDrain(cmd *cobra.Command, f *benchFlags, d bench.Drain, b bench.Bounds) (err error) {
	if err := b.Validate(); err != nil {
		return err
	}
	if err := d.Validate(); err != nil {
		return err
	}
	if d.Executable, err = os.Executable(); err != nil {
		return fmt.Errorf("find this program's file, to start its workers: %w", err)
	}
	var broken []string
	err = f.measure(cmd, 0, func(ctx context.Context, p *bench.Place) (bench.Result, error) {
		res, err := d.Run(ctx, p)
		if err == nil {
			broken = b.Exceeded(res.DrainRound)
		}
		return res, err
	})
	if err != nil || len(broken) == 0 {
		return err
	}
	return fmt.Errorf("more than allowed: %s", strings.Join(broken, "; "))
}
