package reconcile

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pacht-queue/pacht"
)

// Summary is how things stand: the open breaks by class, status and currency, how old the oldest of
// each are, and what was healed today (UTC).
type Summary struct {
	At     time.Time          `json:"at"` // by the database's clock
	Open   []pacht.BreakCount `json:"open"`
	Healed []pacht.BreakCount `json:"healed_today"`
	// AtRisk is the amount of all open breaks, by currency.
	AtRisk map[string]int64 `json:"at_risk_minor"`
}

// Summarize reads it.
func Summarize(ctx context.Context, store interface {
	pacht.BreakLog
	Now(ctx context.Context) (time.Time, error)
}) (Summary, error) {
	now, err := store.Now(ctx)
	if err != nil {
		return Summary{}, fmt.Errorf("summarize breaks: %w", err)
	}
	s := Summary{At: now, Open: []pacht.BreakCount{}, Healed: []pacht.BreakCount{}, AtRisk: map[string]int64{}}
	counts, err := store.BreakCounts(ctx, now.UTC().Truncate(day))
	if err != nil {
		return Summary{}, fmt.Errorf("summarize breaks: %w", err)
	}
	for _, c := range counts {
		if !c.Status.Open() {
			s.Healed = append(s.Healed, c)
			continue
		}
		s.Open = append(s.Open, c)
		if c.Currency != "" {
			s.AtRisk[c.Currency] = plus(s.AtRisk[c.Currency], c.AmountMinor)
		}
	}
	return s, nil
}

// plus adds two amounts, neither negative, to the largest int64 at most.
func plus(a, b int64) int64 {
	if sum := a + b; sum >= 0 {
		return sum
	}
	return 1<<63 - 1
}

// String is the summary as a table. Amounts are in minor units.
func (s Summary) String() string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "CLASS\tSTATUS\tBREAKS\tAMOUNT\tOLDEST")
	for _, c := range append(append([]pacht.BreakCount{}, s.Open...), s.Healed...) {
		amount := "-"
		if c.Currency != "" {
			amount = fmt.Sprintf("%d %s", c.AmountMinor, c.Currency)
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\n", c.Class, c.Status, c.Breaks, amount, s.At.Sub(c.Oldest).Round(time.Second))
	}
	if len(s.Open)+len(s.Healed) == 0 {
		fmt.Fprintln(t, "no breaks\t\t\t\t")
	}
	_ = t.Flush() // into memory
	return b.String()
}
