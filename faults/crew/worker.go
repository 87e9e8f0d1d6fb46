package crew

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/watch"
	"github.com/pacht-queue/pacht/worker"
)

// Handler is what a worker does with tasks.
type Handler = func(context.Context, *pacht.Job[Task]) error

// Handlers makes it the only one.
func Handlers(fn Handler) []worker.Handler { return []worker.Handler{worker.Handle(fn)} }

// Config has short times, one queue, and a watcher.
func Config(queue string, slots int, fn Handler) worker.Config {
	return worker.Config{
		Queues:   map[string]int{queue: slots},
		Handlers: Handlers(fn),
		Poll:     50 * time.Millisecond, Grace: 5 * time.Second,
		Watch:  watch.Config{Period: 200 * time.Millisecond, Poll: 100 * time.Millisecond, AfterOutage: 200 * time.Millisecond},
		Logger: slog.New(slog.DiscardHandler),
	}
}

// Running is a worker in this process.
type Running struct {
	*worker.Worker
	stop context.CancelFunc
	done chan struct{}
	err  error
	told bool // the test knows what Run said
}

// Start runs a worker until End, or until the test ends: then it fails the test if Run says that
// something was not finished.
func Start(t testing.TB, s pacht.Store, cfg worker.Config) *Running {
	t.Helper()
	w, err := worker.New(s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &Running{Worker: w, stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.err = w.Run(ctx)
	}()
	t.Cleanup(func() {
		if told, err := r.told, r.End(); err != nil && !told {
			t.Errorf("worker %s: %v", w.Owner(), err)
		}
	})
	return r
}

// End stops it in order, and answers what Run said.
func (r *Running) End() error {
	r.stop()
	<-r.done
	r.told = true
	return r.err
}
