package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/pacht-queue/pacht"
)

// queue is what there is in a queue, and its own settings.
type queue struct {
	Queue      string              `json:"queue"`
	Pending    int64               `json:"pending"`
	Due        int64               `json:"due"`
	Processing int64               `json:"processing"`
	Expired    int64               `json:"expired"`
	Stuck      int64               `json:"stuck"`
	Dead       int64               `json:"dead"`
	Cancelled  int64               `json:"cancelled"`
	Settings   pacht.QueueSettings `json:"settings"`
}

func queuesCommand(g *globals) *cobra.Command {
	return group("queues", "Show what is in the queues, and show or set a queue's own settings",
		`Show what is in the queues, and show or set a queue's own settings: what a job gets that does
not say otherwise when it is enqueued, and whose kind does not either.`,
		queuesListCommand(g),
		queuesShowCommand(g),
		queuesSetCommand(g),
	)
}

func queuesListCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "Count unfinished, Dead and Cancelled jobs by queue",
		Long: `Count unfinished, Dead and Cancelled jobs by queue, with the settings of those queues that
have their own. Completed jobs are not counted: that would read the whole history.

JSON: an array of {queue, pending, due, processing, expired, stuck, dead, cancelled,
settings: {ttl_ns, max_attempts, max_crashes, crash_policy}}; due is a part of pending, expired
of processing; settings that are the default are left out.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			db, err := g.open(cmd.Context())
			if err != nil {
				return err
			}
			defer db.Close()
			rows, err := queues(cmd.Context(), db)
			if err != nil {
				return err
			}
			if g.json {
				return printJSON(cmd, list(rows))
			}
			if len(rows) == 0 {
				printf(cmd, "nothing in any queue but Completed jobs, if any\n")
				return nil
			}
			t := newTable(cmd, "QUEUE", "PENDING", "DUE", "PROCESSING", "EXPIRED", "STUCK", "DEAD", "CANCELLED", "SETTINGS")
			for _, q := range rows {
				t.row(q.Queue, q.Pending, q.Due, q.Processing, q.Expired, q.Stuck, q.Dead, q.Cancelled, settings(q.Settings))
			}
			return t.end()
		},
	}
}

func queuesShowCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "show QUEUE",
		Short: "Show one queue: its jobs, its settings, and who changed them",
		Long: `Show one queue: its jobs, its settings, and who changed them.

JSON: what "queues list" gives for it, and audit: [{at, by, act, queue, reason}].`,
		Args: exactly("QUEUE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := pacht.ValidName("queue", args[0]); err != nil {
				return err
			}
			db, err := g.open(cmd.Context())
			if err != nil {
				return err
			}
			defer db.Close()
			return showQueue(cmd, g, db, args[0])
		},
	}
}

func showQueue(cmd *cobra.Command, g *globals, db pacht.Reader, name string) error {
	ctx := cmd.Context()
	rows, err := queues(ctx, db)
	if err != nil {
		return err
	}
	shown := struct {
		queue
		Audit []pacht.AuditEntry `json:"audit"`
	}{queue: queue{Queue: name}, Audit: []pacht.AuditEntry{}}
	for _, q := range rows {
		if q.Queue == name {
			shown.queue = q
		}
	}
	acts, err := db.Audit(ctx, 0)
	if err != nil {
		return err
	}
	for _, a := range acts {
		if a.Queue == name {
			shown.Audit = append(shown.Audit, a)
		}
	}
	if g.json {
		return printJSON(cmd, shown)
	}
	now, err := db.Now(ctx)
	if err != nil {
		return err
	}
	q := shown.queue
	printf(cmd, "queue %s\n", clean(name))
	t := newTable(cmd)
	t.row("  pending", fmt.Sprintf("%d, %d of them due", q.Pending, q.Due))
	t.row("  processing", fmt.Sprintf("%d, %d of them expired", q.Processing, q.Expired))
	t.row("  stuck, dead, cancelled", fmt.Sprintf("%d, %d, %d", q.Stuck, q.Dead, q.Cancelled))
	t.row("  settings", settings(q.Settings))
	for _, a := range shown.Audit {
		t.row("  "+a.Act, fmt.Sprintf("%s by %s: %s", stamp(a.At, now), a.By, a.Reason))
	}
	return t.end()
}

// queues gathers counts and settings by queue.
func queues(ctx context.Context, db pacht.Reader) ([]queue, error) {
	counts, err := db.Counts(ctx)
	if err != nil {
		return nil, err
	}
	own, err := db.Queues(ctx)
	if err != nil {
		return nil, err
	}
	byName := map[string]*queue{}
	of := func(name string) *queue {
		if byName[name] == nil {
			byName[name] = &queue{Queue: name}
		}
		return byName[name]
	}
	for _, c := range counts {
		q := of(c.Queue)
		switch c.Status {
		case pacht.Pending:
			q.Pending, q.Due = c.Jobs, c.Due
		case pacht.Processing:
			q.Processing, q.Expired = c.Jobs, c.Expired
		case pacht.Stuck:
			q.Stuck = c.Jobs
		case pacht.Dead:
			q.Dead = c.Jobs
		case pacht.Cancelled:
			q.Cancelled = c.Jobs
		}
	}
	for _, o := range own {
		of(o.Name).Settings = o.QueueSettings
	}
	var rows []queue
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		rows = append(rows, *byName[name])
	}
	return rows, nil
}

func settings(s pacht.QueueSettings) string {
	var said string
	add := func(name, value string) {
		if said != "" {
			said += ", "
		}
		said += name + " " + value
	}
	if s.TTL != 0 {
		add("ttl", s.TTL.String())
	}
	if s.MaxAttempts != 0 {
		add("max attempts", strconv.Itoa(s.MaxAttempts))
	}
	if s.MaxCrashes != 0 {
		add("max crashes", strconv.Itoa(s.MaxCrashes))
	}
	if s.CrashPolicy != "" {
		add("on crash", string(s.CrashPolicy))
	}
	if said == "" {
		return "defaults"
	}
	return said
}
