package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/pacht-queue/pacht/internal/bench/meter"
	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/internal/database"
)

// ServeWorker is the worker process: see process for how it is spoken to. It ends when it is
// told to, or when its parent is gone.
func ServeWorker(ctx context.Context, in io.Reader, out, errs io.Writer) (err error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	var t task
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &t) != nil {
		return errors.New("no task on standard input; this command is for the benchmark's own use")
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	store, err := database.OpenExisting(ctx, t.URL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	p := &Place{store: store, log: slog.New(slog.NewTextHandler(errs, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	c, err := newLocal(p, t.Concurrency, t.Jobs)
	if err != nil {
		return err
	}
	tell := teller{out: json.NewEncoder(out)}
	if err := tell.news(news{Ready: true}); err != nil {
		return err
	}
	orders := make(chan string)
	go func() { // ends with the input, or with this process
		defer close(orders)
		for lines.Scan() {
			orders <- lines.Text()
		}
	}()
	return serve(ctx, c, orders, &tell)
}

func serve(ctx context.Context, c *local, orders <-chan string, tell *teller) error {
	cpu, _ := meter.OwnCPU()
	counting, stop := context.WithCancel(ctx)
	var counter sync.WaitGroup
	finish := func() error {
		stop()
		counter.Wait()
		_, err := c.end()
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return finish()
		case order, ok := <-orders:
			var err error
			switch {
			case !ok:
				return finish()
			case order == orderBegin:
				cpu, _ = meter.OwnCPU()
				counter.Go(func() { tell.counts(counting, c) })
				err = c.begin(ctx)
			case order == orderSettle:
				if _, err = c.settled(ctx); err == nil {
					err = tell.news(news{Settled: true, CPU: cpuSince(cpu)})
				}
			case order == orderEnd:
				if err := finish(); err != nil {
					return err
				}
				return tell.news(news{Final: true, Runs: c.runs.compact(), Strange: c.runs.strange.Load()})
			default:
				err = fmt.Errorf("unknown order %q", order)
			}
			if err != nil {
				return errors.Join(err, finish())
			}
		}
	}
}

// teller writes news, one at a time.
type teller struct {
	mu  sync.Mutex
	out *json.Encoder
}

func (t *teller) news(n news) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.out.Encode(n)
}

// tellEvery is how often a worker process says how many handlers have run: an error of the time
// measured. More often, and with many processes it shows in their CPU seconds.
const tellEvery = 10 * time.Millisecond

// counts says how many handlers have run, whenever that has changed.
func (t *teller) counts(ctx context.Context, c *local) {
	var last int64
	for clock.Sleep(ctx, tellEvery) == nil {
		ran := c.runs.total.Load() + c.runs.strange.Load()
		if ran == last {
			continue
		}
		if t.news(news{Ran: ran}) != nil {
			return // the parent is gone: the input says so too
		}
		last = ran
	}
}
