package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/pacht-queue/pacht"
)

func queuesSetCommand(g *globals) *cobra.Command {
	var f actFlags
	var ttl time.Duration
	var attempts, crashes int
	var policy string
	c := &cobra.Command{
		Use:   "set QUEUE --by NAME --reason TEXT [flags]",
		Short: "Set a queue's own settings, for jobs enqueued from then on",
		Long: `Set a queue's own settings. They count for jobs enqueued from then on: what a job was given
at its enqueue stays. What is not given stays as it is; 0, or "" for --on-crash, means the default
again.

JSON: {queue, ttl_ns, max_attempts, max_crashes, crash_policy}; what is the default is left out.`,
		Args: exactly("QUEUE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			changed := cmd.Flags().Changed
			if !changed("ttl") && !changed("max-attempts") && !changed("max-crashes") && !changed("on-crash") {
				return &pacht.InvalidError{Field: "settings", Bound: "at least one of --ttl, --max-attempts, --max-crashes, --on-crash"}
			}
			given := pacht.QueueSettings{TTL: ttl, MaxAttempts: attempts, MaxCrashes: crashes, CrashPolicy: policyNamed(policy)}
			if err := given.Validate(args[0]); err != nil {
				return err
			}
			if err := f.act.Validate(); err != nil {
				return err
			}
			db, err := g.open(cmd.Context())
			if err != nil {
				return err
			}
			defer db.Close()
			q := pacht.QueueInfo{Name: args[0]}
			own, err := db.Queues(cmd.Context())
			if err != nil {
				return err
			}
			for _, o := range own {
				if o.Name == q.Name {
					q = o
				}
			}
			if changed("ttl") {
				q.TTL = ttl
			}
			if changed("max-attempts") {
				q.MaxAttempts = attempts
			}
			if changed("max-crashes") {
				q.MaxCrashes = crashes
			}
			if changed("on-crash") {
				q.CrashPolicy = given.CrashPolicy
			}
			if err := db.SetQueue(cmd.Context(), q.Name, q.QueueSettings, f.act); err != nil {
				return err
			}
			if g.json {
				return printJSON(cmd, struct {
					Queue string `json:"queue"`
					pacht.QueueSettings
				}{q.Name, q.QueueSettings})
			}
			printf(cmd, "queue %s: %s\n", clean(q.Name), clean(settings(q.QueueSettings)))
			return nil
		},
	}
	c.Flags().Var(durationValue{&ttl}, "ttl", "how long a lease lasts without renewal, 100ms to 24h")
	c.Flags().IntVar(&attempts, "max-attempts", 0, "how often a job may run in all, 1 to 30000")
	c.Flags().IntVar(&crashes, "max-crashes", 0, "expired leases in a row until a job is set aside, 1 to 1000")
	c.Flags().StringVar(&policy, "on-crash", "", "retry or hold")
	completeWith(c, "on-crash", "retry", "hold")
	f.add(c)
	return c
}
