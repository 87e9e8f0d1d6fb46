package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/reconcile"
)

func breaksCommand(g *globals) *cobra.Command {
	return group("breaks", "List, show, sum up and close differences between our records and the provider's",
		`Differences that the reconciler found between our records and the provider's, what it decided
about each, and what waits for a person. Closing one needs --by NAME and --reason TEXT; both are
kept with the decision.`,
		breaksListCommand(g),
		breaksShowCommand(g),
		breaksSummaryCommand(g),
		breaksCloseCommand(g),
	)
}

func breaksListCommand(g *globals) *cobra.Command {
	var f pacht.BreakFilter
	var status, after string
	c := &cobra.Command{
		Use:   "list",
		Short: "List open breaks, by reference and class",
		Long: `List breaks, by reference and class: open ones, unless --status or --all says otherwise.

JSON: an array of {reference, class, rev, status, job, amount_minor, currency, ours, theirs, checks,
first_seen, last_seen, next_at}. Amounts are in minor units of the currency. Ids are strings; keys
without a value are left out.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.Status = pacht.BreakStatus(strings.ToLower(status))
			if f.Limit == 0 { // the filter takes it for its own default
				return &pacht.InvalidError{Field: "limit", Value: "0", Bound: "1 to 1000"}
			}
			for field, value := range map[string]string{"status": status, "class": f.Class, "after": after} {
				if cmd.Flags().Changed(field) && value == "" {
					return &pacht.InvalidError{Field: field, Value: `""`, Bound: "a value, or no --" + field}
				}
			}
			if after != "" {
				i := strings.LastIndexByte(after, ' ')
				if i < 0 {
					return &pacht.InvalidError{Field: "after", Value: strconv.Quote(cut(after, 40)), Bound: `a reference and a class, as "REFERENCE CLASS"`}
				}
				f.After = pacht.BreakCursor{Reference: after[:i], Class: after[i+1:]}
			}
			if f.Class != "" {
				if err := pacht.ValidName("class", f.Class); err != nil {
					return err
				}
			}
			if err := f.Validate(); err != nil {
				return err
			}
			db, err := g.open(cmd.Context())
			if err != nil {
				return err
			}
			defer db.Close()
			rows, err := db.Breaks(cmd.Context(), f)
			if err != nil {
				return err
			}
			if g.json {
				return printJSON(cmd, list(rows))
			}
			now, err := db.Now(cmd.Context())
			if err != nil {
				return err
			}
			return printBreaks(cmd, rows, f, now)
		},
	}
	fl := c.Flags()
	fl.StringVar(&status, "status", "", "waiting, person, healed or closed")
	fl.BoolVar(&f.Ended, "all", false, "those that have ended too")
	fl.StringVar(&f.Class, "class", "", "only this class, such as paid_there_pending_here")
	fl.BoolVar(&f.Due, "due", false, "only those that are due to be asked again")
	fl.StringVar(&after, "after", "", `only those after this one, "REFERENCE CLASS": the next page`)
	fl.IntVar(&f.Limit, "limit", 50, "how many at most, 1 to 1000")
	var statuses, classes []string
	for _, s := range pacht.BreakStatuses {
		statuses = append(statuses, string(s))
	}
	for _, class := range reconcile.Classes {
		classes = append(classes, string(class))
	}
	completeWith(c, "status", statuses...)
	completeWith(c, "class", classes...)
	return c
}

func printBreaks(cmd *cobra.Command, rows []pacht.Break, f pacht.BreakFilter, now time.Time) error {
	if len(rows) == 0 {
		printf(cmd, "no breaks\n")
		return nil
	}
	t := newTable(cmd, "REFERENCE", "CLASS", "STATUS", "AT RISK", "JOB", "FIRST SEEN", "CHECKS", "NEXT")
	for _, b := range rows {
		job, next := "", ""
		if b.Job != 0 {
			job = b.Job.String()
		}
		if b.Status == pacht.BreakWaiting {
			next = "asked again " + ago(b.NextAt, now)
		}
		t.row(b.Reference, b.Class, b.Status, amount(b.AmountMinor, b.Currency), job, ago(b.FirstSeen, now), b.Checks, next)
	}
	if err := t.end(); err != nil {
		return err
	}
	if last := rows[len(rows)-1]; len(rows) == f.Limit {
		printf(cmd, "there may be more: --after %s\n", clean(strconv.Quote(last.Reference+" "+last.Class)))
	}
	return nil
}

// amount is in minor units: where the decimal point stands is not for the queue to say.
func amount(minor int64, currency string) string {
	if currency == "" {
		return ""
	}
	return fmt.Sprintf("%d %s", minor, currency)
}

func breaksSummaryCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "summary",
		Short: "Sum up open breaks by class, status and currency, and what was healed today",
		Long: `Sum up the open breaks by class, status and currency, with the age of the oldest of each, and
what was healed today (UTC, by the database's clock). Amounts are in minor units.

JSON: {at, open: [{class, status, currency, breaks, amount_minor, oldest}],
  healed_today: [the same], at_risk_minor: {CURRENCY: AMOUNT}}.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			db, err := g.open(cmd.Context())
			if err != nil {
				return err
			}
			defer db.Close()
			s, err := reconcile.Summarize(cmd.Context(), db)
			if err != nil {
				return err
			}
			if g.json {
				return printJSON(cmd, s)
			}
			printf(cmd, "%s", cleanLines(s.String()))
			return nil
		},
	}
}
