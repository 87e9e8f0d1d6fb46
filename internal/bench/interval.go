package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pacht-queue/pacht/internal/clock"
)

// intervalCounts is what gathers during an interval.
type intervalCounts struct {
	enqueued, done, pruned int
	took                   []time.Duration // from the enqueue's begin to the settle's answer
	slowest                time.Duration   // of the enqueue calls
	claims                 int
	claiming               time.Duration
}

// SteadyInterval is one line of a steady state. Sizes are in bytes, with indexes; nil where the
// database does not tell tables apart. On SQLite File is the size of the file.
type SteadyInterval struct {
	At       float64  `json:"at_s"`
	Enqueued int      `json:"enqueued"`
	Done     int      `json:"done"`
	Pruned   int      `json:"pruned"`
	P50      float64  `json:"p50_ms"`
	P99      float64  `json:"p99_ms"`
	Claim    *float64 `json:"claim_ms"`       // mean of the probe's claims
	Enqueue  float64  `json:"enqueue_max_ms"` // the slowest enqueue call
	Leases   *int64   `json:"leases_bytes"`
	Jobs     *int64   `json:"jobs_bytes"`
	Attempts *int64   `json:"attempts_bytes"`
	File     *int64   `json:"file_bytes"`
}

// SteadyResult is all of them, and what became of the figures from the first third to the last:
// 1 is flat. A ratio is nil with fewer than three intervals.
type SteadyResult struct {
	Jobs        int              `json:"jobs"`
	ExactlyOnce bool             `json:"exactly_once"`
	P99Ratio    *float64         `json:"p99_last_to_first"`
	ClaimRatio  *float64         `json:"claim_last_to_first"`
	LeasesRatio *float64         `json:"leases_bytes_last_to_first"`
	Intervals   []SteadyInterval `json:"intervals"`
	why         string
	dropped     int
	facts       string
}

// close ends an interval and begins the next.
func (r *steadyRun) close(ctx context.Context) (i SteadyInterval, err error) {
	r.mu.Lock()
	n := r.interval
	r.interval = intervalCounts{}
	r.mu.Unlock()
	slices.Sort(n.took)
	i = SteadyInterval{
		At: clock.Since(r.epoch).Seconds(), Enqueued: n.enqueued, Done: n.done, Pruned: n.pruned,
		P50: ms(quantile(n.took, 0.5)), P99: ms(quantile(n.took, 0.99)), Enqueue: ms(n.slowest),
	}
	if n.claims > 0 {
		mean := ms(n.claiming) / float64(n.claims)
		i.Claim = &mean
	}
	size := func(table string) *int64 {
		var bytes int64
		if err == nil {
			err = r.p.tables.row(ctx, r.p.sql.Size, []any{r.p.schema + table}, &bytes)
		}
		return &bytes
	}
	if r.p.onPostgres() {
		i.Leases, i.Jobs, i.Attempts = size("leases"), size("jobs"), size("attempts")
	} else {
		i.File = size("leases")
	}
	if err != nil {
		return i, fmt.Errorf("measure the tables: %w", err)
	}
	return i, nil
}

// flatness compares the last third of the intervals with the first.
func (r *SteadyResult) flatness() {
	r.P99Ratio = lastToFirst(r.Intervals, func(i SteadyInterval) *float64 { return &i.P99 })
	r.ClaimRatio = lastToFirst(r.Intervals, func(i SteadyInterval) *float64 { return i.Claim })
	r.LeasesRatio = lastToFirst(r.Intervals, func(i SteadyInterval) *float64 {
		if i.Leases == nil {
			return nil
		}
		bytes := float64(*i.Leases)
		return &bytes
	})
}

func lastToFirst(list []SteadyInterval, of func(SteadyInterval) *float64) *float64 {
	third := len(list) / 3
	first, last := mean(list[:third], of), mean(list[len(list)-third:], of)
	if first == nil || last == nil || *first == 0 {
		return nil
	}
	ratio := *last / *first
	return &ratio
}

// mean leaves out intervals without the figure; nil if none has it.
func mean(list []SteadyInterval, of func(SteadyInterval) *float64) *float64 {
	sum, n := 0.0, 0
	for _, i := range list {
		if v := of(i); v != nil {
			sum, n = sum+*v, n+1
		}
	}
	if n == 0 {
		return nil
	}
	sum /= float64(n)
	return &sum
}

// Table implements Result.
func (r SteadyResult) Table() Table {
	t := Table{Header: steadyHeader, Facts: r.facts}
	for _, i := range r.Intervals {
		t.Rows = append(t.Rows, i.Row())
	}
	for _, each := range []struct {
		what  string
		ratio *float64
	}{{"p99", r.P99Ratio}, {"time of a claim", r.ClaimRatio}, {"size of leases", r.LeasesRatio}} {
		if each.ratio != nil {
			t.Notes = append(t.Notes, fmt.Sprintf("%s, last third to first third: %s (1 is flat)", each.what, number(each.ratio, 2)))
		}
	}
	if r.dropped > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("%d events did not reach the benchmark: done is higher than it says", r.dropped))
	}
	if r.why != "" {
		t.Faults = append(t.Faults, "not exactly once: "+r.why)
	}
	return t
}

var steadyHeader = []string{"AT S", "ENQUEUED", "DONE", "PRUNED", "P50 MS", "P99 MS", "CLAIM MS", "SLOWEST ENQUEUE MS", "LEASES MB", "JOBS MB", "ATTEMPTS MB", "FILE MB"}

// Row is the interval's line in the table.
func (i SteadyInterval) Row() []string {
	return []string{
		number(&i.At, 1), fmt.Sprint(i.Enqueued), fmt.Sprint(i.Done), fmt.Sprint(i.Pruned), number(&i.P50, 1), number(&i.P99, 1),
		number(i.Claim, 2), number(&i.Enqueue, 1), megabytes(i.Leases), megabytes(i.Jobs), megabytes(i.Attempts), megabytes(i.File),
	}
}
