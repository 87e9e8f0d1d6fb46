package main

import (
	"github.com/spf13/cobra"

	"github.com/pacht-queue/pacht"
)

// keepHelp explains the flags of keepFlag.
const keepHelp = `Finished jobs are kept for ever unless --keep-completed, --keep-dead or --keep-cancelled says how
long; then they are deleted with all their history. Where processes say different things, the
shortest counts. Expired idempotency keys, and the rows of workers that ended a day ago, are
deleted in any case, unless --no-sweep.`

// keepFlag adds the flags of a retention.
func keepFlag(c *cobra.Command, r *pacht.Retention, none *bool) {
	fl := c.Flags()
	fl.Var(durationValue{&r.Completed}, "keep-completed", "delete completed jobs after this time, such as 30d (default: never)")
	fl.Var(durationValue{&r.Dead}, "keep-dead", "the same for dead jobs (default: never)")
	fl.Var(durationValue{&r.Cancelled}, "keep-cancelled", "the same for cancelled jobs (default: never)")
	fl.BoolVar(none, "no-sweep", false, "delete nothing, because another process does")
	for _, keep := range []string{"keep-completed", "keep-dead", "keep-cancelled"} {
		c.MarkFlagsMutuallyExclusive(keep, "no-sweep")
	}
}
