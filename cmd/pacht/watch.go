package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/database"
	"github.com/pacht-queue/pacht/sweep"
	"github.com/pacht-queue/pacht/watch"
)

func watchCommand(g *globals) *cobra.Command {
	var level, name string
	var period time.Duration
	var keep pacht.Retention
	var noSweep bool
	c := &cobra.Command{
		Use:   "watch",
		Short: "Run the Stuck Watcher alone",
		Long: `Run the Stuck Watcher alone: it closes leases that are past their time, so that the job of a
dead worker is free again, or parked where its crash policy or a cap says so. Any number may
run; the database gives one of them the turn. Each "pacht work" runs one too.

` + keepHelp + `

It works until SIGTERM or SIGINT. A database that cannot be reached, is starting or has no
connection left is waited for; one that refuses the password, the database's name or the rights
is not.
Logs go to standard error: for people on a terminal, as JSON lines elsewhere.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := newLogger(cmd.ErrOrStderr(), level)
			if err != nil {
				return err
			}
			if name == "" {
				name = watcherName()
			}
			cfg := watch.Config{Period: period, By: name, Logger: log}
			if cmd.Flags().Changed("period") && period == 0 {
				return &pacht.InvalidError{Field: "period", Value: "0s", Bound: "10ms to 1h"}
			}
			sweepCfg := sweep.Config{Retention: keep, By: name, Logger: log}
			if _, err := watch.New(unopened{}, cfg); err != nil {
				return err
			}
			if _, err := sweep.New(unopened{}, sweepCfg); err != nil {
				return err
			}
			ctx, stop := untilSignal(cmd.Context(), log, func() {})
			defer stop()
			db, err := g.await(ctx, log)
			if errors.Is(err, pacht.ErrStopping) {
				return nil
			}
			if err != nil {
				return err
			}
			defer db.Close()
			w, err := watch.New(db, cfg)
			if err != nil {
				return err
			}
			sweeper, err := sweep.New(db, sweepCfg)
			if err != nil {
				return err
			}
			log.Info("watching", "database", database.Describe(g.url()), "watcher", name)
			both, ctx := errgroup.WithContext(ctx)
			both.Go(func() error { return w.Run(ctx) })
			if !noSweep {
				both.Go(func() error { return sweeper.Run(ctx) })
			}
			if err := both.Wait(); err != nil {
				return err
			}
			log.Info("stopped in order", "watcher", name)
			return nil
		},
	}
	c.Flags().Var(durationValue{&period}, "period", "the longest time between two passes, 10ms to 1h (default 30s)")
	c.Flags().StringVar(&name, "name", "", "how this watcher is called in doctor (default: host and process id)")
	keepFlag(c, &keep, &noSweep)
	logFlag(c, &level)
	return c
}

func watcherName() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown-host"
	}
	return fmt.Sprintf("watcher:%s:%d", cut(strings.ToValidUTF8(host, "?"), 60), os.Getpid())
}
