package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pacht-queue/pacht"
)

// dossier is all that is known of one job.
type dossier struct {
	pacht.JobInfo
	Why      string             `json:"why"`
	Steps    []pacht.Step       `json:"steps"`
	Effects  []pacht.Effect     `json:"effects"`
	Attempts []pacht.Attempt    `json:"attempts"`
	Reports  []pacht.Report     `json:"reports"`
	Audit    []pacht.AuditEntry `json:"audit"`

	now time.Time
}

func jobsShowCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show all that is known of a job, and why it does not run",
		Long: `Show a job: its facts, a line why it does not run (or that it does), the steps it has
reached, the calls it has made to the outside, the whole history of its leases, outcomes that
came too late, and acts by hand.

JSON: what "jobs list" gives, and {args, metadata, why,
  steps: [{token, name, data, at}],
  effects: [{job, name, state, rev, key, reference, request, token, calls, answer, error,
    first_called_at, called_at, answered_at, not_before}],
  attempts: [{job, token, attempt, owner, claimed_at, ended_at, late, outcome, next_status,
    next_run_at, error, output}],
  reports: [{job, token, at, owner, outcome, error}],
  audit: [{at, by, act, job, queue, reason}]}`,
		Args: exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := pacht.ParseID(args[0])
			if err != nil {
				return err
			}
			db, err := g.open(cmd.Context())
			if err != nil {
				return err
			}
			defer db.Close()
			d, err := collect(cmd.Context(), db, id)
			if err != nil {
				return fmt.Errorf("show: %w", err)
			}
			if g.json {
				return printJSON(cmd, d)
			}
			return d.print(cmd)
		},
	}
}

func collect(ctx context.Context, db pacht.Store, id pacht.ID) (d dossier, err error) {
	if d.JobInfo, err = db.Job(ctx, id); err != nil {
		return d, err
	}
	if d.now, err = db.Now(ctx); err != nil {
		return d, err
	}
	workers, err := db.Workers(ctx)
	if err != nil {
		return d, err
	}
	d.Why = pacht.WhyNotRunning(d.JobInfo, workers, d.now)
	steps, err := db.Steps(ctx, id)
	if err != nil {
		return d, err
	}
	effects, err := db.Effects(ctx, id)
	if err != nil {
		return d, err
	}
	attempts, err := db.Attempts(ctx, id)
	if err != nil {
		return d, err
	}
	reports, err := db.Reports(ctx, id)
	if err != nil {
		return d, err
	}
	audit, err := db.Audit(ctx, id)
	d.Steps, d.Effects, d.Attempts, d.Reports, d.Audit = list(steps), list(effects), list(attempts), list(reports), list(audit)
	return d, err
}

func (d dossier) print(cmd *cobra.Command) error {
	printf(cmd, "job %d: %s, %s\n  %s\n\n", d.ID, clean(d.Kind), d.Status, clean(d.Why))
	if err := d.printFacts(cmd); err != nil {
		return err
	}
	printf(cmd, "\nargs\n%s\n", indent(string(d.Args), "  "))
	if len(d.Metadata) > 0 {
		printf(cmd, "\nmetadata\n%s\n", indent(string(d.Metadata), "  "))
	}
	for _, part := range []func(*cobra.Command) error{d.printSteps, d.printEffects, d.printHistory, d.printReports, d.printAudit} {
		if err := part(cmd); err != nil {
			return err
		}
	}
	return nil
}

