package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/pacht-queue/pacht"
)

// breakDossier is all that is known of one reference.
type breakDossier struct {
	Reference string                `json:"reference"`
	Breaks    []pacht.Break         `json:"breaks"`
	Decisions []pacht.DecisionEntry `json:"decisions"`

	now time.Time
}

func breaksShowCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "show REFERENCE",
		Short: "Show the breaks of a reference, and every decision on them",
		Long: `Show all breaks of a reference, ended ones too, and every decision on them, oldest first: what
was seen on both sides, what was done about it, by whom, and why.

JSON: {reference, breaks: [what "breaks list" gives],
  decisions: [{at, reference, class, rev, status, job, amount_minor, currency, ours, theirs, by,
    reason, wait_ns}]}.`,
		Args: exactly("REFERENCE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f := pacht.BreakFilter{Reference: args[0], Ended: true, Limit: 1000}
			if err := checkReference(f); err != nil {
				return err
			}
			db, err := g.open(cmd.Context())
			if err != nil {
				return err
			}
			defer db.Close()
			d := breakDossier{Reference: args[0]}
			if d.Breaks, err = db.Breaks(cmd.Context(), f); err != nil {
				return err
			}
			if len(d.Breaks) == 0 {
				return noBreak(args[0], "")
			}
			if d.Decisions, err = db.Decisions(cmd.Context(), args[0]); err != nil {
				return err
			}
			if d.now, err = db.Now(cmd.Context()); err != nil {
				return err
			}
			if g.json {
				return printJSON(cmd, d)
			}
			return d.print(cmd)
		},
	}
}

func checkReference(f pacht.BreakFilter) error {
	if f.Reference == "" {
		return &pacht.InvalidError{Field: "reference", Value: `""`, Bound: "1 to 512 bytes"}
	}
	return f.Validate()
}

// noBreakError refuses an act on a break that is not there.
type noBreakError struct{ text string }

func (e *noBreakError) Error() string { return e.text }

func noBreak(reference, class string) error {
	text := "there is no break of " + strconv.Quote(cut(reference, 80))
	if class != "" {
		text += " with class " + strconv.Quote(cut(class, 80))
	}
	return &noBreakError{text}
}

func (d breakDossier) print(cmd *cobra.Command) error {
	printf(cmd, "%s\n\n", clean(d.Reference))
	if err := printBreaks(cmd, d.Breaks, pacht.BreakFilter{}, d.now); err != nil {
		return err
	}
	printf(cmd, "\ndecisions\n")
	for _, e := range d.Decisions {
		wait := ""
		if e.Status == pacht.BreakWaiting {
			wait = ", asked again after " + short(e.Wait)
		}
		printf(cmd, "  %s  %s: %s%s, by %s\n      %s\n", stamp(e.At, d.now), clean(e.Class), e.Status, wait, clean(e.By), clean(e.Reason))
		if len(e.Ours) > 0 {
			printf(cmd, "      ours    %s\n", clean(cut(string(e.Ours), 400)))
		}
		if len(e.Theirs) > 0 {
			printf(cmd, "      theirs  %s\n", clean(cut(string(e.Theirs), 400)))
		}
	}
	return nil
}

// closedBreak is what closing one came to.
type closedBreak struct {
	Reference string            `json:"reference"`
	Class     string            `json:"class"`
	Status    pacht.BreakStatus `json:"status"`
	Rev       int64             `json:"rev"`
}

func breaksCloseCommand(g *globals) *cobra.Command {
	var f actFlags
	var rev int64
	c := &cobra.Command{
		Use:   "close REFERENCE CLASS --by NAME --reason TEXT",
		Short: "End a break as it is",
		Long: `End an open break by hand: it was settled elsewhere, or is accepted as it is. It changes neither
side's record and no job. The reconciler leaves it alone as long as it sees the very same on both
sides; anything else opens it again. It is fenced: with --rev it applies only if the break is as
it was then, else to what was just read.

JSON: {reference, class, status, rev}.`,
		Args: exactly("REFERENCE", "CLASS"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkReference(pacht.BreakFilter{Reference: args[0]}); err != nil {
				return err
			}
			if err := pacht.ValidName("class", args[1]); err != nil {
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
			found, err := db.Breaks(cmd.Context(), pacht.BreakFilter{Reference: args[0], Class: args[1], Ended: true})
			if err != nil {
				return err
			}
			if len(found) == 0 {
				return noBreak(args[0], args[1])
			}
			b := found[0]
			if !b.Status.Open() {
				return &noBreakError{fmt.Sprintf("break %s of %q has ended already: it is %s", b.Class, cut(b.Reference, 80), b.Status)}
			}
			if cmd.Flags().Changed("rev") {
				b.Rev = rev
			}
			done, err := db.Decide(cmd.Context(), pacht.Decision{
				Reference: b.Reference, Class: b.Class, Rev: b.Rev, Status: pacht.BreakClosed, Job: b.Job,
				AmountMinor: b.AmountMinor, Currency: b.Currency, Ours: b.Ours, Theirs: b.Theirs, By: f.act.By, Reason: f.act.Reason,
			})
			if err != nil {
				return err
			}
			if g.json {
				return printJSON(cmd, closedBreak{done.Reference, done.Class, done.Status, done.Rev})
			}
			printf(cmd, "break %s of %s is closed\n", clean(done.Class), clean(done.Reference))
			return nil
		},
	}
	f.add(c)
	c.Flags().Int64Var(&rev, "rev", 0, "only if the break has this rev")
	return c
}
