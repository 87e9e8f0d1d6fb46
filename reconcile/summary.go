package reconcile

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/money"
)

// Summary is how things stand: the open breaks by class, status and currency, how old the oldest of
// each are, and what was healed today (UTC).
type Summary struct {
	At     time.Time          `json:"at"` // by the database's clock
	Open   []pacht.BreakCount `json:"open"`
	Healed []pacht.BreakCount `json:"healed_today"`
	// AtRisk is the amount of all open breaks, by currency.
	AtRisk map[string]int64 `json:"at_risk_minor"`
	// AtRiskCapped are the currencies of which AtRisk is no sum: it is the largest int64, or more.
	AtRiskCapped []string `json:"at_risk_capped,omitempty"`
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
	for _, currency := range slices.Sorted(maps.Keys(s.AtRisk)) {
		if s.AtRisk[currency] == math.MaxInt64 {
			s.AtRiskCapped = append(s.AtRiskCapped, currency)
		}
	}
	return s, nil
}

// plus adds two amounts, neither negative, to the largest int64 at most.
func plus(a, b int64) int64 {
	if sum := a + b; sum >= 0 {
		return sum
	}
	return math.MaxInt64
}

// AmountText is an amount at risk for people: "19.99 EUR". Of a currency that package money does not
// know it says that it is in minor units, and the largest int64 may stand for more: ">= ".
func AmountText(minor int64, currency string) string {
	a := money.Amount{Minor: minor, Currency: money.Currency(currency)}
	var text string
	switch {
	case currency == "" && minor == 0:
		return "-"
	case currency == "":
		text = fmt.Sprintf("%d minor units of no currency", minor)
	case a.Validate() != nil:
		text = fmt.Sprintf("%d minor units of %s", minor, currency)
	default:
		text = a.String()
	}
	if minor == math.MaxInt64 {
		return ">= " + text
	}
	return text
}

// String is the summary as a table.
func (s Summary) String() string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "CLASS\tSTATUS\tBREAKS\tAMOUNT\tOLDEST")
	for _, c := range append(append([]pacht.BreakCount{}, s.Open...), s.Healed...) {
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\n", c.Class, c.Status, c.Breaks, AmountText(c.AmountMinor, c.Currency), s.At.Sub(c.Oldest).Round(time.Second))
	}
	if len(s.Open)+len(s.Healed) == 0 {
		fmt.Fprintln(t, "no breaks\t\t\t\t")
	}
	_ = t.Flush() // into memory
	return b.String()
}
