package bench

import (
	"fmt"
	"math"

	"github.com/pacht-queue/pacht"
)

// Bounds are what a drain may cost at most; 0 = no bound. CPU and WAL hardly depend on the
// neighbours, so they can be held against committed figures where jobs per second cannot.
type Bounds struct {
	CPU       float64 // seconds per 100,000 jobs, client and server together
	ClientCPU float64
	WAL       float64 // bytes per job
}

// Validate refuses bounds that nothing can keep.
func (b Bounds) Validate() error {
	for name, v := range map[string]float64{"max-cpu-s-per-100k": b.CPU, "max-client-cpu-s-per-100k": b.ClientCPU, "max-wal-bytes-per-job": b.WAL} {
		if v < 0 || math.IsNaN(v) {
			return &pacht.InvalidError{Field: name, Value: fmt.Sprint(v), Bound: "0 (no bound) or more"}
		}
	}
	return nil
}

// Exceeded says which bounds a drain did not keep, with value and bound. What could not be
// measured has not been kept.
func (b Bounds) Exceeded(r DrainRound) (broken []string) {
	check := func(what string, value *float64, bound float64, digits int) {
		switch {
		case bound == 0:
		case value == nil:
			broken = append(broken, fmt.Sprintf("%s: bound %g, and it cannot be measured here", what, bound))
		case *value > bound:
			broken = append(broken, fmt.Sprintf("%s: %s, bound %g", what, number(value, digits), bound))
		}
	}
	var both *float64
	if r.ClientCPU != nil && r.ServerCPU != nil {
		sum := *r.ClientCPU + *r.ServerCPU
		both = &sum
	}
	check("CPU seconds per 100,000 jobs, client and server", both, b.CPU, 3)
	check("CPU seconds per 100,000 jobs, client", r.ClientCPU, b.ClientCPU, 3)
	check("WAL bytes per job", r.WAL, b.WAL, 1)
	return broken
}
