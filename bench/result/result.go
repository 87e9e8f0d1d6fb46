// Package result is what a benchmark found: every single run, and the machine.
package result

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
)

// File is a whole benchmark.
type File struct {
	Began   string    `json:"began"`
	Took    float64   `json:"took_s"`
	Machine Machine   `json:"machine"`
	Options Options   `json:"options"`
	Peers   []Peer    `json:"peers"`
	LeftOut []LeftOut `json:"left_out,omitempty"`
	Runs    []Run     `json:"runs"`
}

// Machine is where it ran.
type Machine struct {
	CPU      string   `json:"cpu"`
	Cores    int      `json:"cores"`
	Memory   string   `json:"memory"`
	Kernel   string   `json:"kernel"`
	Disk     string   `json:"disk"`
	Postgres string   `json:"postgres"`
	Settings []string `json:"settings"` // of PostgreSQL, beside its defaults
	Go       string   `json:"go"`
	Node     string   `json:"node"`
	SQLite   string   `json:"sqlite"`
}

// Options is what was asked for.
type Options struct {
	Rounds  int  `json:"rounds"`
	Jobs    int  `json:"jobs"`
	Workers int  `json:"workers,omitempty"`
	Quick   bool `json:"quick,omitempty"`
}

// Peer is a queue as it was configured.
type Peer struct {
	Name     string `json:"name"`
	Title    string `json:"title"`
	Version  string `json:"version"`
	Settings string `json:"settings"`
	Keeps    string `json:"keeps"`
	SQLite   bool   `json:"sqlite,omitempty"`
	Floor    bool   `json:"floor,omitempty"`
}

// LeftOut is a peer that could not take part.
type LeftOut struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// Run is one measured run. Its values are named in package run.
type Run struct {
	Scenario string             `json:"scenario"`
	Variant  string             `json:"variant,omitempty"`
	Peer     string             `json:"peer"`
	Round    int                `json:"round"`
	Jobs     int                `json:"jobs"`
	Values   map[string]float64 `json:"values,omitempty"`
	Error    string             `json:"error,omitempty"` // it failed, or did not pass its check
}

// Read reads a file.
func Read(name string) (*File, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var f File
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return &f, nil
}

// Write writes it, one run a line, so that two of them can be compared.
func (f *File) Write(name string) error {
	head := *f
	head.Runs = []Run{}
	text, err := json.MarshalIndent(head, "", "  ")
	if err != nil {
		return err
	}
	const empty = "\"runs\": []\n}"
	text = append(text[:len(text)-len(empty)], "\"runs\": ["...)
	for i, r := range f.Runs {
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(text, "\n    "...), line...)
	}
	return os.WriteFile(name, append(text, "\n  ]\n}\n"...), 0o644)
}

// Stat is a value over the rounds.
type Stat struct {
	Median, Min, Max float64
	N                int
}

// Stat gathers a value of all runs that passed their check; N = 0 if there is none.
func (f *File) Stat(scenario, variant, peer, value string) Stat {
	var all []float64
	for _, r := range f.Runs {
		v, ok := r.Values[value]
		if ok && r.Error == "" && r.Scenario == scenario && r.Variant == variant && r.Peer == peer {
			all = append(all, v)
		}
	}
	if len(all) == 0 {
		return Stat{}
	}
	slices.Sort(all)
	m := len(all) / 2
	s := Stat{Median: all[m], Min: all[0], Max: all[len(all)-1], N: len(all)}
	if len(all)%2 == 0 {
		s.Median = (all[m-1] + all[m]) / 2
	}
	return s
}

// Failed is the first error of a peer's runs, or "".
func (f *File) Failed(scenario, variant, peer string) string {
	for _, r := range f.Runs {
		if r.Error != "" && r.Scenario == scenario && r.Variant == variant && r.Peer == peer {
			return r.Error
		}
	}
	return ""
}

// Jobs is how many jobs a peer's runs had.
func (f *File) Jobs(scenario, variant, peer string) int {
	for _, r := range f.Runs {
		if r.Scenario == scenario && r.Variant == variant && r.Peer == peer {
			return r.Jobs
		}
	}
	return 0
}