func (d dossier) printFacts(cmd *cobra.Command) error {
	t := newTable(cmd)
	t.row("  queue", fmt.Sprintf("%s, priority %d", d.Queue, d.Priority))
	t.row("  enqueued", stamp(d.CreatedAt, d.now))
	if !d.RunAt.IsZero() {
		t.row("  due", stamp(d.RunAt, d.now))
	}
	t.row("  attempt", fmt.Sprintf("%d of %d", d.Attempt, d.MaxAttempts))
	t.row("  crashes", fmt.Sprintf("%d in a row, of %d", d.Crashes, d.MaxCrashes))
	t.row("  token", d.Token)
	t.row("  lease", fmt.Sprintf("%s, on crash %s", short(d.TTL), d.CrashPolicy))
	if d.LeaseOwner != "" {
		t.row("  owner", d.LeaseOwner)
		t.row("  claimed", stamp(d.ClaimedAt, d.now))
		t.row("  lease until", stamp(d.LeaseUntil, d.now))
	}
	if d.CancelRequested {
		t.row("  cancel", "requested; the holder hears of it at its next renewal")
	}
	if !d.FinishedAt.IsZero() {
		t.row("  finished", stamp(d.FinishedAt, d.now))
	}
	return t.end()
}

func (d dossier) printSteps(cmd *cobra.Command) error {
	if len(d.Steps) == 0 {
		return nil
	}
	printf(cmd, "\nsteps\n")
	t := newTable(cmd, "  AT", "TOKEN", "NAME", "DATA")
	for _, s := range d.Steps {
		t.row("  "+stamp(s.At, d.now), s.Token, s.Name, cut(string(s.Data), 200))
	}
	return t.end()
}

func (d dossier) printEffects(cmd *cobra.Command) error {
	if len(d.Effects) == 0 {
		return nil
	}
	printf(cmd, "\ncalls to the outside\n")
	t := newTable(cmd, "  CALLED", "TOKEN", "CALLS", "NAME", "STATE", "REFERENCE", "ANSWER OR ERROR")
	for _, e := range d.Effects {
		said := string(e.Answer)
		if e.State != pacht.EffectSucceeded {
			said = e.Error
		}
		t.row("  "+stamp(e.CalledAt, d.now), e.Token, e.Calls, e.Name, e.State, e.Reference, cut(said, 200))
	}
	return t.end()
}

func (d dossier) printHistory(cmd *cobra.Command) error {
	printf(cmd, "\nhistory\n")
	if len(d.Attempts) == 0 {
		printf(cmd, "  no lease of it has been closed yet\n")
		return nil
	}
	t := newTable(cmd, "  TOKEN", "ATTEMPT", "OUTCOME", "THEN", "ENDED", "HELD", "OWNER")
	for _, a := range d.Attempts {
		outcome := string(a.Outcome)
		if a.Late {
			outcome += " (late)"
		}
		t.row("  "+a.Token.String(), a.Attempt, outcome, a.NextStatus, stamp(a.EndedAt, d.now), short(a.EndedAt.Sub(a.ClaimedAt)), a.Owner)
	}
	if err := t.end(); err != nil {
		return err
	}
	for _, a := range d.Attempts {
		if a.Error != "" {
			printf(cmd, "\n  error of token %d\n%s\n", a.Token, indent(a.Error, "    "))
		}
		if len(a.Output) > 0 {
			printf(cmd, "\n  output of token %d\n%s\n", a.Token, indent(string(a.Output), "    "))
		}
	}
	return nil
}

func (d dossier) printReports(cmd *cobra.Command) error {
	if len(d.Reports) == 0 {
		return nil
	}
	printf(cmd, "\ntoo late to count (the lease was closed by somebody else before)\n")
	t := newTable(cmd, "  AT", "TOKEN", "OUTCOME", "OWNER", "ERROR")
	for _, r := range d.Reports {
		t.row("  "+stamp(r.At, d.now), r.Token, r.Outcome, r.Owner, cut(r.Error, 200))
	}
	return t.end()
}

func (d dossier) printAudit(cmd *cobra.Command) error {
	if len(d.Audit) == 0 {
		return nil
	}
	printf(cmd, "\nby hand\n")
	t := newTable(cmd, "  AT", "BY", "ACT", "REASON")
	for _, a := range d.Audit {
		t.row("  "+stamp(a.At, d.now), a.By, a.Act, a.Reason)
	}
	return t.end()
}
