package bench

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Result is what every scenario answers. It encodes as one JSON object.
type Result interface{ Table() Table }

// Table is a result for people.
type Table struct {
	Header []string
	Rows   [][]string
	Notes  []string // what the rows do not say
	Facts  string   // machine, versions and settings
	Faults []string // what makes the result worthless; empty is good
}

// number writes a figure; nothing if it is unknown.
func number(v *float64, digits int) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'f', digits, 64)
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// megabytes writes a size in bytes.
func megabytes(bytes *int64) string {
	if bytes == nil {
		return ""
	}
	return strconv.FormatFloat(float64(*bytes)/(1<<20), 'f', 1, 64)
}

// median is the middle of a figure over all rounds, the mean of both if there are two; nil if
// one is unknown.
func median[T any](rounds []T, of func(T) *float64) *float64 {
	var all []float64
	for _, r := range rounds {
		v := of(r)
		if v == nil {
			return nil
		}
		all = append(all, *v)
	}
	slices.Sort(all)
	mid := len(all) / 2
	m := all[mid]
	if len(all)%2 == 0 {
		m = (all[mid-1] + m) / 2
	}
	return &m
}

// quantile is the q-th part of sorted times, by the nearest rank.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(q*float64(len(sorted)) + 0.999999)
	return sorted[min(max(rank-1, 0), len(sorted)-1)]
}

// facts names machine, versions and settings; the caller adds its own.
func (p *Place) facts(ctx context.Context, more string) (string, error) {
	settings, err := p.settings(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s, %s/%s, %d CPUs, %s; %s; %s",
		processor(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), settings, more), nil
}

// processor is the model of the machine's CPU, where Linux tells it.
func processor() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}
