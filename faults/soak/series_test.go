package soak

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/pacht-queue/pacht/faults/lab"
)

// series are figures that were taken again and again, by name.
type series map[string][]int

func (s series) add(name string, value int) { s[name] = append(s[name], value) }

// bound says by how much a figure of the second half may be above the highest of the first: by
// a share, and by what it may differ from one look to the next.
type bound struct {
	percent, slack int
}

// steady fails the test for each figure whose second half is above its bound, and answers the
// highest of both halves for the report.
func (s series) steady(t *testing.T, bounds map[string]bound) []lab.Fact {
	t.Helper()
	var facts []lab.Fact
	for _, name := range slices.Sorted(maps.Keys(s)) {
		all := s[name]
		half := len(all) / 2
		if half < 2 {
			t.Fatalf("%s: only %d looks", name, len(all))
		}
		first, second := slices.Max(all[:half]), slices.Max(all[half:])
		b, ok := bounds[name]
		if !ok {
			t.Fatalf("%s has no bound", name)
		}
		if most := first + first*b.percent/100 + b.slack; second > most {
			t.Errorf("%s grows: at most %d in the first half, %d in the second, bound %d: %v", name, first, second, most, all)
		}
		facts = append(facts, lab.F(name, fmt.Sprintf("%d,%d", first, second)))
	}
	return facts
}
