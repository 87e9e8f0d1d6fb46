package main

import (
	"github.com/spf13/cobra"

	"github.com/pacht-queue/pacht"
)

func jobsCommand(g *globals) *cobra.Command {
	return group("jobs", "List and show jobs; retry, cancel, release, resolve or prune them",
		`List and show jobs, and act on them by hand. Each act needs --by NAME and --reason TEXT; both
are kept, and shown with the job. Only prune needs neither: what it deletes takes its history along.`,
		jobsListCommand(g),
		jobsShowCommand(g),
		jobsRetryCommand(g),
		jobsCancelCommand(g),
		jobsReleaseCommand(g),
		jobsResolveCommand(g),
		jobsPruneCommand(g),
	)
}

// actFlags are who does something by hand, and why. Neither is ever guessed.
type actFlags struct{ act pacht.Act }

func (f *actFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.act.By, "by", "", "your name; kept with the act (required)")
	c.Flags().StringVar(&f.act.Reason, "reason", "", "why; kept with the act (required)")
}
