// Package report writes the page of results, and its charts, from the results alone.
package report

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/pacht-queue/pacht/bench/result"
)

// page is the text so far, and the charts beside it.
type page struct {
	file   *result.File
	name   string // of the folder of charts
	text   strings.Builder
	charts map[string]string
}

// Write writes the page and its folder of charts.
func Write(f *result.File, name string) error {
	p := &page{
		file: f, charts: map[string]string{},
		name: strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)),
	}
	p.head()
	p.summary()
	p.drain()
	p.enqueue()
	p.pickup()
	p.snapshot()
	p.processes()
	p.sqlite()
	p.peers()
	p.unequal()
	p.method()
	folder := filepath.Join(filepath.Dir(name), p.name)
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for chart, svg := range p.charts {
		if err := os.WriteFile(filepath.Join(folder, chart), []byte(svg), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(name, []byte(p.text.String()), 0o644)
}

func (p *page) say(format string, args ...any) { fmt.Fprintf(&p.text, format, args...) }

// draw puts a chart on the page.
func (p *page) draw(name, title, svg string) {
	p.charts[name+".svg"] = svg
	p.say("\n![%s](%s)\n", title, path.Join(p.name, name+".svg"))
}

// those are the peers of one database that took part in a scenario.
func (p *page) those(sqlite bool, scenario string) (some []result.Peer) {
	for _, peer := range p.file.Peers {
		if peer.SQLite != sqlite {
			continue
		}
		for _, r := range p.file.Runs {
			if r.Peer == peer.Name && r.Scenario == scenario {
				some = append(some, peer)
				break
			}
		}
	}
	return some
}

func class(peer result.Peer) string {
	switch {
	case peer.Floor:
		return "floor"
	case strings.HasPrefix(peer.Name, "pacht"):
		return "ours"
	}
	return "peer"
}

// bars draws the medians of a value, one bar for each peer that has it.
func (p *page) bars(scenario, variant string, peers []result.Peer, values ...string) (all []bar) {
	for _, peer := range peers {
		b := bar{label: peer.Title, class: class(peer)}
		total := 0.0
		for _, v := range values {
			s := p.file.Stat(scenario, variant, peer.Name, v)
			if s.N == 0 {
				continue
			}
			b.parts = append(b.parts, s.Median)
			total += s.Median
		}
		if len(b.parts) == len(values) {
			b.text = number(total)
			all = append(all, b)
		}
	}
	return all
}

// failures says which of these runs failed, and how.
func (p *page) failures(scenario string) {
	said := map[string]bool{}
	for _, r := range p.file.Runs {
		key := r.Peer + r.Variant
		if r.Scenario != scenario || r.Error == "" || said[key] {
			continue
		}
		said[key] = true
		what, _, _ := strings.Cut(r.Error, "\n")
		what = strings.TrimSuffix(what, "; it said:") // what follows may name files of this machine
		if len(said) == 1 {
			p.say("\nRuns that failed, or did not pass their check, and do not count:\n\n")
		}
		p.say("- %s, %s (round %d): %s\n", p.title(r.Peer), r.Variant, r.Round, what)
	}
}

func (p *page) title(name string) string {
	for _, peer := range p.file.Peers {
		if peer.Name == name {
			return peer.Title
		}
	}
	return name
}
