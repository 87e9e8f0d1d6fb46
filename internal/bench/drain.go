package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/pacht-queue/pacht"
)

// Drain enqueues jobs that do nothing, and then measures how fast workers do all of them: from
// the worker's start to the answer of the last settle.
type Drain struct {
	Jobs        int
	ArgsBytes   int
	Concurrency int // of each worker
	Workers     int // 1 = in this process, more = processes of their own
	Rounds      int
	Snapshot    bool // another session holds a REPEATABLE READ transaction open throughout
	State       State
	Executable  string // this program's file, to start worker processes
}

// DrainRound is the result of one drain. A nil figure is unknown here.
type DrainRound struct {
	Jobs        int      `json:"jobs"`
	Seconds     float64  `json:"seconds"`
	JobsPerS    float64  `json:"jobs_per_s"`
	ClientCPU   *float64 `json:"client_cpu_s_per_100k"`
	ServerCPU   *float64 `json:"server_cpu_s_per_100k"`
	WAL         *float64 `json:"wal_bytes_per_job"`
	ExactlyOnce bool     `json:"exactly_once"`
	// Why is what was found if it was not exactly once.
	Why string `json:"-"`
}

// DrainResult is the median of each figure; with several rounds also these.
type DrainResult struct {
	DrainRound
	Rounds []DrainRound `json:"rounds,omitempty"`
	facts  string
}

// Validate refuses settings out of bounds.
func (d Drain) Validate() error {
	return errors.Join(
		within("jobs", d.Jobs, 1, mostJobs),
		within("args-bytes", d.ArgsBytes, 1, mostArgs),
		within("concurrency", d.Concurrency, 1, 100_000),
		within("workers", d.Workers, 1, 256),
		within("rounds", d.Rounds, 1, 1000),
		d.State.Validate(),
	)
}

// Run measures.
func (d Drain) Run(ctx context.Context, p *Place) (res DrainResult, err error) {
	if err := d.Validate(); err != nil {
		return res, err
	}
	if err := d.State.write(ctx, p); err != nil {
		return res, err
	}
	if d.Snapshot {
		end, err := p.snapshot(ctx)
		if err != nil {
			return res, err
		}
		defer func() { _ = end() }() // a reader's: nothing is lost with it
	}
	var rounds []DrainRound
	for range d.Rounds {
		r, err := d.round(ctx, p)
		if err != nil {
			return res, err
		}
		rounds = append(rounds, r)
	}
	res = DrainResult{DrainRound: medianOf(rounds)}
	if d.Rounds > 1 {
		res.Rounds = rounds
	}
	more := fmt.Sprintf("args %d bytes, TTL %s, concurrency %d, %s, %s", d.ArgsBytes, pacht.DefaultTTL, d.Concurrency, processesOf(d.Workers), d.State.said())
	if d.Snapshot {
		more += ", an open snapshot"
	}
	res.facts, err = p.facts(ctx, more)
	return res, err
}

func processesOf(n int) string {
	if n == 1 {
		return "1 process"
	}
	return fmt.Sprintf("%d processes", n)
}

func (d Drain) round(ctx context.Context, p *Place) (r DrainRound, err error) {
	base, err := p.newest(ctx)
	if err != nil {
		return r, err
	}
	if err := fill(ctx, p, d.Jobs, d.ArgsBytes); err != nil {
		return r, err
	}
	c, err := d.crew(ctx, p)
	if err != nil {
		return r, err
	}
	ended := false
	defer func() {
		if !ended {
			_, stop := c.end()
			err = errors.Join(err, stop)
		}
	}()
	debug.FreeOSMemory() // what the enqueue has left is not the worker's to sweep
	m, err := p.meter(ctx)
	if err != nil {
		return r, err
	}
	if err := c.begin(ctx); err != nil {
		return r, err
	}
	cpu, all, err := await(ctx, c, int64(d.Jobs))
	if err != nil {
		return r, err
	}
	used, err := m.Stop(ctx)
	if err != nil {
		return r, err
	}
	if d.Workers > 1 {
		used.ClientCPU = cpu
	}
	ended = true
	ran, err := c.end()
	if err != nil {
		return r, fmt.Errorf("stop the worker: %w", err)
	}
	books, err := p.books(ctx, base)
	if err != nil {
		return r, err
	}
	r = DrainRound{
		Jobs: d.Jobs, Seconds: used.Seconds, JobsPerS: float64(d.Jobs) / used.Seconds,
		ClientCPU: used.ClientPer100k(d.Jobs), ServerCPU: used.ServerPer100k(d.Jobs), WAL: used.WALPerJob(d.Jobs),
		Why: verdict(ran, d.Jobs, books, false),
	}
	if !all && r.Why == "" {
		r.Why = fmt.Sprintf("nothing happened for %s", stalled.Round(time.Second))
	}
	r.ExactlyOnce = r.Why == ""
	return r, nil
}

func (d Drain) crew(ctx context.Context, p *Place) (crew, error) {
	if d.Workers == 1 {
		return newLocal(p, d.Concurrency, d.Jobs)
	}
	return newProcesses(ctx, p, d.Executable, d.Workers, d.Concurrency, d.Jobs)
}

func medianOf(rounds []DrainRound) DrainRound {
	m := DrainRound{
		Jobs:      rounds[0].Jobs,
		Seconds:   *median(rounds, func(r DrainRound) *float64 { return &r.Seconds }),
		JobsPerS:  *median(rounds, func(r DrainRound) *float64 { return &r.JobsPerS }),
		ClientCPU: median(rounds, func(r DrainRound) *float64 { return r.ClientCPU }),
		ServerCPU: median(rounds, func(r DrainRound) *float64 { return r.ServerCPU }),
		WAL:       median(rounds, func(r DrainRound) *float64 { return r.WAL }),
	}
	for _, r := range rounds {
		if m.Why == "" {
			m.Why = r.Why
		}
	}
	m.ExactlyOnce = m.Why == ""
	return m
}

// Table implements Result.
func (r DrainResult) Table() Table {
	t := Table{
		Header: []string{"ROUND", "JOBS", "SECONDS", "JOBS/S", "CLIENT CPU S/100K", "SERVER CPU S/100K", "WAL B/JOB", "EXACTLY ONCE"},
		Facts:  r.facts,
	}
	for i, round := range r.Rounds {
		t.Rows = append(t.Rows, round.row(fmt.Sprint(i+1)))
	}
	name := "1"
	if len(r.Rounds) > 0 {
		name = "median"
	}
	t.Rows = append(t.Rows, r.row(name))
	if r.Why != "" {
		t.Faults = append(t.Faults, "not exactly once: "+r.Why)
	}
	return t
}

func (r DrainRound) row(name string) []string {
	once := "yes"
	if !r.ExactlyOnce {
		once = "NO"
	}
	return []string{
		name, fmt.Sprint(r.Jobs), number(&r.Seconds, 2), number(&r.JobsPerS, 0),
		number(r.ClientCPU, 2), number(r.ServerCPU, 2), number(r.WAL, 0), once,
	}
}
