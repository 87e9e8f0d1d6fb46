package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/internal/demo"
)

func demoCommand(g *globals) *cobra.Command {
	cfg := demo.Config{}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Kill workers in the middle of payments, and count what was lost",
		Long: `Run a small payments system in which workers die: a fresh database, a payment provider
simulated over HTTP in a process of its own, three worker processes with leases of 2 s. Workers
are killed (SIGKILL) and stopped past their lease and woken again (SIGSTOP, SIGCONT), while they
hold jobs; and the provider declines, times out before and after the charge, loses webhooks and
takes wrong amounts. The reconciler, a job of the same workers, asks it and heals what it can. At
the end our ledger is compared with the provider's, to the cent. It takes about half a minute
however few the payments are: the disturbances, and what the provider does later, take their time.

Nothing is needed and nothing stays behind: the SQLite file is made in a temporary folder. With
--db postgres://... the same is done in a schema of its own, which is dropped at the end. PACHT_DB
is not looked at.

Exits with 1 if a payment was lost or charged twice, if the ledgers differ in anything that is not
listed as an open break of the right class, if stored data breaks a rule of the lease, or if too
little was disturbed to prove anything.

JSON: {payments, completed, lost, double_charged, repeated_calls, attempts, expired, refused_late,
unknown, healed, breaks_open, ledger_equal, kills, pauses, seconds, ok}; the progress goes to
standard error.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDemo(cmd, g, cfg) },
	}
	flags := cmd.Flags()
	flags.IntVar(&cfg.Payments, "payments", 1000, "how many payments, 1 to 100,000")
	flags.Uint64Var(&cfg.Seed, "seed", 0, "seed of amounts, failures and disturbances (default: a random one, shown)")
	flags.StringVar(&cfg.Keep, "keep", "", "keep the database as this file, and the provider's ledger beside it; with --db the schema is kept")
	flags.BoolVar(&cfg.IgnoreKeys, "ignore-keys", false, "sabotage: the provider ignores idempotency keys and finds nothing, so that payments are charged twice and the demo must fail")
	cmd.AddCommand(demoWorkerCommand(), demoProviderCommand())
	return cmd
}

func runDemo(cmd *cobra.Command, g *globals, cfg demo.Config) (err error) {
	if !cmd.Flags().Changed("seed") {
		cfg.Seed = uint64(clock.Float() * (1 << 32))
	}
	if cfg.Executable, err = os.Executable(); err != nil {
		return fmt.Errorf("find this program's file, to start its workers: %w", err)
	}
	cfg.Postgres = g.db
	cfg.Out, cfg.NoTable = cmd.OutOrStdout(), g.json
	if g.json {
		cfg.Out = cmd.ErrOrStderr()
	}
	if f, ok := cfg.Out.(*os.File); ok {
		cfg.Width = demo.TerminalWidth(f)
	}
	// From here on a signal ends the demo in order: no process of it is left behind.
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	res, err := demo.Run(ctx, cfg)
	if err != nil {
		return err
	}
	if g.json {
		if err := printJSON(cmd, res); err != nil {
			return err
		}
	} else if cfg.Keep != "" {
		sayKept(cmd, cfg)
	}
	if !res.OK {
		return errFound
	}
	return nil
}

func sayKept(cmd *cobra.Command, cfg demo.Config) {
	printf(cmd, "\nKept: the provider's ledger in %s%s, and the database", clean(cfg.Keep), demo.LedgerSuffix)
	if cfg.Postgres != "" {
		printf(cmd, "'s schema named above.\n")
		return
	}
	printf(cmd, ". Look into it with:\n  pacht jobs list --db sqlite:%s\n", clean(cfg.Keep))
}

func demoWorkerCommand() *cobra.Command {
	return &cobra.Command{
		Use: "worker", Hidden: true, Args: cobra.NoArgs,
		Short: "A worker process of the demo; for its own use",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return demo.ServeWorker(ignoreHangup(cmd), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
}

func demoProviderCommand() *cobra.Command {
	return &cobra.Command{
		Use: "psp", Hidden: true, Args: cobra.NoArgs,
		Short: "The simulated payment provider of the demo; for its own use",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return demo.ServeProvider(ignoreHangup(cmd), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

// ignoreHangup: the end of a terminal is told to the parent, who ends its children in order.
func ignoreHangup(cmd *cobra.Command) context.Context {
	signal.Ignore(syscall.SIGHUP)
	return cmd.Context()
}
