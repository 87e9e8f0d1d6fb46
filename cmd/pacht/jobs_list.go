package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pacht-queue/pacht"
)

func jobsListCommand(g *globals) *cobra.Command {
	var f pacht.Filter
	var status string
	var before string
	c := &cobra.Command{
		Use:   "list",
		Short: "List jobs, newest first",
		Long: `List jobs, newest first. Unfinished, Dead and Cancelled ones are found fast whatever the
history; a kind or queue that is rare among millions of Completed ones is not.

JSON: an array of {id, kind, queue, priority, status, attempt, max_attempts, crashes,
max_crashes, token, ttl_ns, crash_policy, created_at, run_at, lease_owner, claimed_at,
lease_until, cancel_requested, finished_at}. Ids and tokens are strings; keys without a value
are left out.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.Status = statusNamed(status)
			if cmd.Flags().Changed("before") {
				id, err := pacht.ParseID(before)
				if err != nil {
					return fmt.Errorf("before: %w", err)
				}
				f.Before = id
			}
			// The filter takes these for its own default, and for anybody.
			if f.Limit == 0 {
				return &pacht.InvalidError{Field: "limit", Value: "0", Bound: "1 to 1000"}
			}
			if cmd.Flags().Changed("owner") {
				if err := pacht.ValidOwner(f.Owner); err != nil {
					return err
				}
			}
			for field, name := range map[string]string{"kind": f.Kind, "queue": f.Queue, "status": status} {
				if cmd.Flags().Changed(field) && name == "" {
					return &pacht.InvalidError{Field: field, Value: `""`, Bound: "a value, or no --" + field}
				}
			}
			if err := checkFilter(&f); err != nil {
				return err
			}
			db, err := g.open(cmd.Context())
			if err != nil {
				return err
			}
			defer db.Close()
			jobs, err := db.Jobs(cmd.Context(), f)
			if err != nil {
				return err
			}
			if g.json {
				return printJSON(cmd, list(jobs))
			}
			now, err := db.Now(cmd.Context())
			if err != nil {
				return err
			}
			return printJobs(cmd, jobs, f, now)
		},
	}
	fl := c.Flags()
	fl.StringVar(&status, "status", "", "Pending, Processing, Stuck, Completed, Dead or Cancelled")
	fl.StringVar(&f.Kind, "kind", "", "only this kind")
	fl.StringVar(&f.Queue, "queue", "", "only this queue")
	fl.StringVar(&f.Owner, "owner", "", "only held by this owner now")
	fl.BoolVar(&f.Expired, "expired", false, "only with a lease past its time")
	fl.StringVar(&before, "before", "", "only ids before this one: the next page")
	fl.IntVar(&f.Limit, "limit", 50, "how many at most, 1 to 1000")
	completeWith(c, "status", statusNames(false)...)
	return c
}

func checkFilter(f *pacht.Filter) error {
	for field, name := range map[string]string{"kind": f.Kind, "queue": f.Queue} {
		if name == "" {
			continue
		}
		if err := pacht.ValidName(field, name); err != nil {
			return err
		}
	}
	return f.Validate()
}

func printJobs(cmd *cobra.Command, jobs []pacht.JobInfo, f pacht.Filter, now time.Time) error {
	if len(jobs) == 0 {
		printf(cmd, "no jobs\n")
		return nil
	}
	t := newTable(cmd, "ID", "STATUS", "KIND", "QUEUE", "PRIORITY", "ATTEMPT", "WHEN", "OWNER")
	for _, j := range jobs {
		t.row(j.ID, j.Status, j.Kind, j.Queue, j.Priority, fmt.Sprintf("%d/%d", j.Attempt, j.MaxAttempts), when(j, now), j.LeaseOwner)
	}
	if err := t.end(); err != nil {
		return err
	}
	if len(jobs) == f.Limit {
		printf(cmd, "there may be more: --before %d\n", jobs[len(jobs)-1].ID)
	}
	return nil
}

// when is the moment that matters most for a job in its status.
func when(j pacht.JobInfo, now time.Time) string {
	switch j.Status {
	case pacht.Pending:
		return "due " + ago(j.RunAt, now)
	case pacht.Processing:
		state := "lease ends "
		if now.After(j.LeaseUntil) {
			state = "EXPIRED "
		}
		if j.CancelRequested {
			state = "cancel requested, " + state
		}
		return state + ago(j.LeaseUntil, now)
	case pacht.Stuck:
		return "parked; enqueued " + ago(j.CreatedAt, now)
	}
	return "ended " + ago(j.FinishedAt, now)
}
