package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/bench/meter"
)

// Enqueue measures inserts, each durable when its call returns: first one by one from several
// goroutines, then many from an iterator, in constant memory.
type Enqueue struct {
	Singles   int
	Clients   int
	Jobs      int // of the bulk
	ArgsBytes int
}

// EnqueueFigures is one kind of inserts.
type EnqueueFigures struct {
	Jobs      int      `json:"jobs"`
	Seconds   float64  `json:"seconds"`
	JobsPerS  float64  `json:"jobs_per_s"`
	ClientCPU *float64 `json:"client_cpu_s_per_100k"`
	ServerCPU *float64 `json:"server_cpu_s_per_100k"`
	WAL       *float64 `json:"wal_bytes_per_job"`
}

// EnqueueResult is both. PeakRSS is the most memory that this process had resident.
type EnqueueResult struct {
	Single  EnqueueFigures `json:"single"`
	Bulk    EnqueueFigures `json:"bulk"`
	PeakRSS *int64         `json:"peak_rss_bytes"`
	Clients int            `json:"clients"`
	facts   string
}

// Validate refuses settings out of bounds.
func (e Enqueue) Validate() error {
	return errors.Join(
		within("singles", e.Singles, 1, mostJobs),
		within("clients", e.Clients, 1, 1000),
		within("jobs", e.Jobs, 1, mostJobs),
		within("args-bytes", e.ArgsBytes, 1, mostArgs),
	)
}

// Run measures.
func (e Enqueue) Run(ctx context.Context, p *Place) (res EnqueueResult, err error) {
	if err := e.Validate(); err != nil {
		return res, err
	}
	res.Clients = e.Clients
	if res.Single, err = e.measure(ctx, p, e.Singles, e.singles); err != nil {
		return res, err
	}
	bulk := func(ctx context.Context, p *Place) error { return fill(ctx, p, e.Jobs, e.ArgsBytes) }
	if res.Bulk, err = e.measure(ctx, p, e.Jobs, bulk); err != nil {
		return res, err
	}
	if rss, ok := meter.PeakRSS(); ok {
		res.PeakRSS = &rss
	}
	res.facts, err = p.facts(ctx, fmt.Sprintf("args %d bytes", e.ArgsBytes))
	return res, err
}

func (e Enqueue) measure(ctx context.Context, p *Place, n int, do func(context.Context, *Place) error) (f EnqueueFigures, err error) {
	base, err := p.newest(ctx)
	if err != nil {
		return f, err
	}
	m, err := p.meter(ctx)
	if err != nil {
		return f, err
	}
	if err := do(ctx, p); err != nil {
		return f, err
	}
	used, err := m.Stop(ctx)
	if err != nil {
		return f, err
	}
	b, err := p.books(ctx, base)
	if err != nil {
		return f, err
	}
	if b.jobs != int64(n) || b.left != int64(n) {
		return f, fmt.Errorf("enqueued %d jobs, and the tables hold %d with %d leases", n, b.jobs, b.left)
	}
	return EnqueueFigures{
		Jobs: n, Seconds: used.Seconds, JobsPerS: float64(n) / used.Seconds,
		ClientCPU: used.ClientPer100k(n), ServerCPU: used.ServerPer100k(n), WAL: used.WALPerJob(n),
	}, nil
}

// singles makes each client enqueue one job after the other.
func (e Enqueue) singles(ctx context.Context, p *Place) error {
	client := pacht.NewClient(p.store)
	var next atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for range e.Clients {
		g.Go(func() error {
			for n := int(next.Add(1)) - 1; n < e.Singles; n = int(next.Add(1)) - 1 {
				if _, err := client.Enqueue(ctx, sized(n, e.ArgsBytes), pacht.Queue(queue)); err != nil {
					return fmt.Errorf("enqueue job %d: %w", n, err)
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// Table implements Result.
func (r EnqueueResult) Table() Table {
	t := Table{
		Header: []string{"INSERTS", "JOBS", "SECONDS", "JOBS/S", "CLIENT CPU S/100K", "SERVER CPU S/100K", "WAL B/JOB"},
		Facts:  r.facts,
	}
	for _, each := range []struct {
		name string
		EnqueueFigures
	}{{fmt.Sprintf("single, %d at once", r.Clients), r.Single}, {"bulk, from an iterator", r.Bulk}} {
		t.Rows = append(t.Rows, []string{
			each.name, fmt.Sprint(each.Jobs), number(&each.Seconds, 2), number(&each.JobsPerS, 0),
			number(each.ClientCPU, 2), number(each.ServerCPU, 2), number(each.WAL, 0),
		})
	}
	if r.PeakRSS != nil {
		t.Notes = append(t.Notes, fmt.Sprintf("peak memory of this process: %s MB resident", megabytes(r.PeakRSS)))
	}
	return t
}
