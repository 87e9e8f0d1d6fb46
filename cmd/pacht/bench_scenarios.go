package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/bench"
)

func benchEnqueueCommand(f *benchFlags) *cobra.Command {
	var e bench.Enqueue
	cmd := &cobra.Command{
		Use:   "enqueue",
		Short: "How fast jobs are stored: one by one, and many from an iterator",
		Long: `Store jobs one by one from several goroutines, each durable when its call returns; then
many from an iterator, in large transactions and in constant memory.

` + benchHelp + `

JSON: {single, bulk, peak_rss_bytes, clients}; single and bulk: {jobs, seconds, jobs_per_s,
client_cpu_s_per_100k, server_cpu_s_per_100k, wal_bytes_per_job}.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := e.Validate(); err != nil {
				return err
			}
			return f.measure(cmd, e.Clients, func(ctx context.Context, p *bench.Place) (bench.Result, error) { return e.Run(ctx, p) })
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&e.Singles, "singles", 20_000, "how many one by one")
	flags.IntVar(&e.Clients, "clients", 8, "goroutines that enqueue one by one, with a connection each")
	flags.IntVar(&e.Jobs, "jobs", 1_000_000, "how many from the iterator")
	flags.IntVar(&e.ArgsBytes, "args-bytes", 200, "bytes of JSON of each job's args")
	return cmd
}

func benchPickupCommand(f *benchFlags) *cobra.Command {
	var u bench.Pickup
	cmd := &cobra.Command{
		Use:   "pickup",
		Short: "How soon an idle worker starts a job, and what it costs to be idle",
		Long: `Enqueue one job after the other for an idle worker, and measure from the answer of the
enqueue, which is after the commit, to the start of the handler. Then let the worker idle, and
count the transactions of its database (PostgreSQL), the server's own among them.

` + benchHelp + `

JSON: {jobs, p50_ms, p90_ms, p99_ms, max_ms, idle_queries_per_s, exactly_once}.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := u.Validate(); err != nil {
				return err
			}
			return f.measure(cmd, 0, func(ctx context.Context, p *bench.Place) (bench.Result, error) { return u.Run(ctx, p) })
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&u.Jobs, "jobs", 1000, "how many jobs")
	flags.DurationVar(&u.Every, "every", 20*time.Millisecond, "pause between two jobs")
	flags.DurationVar(&u.Idle, "idle", 10*time.Second, "how long to count what an idle worker asks; 0 = not")
	flags.BoolVar(&u.PollOnly, "poll-only", false, "the worker does not listen for notices (PostgreSQL)")
	flags.DurationVar(&u.Poll, "poll", 0, "how often the worker asks by itself; 0 = its default")
	flags.IntVar(&u.ArgsBytes, "args-bytes", 200, "bytes of JSON of each job's args")
	return cmd
}

func benchSteadyCommand(f *benchFlags) *cobra.Command {
	var s bench.Steady
	cmd := &cobra.Command{
		Use:   "steady",
		Short: "Whether anything grows while jobs come and go at a fixed rate",
		Long: `Enqueue at a fixed rate while a worker does the jobs as they come, and say at each interval
how long jobs took from the begin of the enqueue to the answer of their settle, how long a claim
takes, and how big the tables are. At the end the last third is compared with the first: 1 is
flat. The intervals go to standard error while it runs.

` + benchHelp + `

JSON: {jobs, exactly_once, p99_last_to_first, claim_last_to_first, leases_bytes_last_to_first,
intervals: [{at_s, enqueued, done, pruned, p50_ms, p99_ms, claim_ms, enqueue_max_ms,
leases_bytes, jobs_bytes, attempts_bytes, file_bytes}]}.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.Validate(); err != nil {
				return err
			}
			s.OnInterval = func(i bench.SteadyInterval) {
				fmt.Fprintf(cmd.ErrOrStderr(), "%.0f s: %d in, %d out, p99 %.1f ms\n", i.At, i.Enqueued, i.Done, i.P99)
			}
			return f.measure(cmd, 0, func(ctx context.Context, p *bench.Place) (bench.Result, error) { return s.Run(ctx, p) })
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&s.Rate, "rate", 2000, "jobs a second, in and out")
	flags.DurationVar(&s.For, "for", 10*time.Minute, "how long")
	flags.DurationVar(&s.Interval, "interval", 30*time.Second, "how often to look")
	flags.DurationVar(&s.Retention, "retention", 0, "delete what finished so long ago, as workers do; 0 = never")
	flags.IntVar(&s.Concurrency, "concurrency", 1000, "jobs that the worker runs at once")
	flags.IntVar(&s.ArgsBytes, "args-bytes", 200, "bytes of JSON of each job's args")
	return cmd
}

func benchHeartbeatCommand(f *benchFlags) *cobra.Command {
	var h bench.Heartbeat
	cmd := &cobra.Command{
		Use:   "heartbeat",
		Short: "What it costs to hold leases, and to watch over them",
		Long: `Let a worker hold leases and renew them, while nothing else happens, and measure the
server. HOT is the share of the renewals that touched no index. With --pending that many vacant
leases stand beside them, which the worker's Stuck Watcher looks through; with --leases 0 the
cost is the watcher's, and that of an idle worker.

` + benchHelp + `

JSON: {leases, pending, seconds, server_cpu_share_of_core, client_cpu_share_of_core, renewals,
hot_ratio, wal_bytes_per_renewal, kept_all}.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := h.Validate(); err != nil {
				return err
			}
			return f.measure(cmd, 0, func(ctx context.Context, p *bench.Place) (bench.Result, error) { return h.Run(ctx, p) })
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&h.Leases, "leases", 10_000, "leases to hold, 0 to 100,000")
	flags.DurationVar(&h.For, "for", time.Minute, "how long to measure")
	flags.DurationVar(&h.TTL, "ttl", pacht.DefaultTTL, "TTL of the leases; they are renewed after a third of it")
	flags.IntVar(&h.Pending, "pending", 0, "vacant leases beside them, due tomorrow")
	flags.BoolVar(&h.Snapshot, "snapshot", false, "another session holds a REPEATABLE READ transaction open (PostgreSQL)")
	return cmd
}
