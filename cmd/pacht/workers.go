package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pacht-queue/pacht"
)

func workersCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "workers",
		Short: "List worker processes: the running ones first",
		Long: `List worker processes, the running ones first. No lease depends on this list.

JSON: an array of {owner, host, pid, queues, kinds, beat_every_ns, last_until, started_at, beat_at,
stopped_at, state}; state is running, stopped or silent (neither ended in order nor heard of).`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			db, err := g.open(cmd.Context())
			if err != nil {
				return err
			}
			defer db.Close()
			workers, err := db.Workers(cmd.Context())
			if err != nil {
				return err
			}
			now, err := db.Now(cmd.Context())
			if err != nil {
				return err
			}
			return printWorkers(cmd, g, workers, now)
		},
	}
}

func printWorkers(cmd *cobra.Command, g *globals, workers []pacht.WorkerInfo, now time.Time) error {
	if g.json {
		type row struct {
			pacht.WorkerInfo
			State string `json:"state"`
		}
		var rows []row
		for _, w := range workers {
			rows = append(rows, row{w, workerState(w, now)})
		}
		return printJSON(cmd, list(rows))
	}
	if len(workers) == 0 {
		printf(cmd, "no worker has ever run\n")
		return nil
	}
	t := newTable(cmd, "STATE", "STARTED", "LAST BEAT", "PID", "QUEUES", "KINDS", "OWNER")
	for _, w := range workers {
		t.row(workerState(w, now), ago(w.StartedAt, now), ago(w.BeatAt, now), w.PID,
			cut(strings.Join(w.Queues, ","), 40), cut(strings.Join(w.Kinds, ","), 40), w.Owner)
	}
	return t.end()
}

func workerState(w pacht.WorkerInfo, now time.Time) string {
	switch {
	case !w.StoppedAt.IsZero():
		return "stopped"
	case w.Missed(now):
		return "silent"
	}
	return "running"
}
