package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pacht-queue/pacht"
)

func jobsPruneCommand(g *globals) *cobra.Command {
	var statuses []string
	var olderThan time.Duration
	var limit int64
	var batch int
	c := &cobra.Command{
		Use:   "prune --status STATUS --older-than AGE",
		Short: "Delete finished jobs of an age, with their history",
		Long: `Delete jobs that finished long enough ago, with their attempts, steps, effects and reports, and
idempotency keys that have expired. Unfinished jobs are never deleted, nor jobs with an effect
that has no answer, and a job takes all its history along. It works in small transactions, and
may be stopped and repeated.

JSON: an array of {status, deleted}.`,
		Example: `  pacht jobs prune --status Completed --older-than 30d
  pacht jobs prune --status Dead,Cancelled --older-than 180d`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(statuses) == 0 {
				return &pacht.InvalidError{Field: "status", Bound: strings.Join(statusNames(true), ", ")}
			}
			if !cmd.Flags().Changed("older-than") {
				return &pacht.InvalidError{Field: "older-than", Bound: `an age, such as "30d"`}
			}
			if limit < 0 {
				return &pacht.InvalidError{Field: "limit", Value: strconv.FormatInt(limit, 10), Bound: "0 (no limit) or more"}
			}
			for i, s := range statuses {
				statuses[i] = string(statusNamed(s))
			}
			slices.Sort(statuses)
			statuses = slices.Compact(statuses)
			for _, s := range statuses {
				if err := (pacht.PruneRequest{Status: pacht.Status(s), OlderThan: olderThan, Limit: batch}).Validate(); err != nil {
					return err
				}
			}
			db, err := g.open(cmd.Context())
			if err != nil {
				return err
			}
			defer db.Close()
			type pruned struct {
				Status  pacht.Status `json:"status"`
				Deleted int64        `json:"deleted"`
			}
			var all []pruned
			left := limit
			for _, s := range statuses {
				p := pruned{Status: pacht.Status(s)}
				for limit == 0 || left > 0 {
					req := pacht.PruneRequest{Status: p.Status, OlderThan: olderThan, Limit: batch}
					if limit > 0 {
						req.Limit = int(min(int64(batch), left))
					}
					n, err := db.Prune(cmd.Context(), req)
					if err != nil {
						return fmt.Errorf("prune %s (%d were deleted before): %w", p.Status, p.Deleted, err)
					}
					p.Deleted += int64(n)
					left -= int64(n)
					if n < req.Limit {
						break
					}
				}
				all = append(all, p)
			}
			if g.json {
				return printJSON(cmd, list(all))
			}
			for _, p := range all {
				printf(cmd, "%s: %s deleted\n", p.Status, plural(p.Deleted, "job", "jobs"))
			}
			return nil
		},
	}
	fl := c.Flags()
	fl.StringSliceVar(&statuses, "status", nil, "Completed, Dead or Cancelled; may be repeated (required)")
	fl.Var(durationValue{&olderThan}, "older-than", "only what finished longer ago, such as 30d (required)")
	fl.Int64Var(&limit, "limit", 0, "how many at most; 0 = all")
	fl.IntVar(&batch, "batch", 1000, "how many in one transaction, 1 to 10000")
	completeWith(c, "status", statusNames(true)...)
	return c
}
