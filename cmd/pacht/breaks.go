package main

import (
	"fmt"
	"slices"
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
first_seen, last_seen, next_at}. amount_minor is in minor units of the currency: 1999 is 19.99 EUR.
Ids are strings; keys without a value are left out.`,
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
			if len(rows) == 0 && f.Class != "" {
				if err := sayUnknownClass(cmd, db, f.Class); err != nil {
					return err
				}
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
		printf(cmd, "no breaks%s\n", clean(selected(f)))
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
		t.row(b.Reference, b.Class, b.Status, reconcile.AmountText(b.AmountMinor, b.Currency), job, ago(b.FirstSeen, now), b.Checks, next)
	}
	if err := t.end(); err != nil {
		return err
	}
	if last := rows[len(rows)-1]; len(rows) == f.Limit {
		printf(cmd, "there may be more: --after %s\n", clean(strconv.Quote(last.Reference+" "+last.Class)))
	}
	return nil
}

// selected says which filters nothing has passed.
func selected(f pacht.BreakFilter) string {
	var by []string
	switch {
	case f.Status != "":
		by = append(by, "status "+string(f.Status))
	case !f.Ended:
		by = append(by, "open")
	}
	if f.Class != "" {
		by = append(by, "class "+strconv.Quote(f.Class))
	}
	if f.Due {
		by = append(by, "due")
	}
	if f.After != (pacht.BreakCursor{}) {
		by = append(by, "after "+strconv.Quote(f.After.Reference+" "+f.After.Class))
	}
	if len(by) == 0 {
		return ""
	}
	return " (" + strings.Join(by, ", ") + ")"
}

// sayUnknownClass warns of a class that is not the reconciler's and that no break has ever had. It
// is no error: a system may open breaks of its own, and has opened none yet.
func sayUnknownClass(cmd *cobra.Command, db pacht.BreakLog, class string) error {
	if slices.Contains(reconcile.Classes, reconcile.Class(class)) {
		return nil
	}
	ever, err := db.Breaks(cmd.Context(), pacht.BreakFilter{Class: class, Ended: true, Limit: 1})
	if err != nil || len(ever) > 0 {
		return err
	}
	var classes []string
	for _, c := range reconcile.Classes {
		classes = append(classes, string(c))
	}
	_, err = fmt.Fprintf(cmd.ErrOrStderr(), "no break has ever had the class %s; the reconciler's are %s\n", class, strings.Join(classes, ", "))
	return err
}

func breaksSummaryCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "summary",
		Short: "Sum up open breaks by class, status and currency, and what was healed today",
		Long: `Sum up the open breaks by class, status and currency, with the age of the oldest of each, and
what was healed today (UTC, by the database's clock). An amount after ">=" was too large to sum up.

JSON: {at, open: [{class, status, currency, breaks, amount_minor, amount_capped, oldest}],
  healed_today: [the same], at_risk_minor: {CURRENCY: AMOUNT}, at_risk_capped: [CURRENCY]}.
Amounts are in minor units: 1999 is 19.99 EUR. One that is capped is the largest integer of 64 bits,
and the sum is that much or more; both keys are left out if none is.`,
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
