package run

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/pacht-queue/pacht/bench/child"
	"github.com/pacht-queue/pacht/bench/peer"
)

// The names of values.
const (
	JobsPerSecond = "jobs_per_s"
	ServerCPU     = "server_cpu_s_per_100k"
	ClientCPU     = "client_cpu_s_per_100k"
	WAL           = "wal_bytes_per_job"
	PeakMemory    = "client_peak_rss_mb" // of the largest process
)

const smallArgs, largeArgs = 200, 1000

// Variants of the drain.
const (
	Small = "200 B"
	Large = "1 kB"
)

var drainScenario = scenario{
	name:   "drain",
	rounds: func(asked int) int { return asked },
	takes:  func(p peer.About) bool { return !p.SQLite && p.Can(peer.Drain) },
	measure: func(b *Bench, ctx context.Context, p peer.About, record func(string, int, map[string]float64, error)) {
		n := jobs(p, b.cfg.Jobs)
		values, err := b.drainFresh(ctx, p, "", n, smallArgs, 1)
		record(Small, n, values, err)
		if p.Kilobyte && ctx.Err() == nil {
			values, err := b.drainFresh(ctx, p, "", n, largeArgs, 1)
			record(Large, n, values, err)
		}
	},
}

// drainFresh fills a fresh database and drains it with so many processes.
func (b *Bench) drainFresh(ctx context.Context, p peer.About, synchronous string, n, bytes, processes int) (values map[string]float64, err error) {
	err = b.fresh(ctx, p, synchronous, func(d *database) error {
		if _, err := b.fill(ctx, d, n, bytes); err != nil {
			return err
		}
		team, err := b.team(ctx, d, n, processes)
		if err != nil {
			return err
		}
		values, err = team.drain(ctx)
		return errors.Join(err, team.end(ctx))
	})
	return values, err
}

// team is processes that drain one queue together.
type team struct {
	b       *Bench
	d       *database
	jobs    int
	members []*process
}

func (b *Bench) team(ctx context.Context, d *database, n, processes int) (*team, error) {
	t := &team{b: b, d: d, jobs: n}
	for i := range processes {
		p, err := b.start(ctx, d.about, child.Task{Do: "work", At: d.at, Jobs: n, Out: t.out(i)})
		if err != nil {
			return nil, errors.Join(err, t.end(ctx))
		}
		t.members = append(t.members, p)
	}
	return t, nil
}

func (t *team) out(i int) string { return fmt.Sprintf("%s-%d", t.d.out, i) }

func (t *team) end(ctx context.Context) error {
	var errs []error
	for _, p := range t.members {
		errs = append(errs, p.end(ctx))
	}
	return errors.Join(errs...)
}

// drain lets all of them run until the database has no unfinished job, and checks that each
// job ran exactly once.
func (t *team) drain(ctx context.Context) (map[string]float64, error) {
	m, err := t.d.meter(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	for _, p := range t.members {
		if err := p.tell("go"); err != nil {
			return nil, err
		}
	}
	ended, err := t.finished(ctx)
	if err != nil {
		return nil, errors.Join(err, t.kill())
	}
	used, err := m.Stop(ctx)
	if err != nil {
		return nil, err
	}
	limit, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var client float64
	var peak int64
	for _, p := range t.members {
		if err := p.tell("stop"); err != nil {
			return nil, err
		}
	}
	for _, p := range t.members {
		r, err := p.report(limit)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("stop: %w", err), t.kill())
		}
		client += r.CPU
		peak = max(peak, r.Peak)
	}
	if err := t.check(); err != nil {
		for _, p := range t.members {
			if said := tail(p.log.String()); said != "" {
				return nil, fmt.Errorf("%w; it said:\n%s", err, said)
			}
		}
		return nil, err
	}
	values := map[string]float64{
		JobsPerSecond: float64(t.jobs) / ended.Sub(began).Seconds(),
		ClientCPU:     client * 100_000 / float64(t.jobs),
		PeakMemory:    float64(peak) / (1 << 20),
	}
	if v := used.ServerPer100k(t.jobs); v != nil {
		values[ServerCPU] = *v
	}
	if v := used.WALPerJob(t.jobs); v != nil {
		values[WAL] = *v
	}
	return values, nil
}

// finished waits until as many handlers were called as there are jobs, and then until the
// database has none unfinished. It answers when the look that found none began.
func (t *team) finished(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, t.b.patience)
	defer cancel()
	handled := make([]int, len(t.members))
	for sum(handled) < t.jobs {
		i, l, err := t.listen(ctx)
		if err != nil {
			return time.Time{}, fmt.Errorf("%d of %d jobs had run: %w", sum(handled), t.jobs, err)
		}
		if l.word == "handled" {
			if _, err := fmt.Sscan(l.rest, &handled[i]); err != nil {
				return time.Time{}, fmt.Errorf("it said %q: %w", l.rest, err)
			}
		}
	}
	for {
		at := time.Now()
		left, err := t.d.left(ctx)
		if err != nil {
			return at, fmt.Errorf("all jobs had run: %w", err)
		}
		if !left {
			return at, nil
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// listen takes the next line that any of them says.
func (t *team) listen(ctx context.Context) (int, line, error) {
	cases := []reflect.SelectCase{{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ctx.Done())}}
	for _, p := range t.members {
		cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(p.said)})
	}
	chosen, value, ok := reflect.Select(cases)
	switch {
	case chosen == 0:
		return 0, line{}, fmt.Errorf("not done after %s: %w", t.b.patience, context.Cause(ctx))
	case !ok:
		return 0, line{}, fmt.Errorf("process %d ended", chosen)
	}
	return chosen - 1, value.Interface().(line), nil
}

func (t *team) kill() error {
	var errs []error
	for _, p := range t.members {
		errs = append(errs, p.cmd.Process.Kill())
	}
	return errors.Join(errs...)
}

// check adds up what all of them wrote: each job must have run exactly once.
func (t *team) check() error {
	ran := make([]int, t.jobs)
	for i := range t.members {
		counts, err := child.ReadCounts(t.out(i), t.jobs)
		if err != nil {
			return err
		}
		for job, n := range counts {
			ran[job] += int(n)
		}
	}
	never, again := 0, 0
	for _, n := range ran {
		switch {
		case n == 0:
			never++
		case n > 1:
			again++
		}
	}
	if never > 0 || again > 0 {
		return fmt.Errorf("of %d jobs %d never ran and %d ran more than once", t.jobs, never, again)
	}
	return nil
}

func sum(numbers []int) (total int) {
	for _, n := range numbers {
		total += n
	}
	return total
}
