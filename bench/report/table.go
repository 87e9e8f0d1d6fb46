package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/pacht-queue/pacht/bench/result"
)

// table is Markdown: the first column is text, the others figures.
type table struct {
	head []string
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) String() string {
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(t.head)
	rule := make([]string, len(t.head))
	for i := range rule {
		rule[i] = "---"
		if i > 0 {
			rule[i] = "--:"
		}
	}
	line(rule)
	for _, r := range t.rows {
		line(r)
	}
	return b.String()
}

// number has three digits that count, and commas: more would be noise.
func number(v float64) string {
	if v == 0 {
		return "0"
	}
	digits := 2 - int(math.Floor(math.Log10(math.Abs(v))))
	if digits > 0 {
		return strconv.FormatFloat(v, 'f', min(digits, 2), 64)
	}
	unit := math.Pow10(-digits)
	text := strconv.FormatFloat(math.Round(v/unit)*unit, 'f', 0, 64)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// spread is the median and, if there were several rounds, the least and the most.
func spread(s result.Stat) string {
	switch s.N {
	case 0:
		return ""
	case 1:
		return number(s.Median)
	}
	return fmt.Sprintf("%s (%s..%s)", number(s.Median), number(s.Min), number(s.Max))
}

func median(s result.Stat) string {
	if s.N == 0 {
		return ""
	}
	return number(s.Median)
}
