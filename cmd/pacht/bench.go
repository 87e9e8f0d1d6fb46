package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/pacht-queue/pacht/internal/bench"
)

const benchHelp = `Without --db a fresh SQLite file is made in a temporary folder, or with --postgres a private
PostgreSQL server with fsync on, from the programs that are installed here; both are removed at
the end. With --db the tables there are used, in queue "bench" and kind "bench.noop"; a database
with unfinished jobs is refused, and the benchmark's own rows are deleted at the end. PACHT_DB is
not looked at.

CPU seconds are the operating system's account of this process, and of all processes of the
server if it runs on this machine (Linux); WAL is the whole server's. What else the machine does
changes jobs per second most, CPU seconds less, WAL not at all. What cannot be known is null in
JSON.

Exits with 1 if jobs did not run exactly once, by their handlers and by the ledger.`

// benchFlags are those of all scenarios.
type benchFlags struct {
	*globals
	postgres, force bool
}

func benchCommand(g *globals) *cobra.Command {
	f := &benchFlags{globals: g}
	cmd := group("bench", "Measure enqueues, drains, latency and heartbeats on a database of their own",
		"Measure what the queue does on this machine, each scenario by a command.\n\n"+benchHelp,
		benchDrainCommand(f),
		benchEnqueueCommand(f),
		benchPickupCommand(f),
		benchSteadyCommand(f),
		benchHeartbeatCommand(f),
		benchWorkerCommand(),
	)
	cmd.PersistentFlags().BoolVar(&f.postgres, "postgres", false, "start a private PostgreSQL server, and remove it at the end")
	cmd.PersistentFlags().BoolVar(&f.force, "force", false, "with --db: run beside unfinished jobs; what a killed benchmark has left is deleted first")
	return cmd
}

// measure opens the database, runs a scenario on it, removes what was made, and prints the
// result. A signal ends all of it in order.
func (f *benchFlags) measure(cmd *cobra.Command, connections int, run func(context.Context, *bench.Place) (bench.Result, error)) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	res, err := f.on(ctx, cmd, connections, run)
	switch {
	case err != nil && ctx.Err() != nil && cmd.Context().Err() == nil:
		return errors.New("interrupted; what was made for the benchmark is removed")
	case err != nil:
		return err
	}
	return printResult(cmd, f.json, res)
}

func (f *benchFlags) on(ctx context.Context, cmd *cobra.Command, connections int, run func(context.Context, *bench.Place) (bench.Result, error)) (res bench.Result, err error) {
	place, err := bench.Open(ctx, bench.Where{
		URL: f.db, Postgres: f.postgres, Force: f.force, Connections: connections,
		Log: slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil && f.db != "" {
		return nil, f.located(err)
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, place.Close(ctx)) }()
	return run(ctx, place)
}

// printResult prints one table, or one JSON object. Faults go to standard error and are exit
// code 1.
func printResult(cmd *cobra.Command, asJSON bool, res bench.Result) error {
	t := res.Table()
	if asJSON {
		if err := printJSON(cmd, res); err != nil {
			return err
		}
	} else {
		out := newTable(cmd, t.Header...)
		for _, row := range t.Rows {
			cells := make([]any, len(row))
			for i, c := range row {
				cells[i] = c
			}
			out.row(cells...)
		}
		if err := out.end(); err != nil {
			return err
		}
		for _, note := range t.Notes {
			printf(cmd, "%s\n", clean(note))
		}
		printf(cmd, "\npacht %s; %s\n", clean(version()), clean(t.Facts))
	}
	if len(t.Faults) > 0 {
		return fmt.Errorf("%s", strings.Join(t.Faults, "\n"))
	}
	return nil
}

func benchWorkerCommand() *cobra.Command {
	return &cobra.Command{
		Use: "worker", Hidden: true, Args: cobra.NoArgs,
		Short: "A worker process of the benchmark; for its own use",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return bench.ServeWorker(ignoreHangup(cmd), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
}
