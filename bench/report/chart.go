package report

import (
	"encoding/xml"
	"fmt"
	"math"
	"strings"
)

// bar is one line of a chart. Its parts are drawn one behind the other.
type bar struct {
	label string
	parts []float64
	text  string // behind the bar
	class string // ours, peer or floor
}

// chart is bars with a title and, if the parts mean different things, their names.
type chart struct {
	title  string
	legend []string
	bars   []bar
	log    bool // lengths are logarithmic, and the parts are drawn over each other
}

const (
	chartWidth = 760
	labelWidth = 190
	textWidth  = 130
	barHeight  = 16
	lineHeight = 24
	headHeight = 34
)

// style is readable on white and on black. The names are of colours that both share.
const style = `<style>
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600; font-size: 13px }
.ours { fill: #1a7f37; stroke: #1a7f37 } .peer { fill: #6e7781; stroke: #6e7781 } .floor { fill: #b08800; stroke: #b08800 }
.part1 { fill-opacity: .45 } rect[class] { stroke: none } polyline[class] { fill: none; stroke-width: 2 } .axis { stroke: #8c959f; stroke-width: 1 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .ours { fill: #3fb950; stroke: #3fb950 } .peer { fill: #9198a1; stroke: #9198a1 } .floor { fill: #d29922; stroke: #d29922 }
}
</style>
`

func (c chart) svg() string {
	height := headHeight + lineHeight*len(c.bars) + 6
	if len(c.legend) > 0 {
		height += lineHeight
	}
	var b strings.Builder
	open(&b, c.title, height)
	y := headHeight
	if len(c.legend) > 0 {
		x := labelWidth
		for i, name := range c.legend {
			fmt.Fprintf(&b, `<rect class="peer part%d" x="%d" y="%d" width="12" height="12"/>`+"\n", i, x, y)
			fmt.Fprintf(&b, `<text x="%d" y="%d">%s</text>`+"\n", x+18, y+10, escape(name))
			x += 30 + 8*len(name)
		}
		y += lineHeight
	}
	width := c.scale()
	for _, bar := range c.bars {
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", labelWidth-8, y+barHeight-4, escape(bar.label))
		from, end := float64(labelWidth), float64(labelWidth)
		// In a logarithmic chart the longest comes first, so that the others stand on it.
		for i := range bar.parts {
			part := i
			if c.log {
				part = len(bar.parts) - 1 - i
				from = labelWidth
			}
			w := width(bar.parts[part])
			fmt.Fprintf(&b, `<rect class="%s part%d" x="%.1f" y="%d" width="%.1f" height="%d"/>`+"\n", bar.class, part, from, y, w, barHeight)
			from += w
			end = max(end, from)
		}
		fmt.Fprintf(&b, `<text x="%.1f" y="%d">%s</text>`+"\n", end+6, y+barHeight-4, escape(bar.text))
		y += lineHeight
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// scale answers the length of a value.
func (c chart) scale() func(float64) float64 {
	most := 0.0
	for _, bar := range c.bars {
		total := 0.0
		for _, p := range bar.parts {
			if c.log {
				total = max(total, p)
			} else {
				total += p
			}
		}
		most = max(most, total)
	}
	const room = chartWidth - labelWidth - textWidth
	if most <= 0 {
		return func(float64) float64 { return 0 }
	}
	if !c.log {
		return func(v float64) float64 { return v / most * room }
	}
	const least = 0.1
	return func(v float64) float64 {
		return max(1, math.Log(max(v, least)/least)/math.Log(max(most, 2*least)/least)*room)
	}
}

// line is a row of values over the rounds.
type lineOf struct {
	label  string
	values []float64
	class  string
}

// lines draws values between 0 and the highest, round by round.
func lines(title string, all []lineOf) string {
	const height, left, right, bottom = 340, 50, 190, 30
	var b strings.Builder
	open(&b, title, height)
	most, rounds := 1.0, 2
	for _, l := range all {
		rounds = max(rounds, len(l.values))
		for _, v := range l.values {
			most = max(most, v)
		}
	}
	x := func(i int) float64 { return left + float64(i)*(chartWidth-left-right)/float64(rounds-1) }
	y := func(v float64) float64 { return height - bottom - v/most*(height-bottom-headHeight) }
	for _, v := range []float64{0, 0.25, 0.5, 0.75, 1} {
		fmt.Fprintf(&b, `<line class="axis" x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke-opacity=".4"/>`+"\n", left, y(v), chartWidth-right, y(v))
		fmt.Fprintf(&b, `<text x="%d" y="%.1f" text-anchor="end">%.0f %%</text>`+"\n", left-6, y(v)+4, v*100)
	}
	for i := range rounds {
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">round %d</text>`+"\n", x(i), height-bottom+18, i+1)
	}
	var taken []float64 // where labels stand
	for _, l := range all {
		if len(l.values) == 0 {
			continue
		}
		points := make([]string, len(l.values))
		for i, v := range l.values {
			points[i] = fmt.Sprintf("%.1f,%.1f", x(i), y(v))
		}
		fmt.Fprintf(&b, `<polyline class="%s" points="%s"/>`+"\n", l.class, strings.Join(points, " "))
		last := l.values[len(l.values)-1]
		at := free(taken, y(last)+4)
		taken = append(taken, at)
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f">%s %.0f %%</text>`+"\n", x(len(l.values)-1)+8, at, escape(l.label), last*100)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// free moves a label down until it covers no other. What was just moved may be a rounding error too
// near, and stays: else it would be moved to the same place for ever.
func free(taken []float64, at float64) float64 {
	const line = 14
	for again := true; again; {
		again = false
		for _, t := range taken {
			if math.Abs(t-at) < line && t+line > at {
				at, again = t+line, true
			}
		}
	}
	return at
}

func open(b *strings.Builder, title string, height int) {
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-label="%s">`+"\n",
		chartWidth, height, chartWidth, height, escape(title))
	b.WriteString(style)
	fmt.Fprintf(b, `<text class="title" x="8" y="18">%s</text>`+"\n", escape(title))
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder does not fail
	return b.String()
}
