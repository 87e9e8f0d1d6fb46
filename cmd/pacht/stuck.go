package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/pacht-queue/pacht"
)

// stuckJob is a job that does not go on by itself, or not in time.
type stuckJob struct {
	ID        pacht.ID      `json:"id"`
	State     string        `json:"state"` // expired, parked
	Kind      string        `json:"kind"`
	Queue     string        `json:"queue"`
	Owner     string        `json:"owner"` // who holds or last held it
	Token     pacht.Token   `json:"token"`
	Lag       time.Duration `json:"lag_ns"` // since lease_until, or since it was parked
	Crashes   int           `json:"crashes"`
	Attempt   int           `json:"attempt"`
	LastError string        `json:"last_error,omitempty"`
}

func stuckCommand(g *globals) *cobra.Command {
	limit := 50
	c := &cobra.Command{
		Use:   "stuck",
		Short: "List what is expired or parked, with owner, lag, crashes and last error",
		Long: `List jobs whose lease is past its time and not closed yet ("expired": the next pass of a watcher
closes them), and jobs that are parked for a person or the reconciler ("parked": see "jobs show",
then "jobs retry", "jobs resolve" or "jobs cancel").

JSON: an array of {id, state, kind, queue, owner, token, lag_ns, crashes, attempt, last_error}.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 || limit > 1000 {
				return &pacht.InvalidError{Field: "limit", Value: strconv.Itoa(limit), Bound: "1 to 1000"}
			}
			db, err := g.open(cmd.Context())
			if err != nil {
				return err
			}
			defer db.Close()
			rows, err := stuck(cmd.Context(), db, limit)
			if err != nil {
				return err
			}
			if g.json {
				return printJSON(cmd, list(rows))
			}
			return printStuck(cmd, rows, limit)
		},
	}
	c.Flags().IntVar(&limit, "limit", limit, "how many of each state at most, 1 to 1000")
	return c
}

func stuck(ctx context.Context, db pacht.Reader, limit int) ([]stuckJob, error) {
	now, err := db.Now(ctx)
	if err != nil {
		return nil, err
	}
	expired, err := db.Jobs(ctx, pacht.Filter{Expired: true, Limit: limit})
	if err != nil {
		return nil, err
	}
	parked, err := db.Jobs(ctx, pacht.Filter{Status: pacht.Stuck, Limit: limit})
	if err != nil {
		return nil, err
	}
	var rows []stuckJob
	for _, j := range append(expired, parked...) {
		row := stuckJob{ID: j.ID, State: "expired", Kind: j.Kind, Queue: j.Queue, Owner: j.LeaseOwner, Token: j.Token, Crashes: j.Crashes, Attempt: j.Attempt, Lag: now.Sub(j.LeaseUntil)}
		history, err := db.Attempts(ctx, j.ID)
		if err != nil {
			return nil, fmt.Errorf("history of job %d: %w", j.ID, err)
		}
		for _, a := range history {
			if a.Error != "" {
				row.LastError = a.Error
			}
		}
		if j.Status == pacht.Stuck {
			row.State, row.Lag = "parked", now.Sub(j.CreatedAt)
			if n := len(history); n > 0 {
				row.Owner, row.Lag = history[n-1].Owner, now.Sub(history[n-1].EndedAt)
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func printStuck(cmd *cobra.Command, rows []stuckJob, limit int) error {
	if len(rows) == 0 {
		printf(cmd, "nothing is stuck\n")
		return nil
	}
	t := newTable(cmd, "ID", "STATE", "FOR", "KIND", "QUEUE", "CRASHES", "ATTEMPT", "OWNER", "LAST ERROR")
	states := map[string]int{}
	for _, r := range rows {
		t.row(r.ID, r.State, short(r.Lag), r.Kind, r.Queue, r.Crashes, r.Attempt, r.Owner, cut(r.LastError, 60))
		states[r.State]++
	}
	if err := t.end(); err != nil {
		return err
	}
	if states["expired"] == limit || states["parked"] == limit {
		printf(cmd, "there may be more: --limit\n")
	}
	return nil
}
