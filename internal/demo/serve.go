package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/effect"
	"github.com/pacht-queue/pacht/examples/payments"
	"github.com/pacht-queue/pacht/examples/payments/psp"
	"github.com/pacht-queue/pacht/watch"
	"github.com/pacht-queue/pacht/worker"
)

const queue = "payments"

// workerTask is what a worker process is told.
type workerTask struct {
	Name     string           `json:"name"`
	Place    payments.Address `json:"place"`
	Provider string           `json:"provider"`
}

// promises is what the provider's contract says.
var promises = payments.Promises{KeyLife: time.Hour, Consistency: consistency, MinLease: ttl / 2}

// ServeWorker is the worker process: see child for how it is spoken to. It ends in order when
// it is asked to, or when its parent is gone.
func ServeWorker(ctx context.Context, in io.Reader, out, errs io.Writer) (err error) {
	ctx, task, cancel, err := receive[workerTask](ctx, in)
	if err != nil {
		return err
	}
	defer cancel()
	place, err := openPlace(ctx, task.Place)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, place.Close()) }()
	// More patient than the provider is silent: it cuts calls that get no answer.
	provider := psp.NewClient(task.Provider, time.Minute)
	defer provider.Close()
	logger := slog.New(slog.NewTextHandler(errs, nil))

	effects := effect.New(place.Store)
	h, err := payments.NewHandlers(place.Book, provider, place.Store, effects, promises)
	if err != nil {
		return err
	}
	r, err := newReconciler(place, provider, effects, patient, logger)
	if err != nil {
		return err
	}
	retry := worker.HandlerOptions{Retry: pacht.Exponential{Base: 100 * time.Millisecond, Cap: time.Second}}
	w, err := worker.New(place.Store, worker.Config{
		Queues: map[string]int{queue: slots},
		Handlers: []worker.Handler{
			worker.HandleWith(retry, h.Charge), worker.HandleWith(retry, h.Refund), worker.HandleWith(retry, h.Receipt),
			worker.HandleWith(retry, h.Parked), worker.HandleWith(retry, h.Misfit), worker.Handle(r.Handle),
		},
		Poll:   50 * time.Millisecond,
		Grace:  2 * time.Second,
		Unwind: time.Second,
		// A lease of 2 s is not worth much if its end is noticed after 30.
		Watch:  watch.Config{Period: 500 * time.Millisecond, Poll: 100 * time.Millisecond},
		Logger: logger,
	})
	if err != nil {
		return err
	}
	if err := greet(out, greeting{Owner: w.Owner()}); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return w.Run(ctx) })
	g.Go(func() error { return r.Run(ctx) })
	return g.Wait()
}

// ServeProvider is the provider's process.
func ServeProvider(ctx context.Context, in io.Reader, out io.Writer) (err error) {
	ctx, cfg, cancel, err := receive[psp.Config](ctx, in)
	if err != nil {
		return err
	}
	defer cancel()
	server, err := psp.Open(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	return server.Serve(ctx, func(url string) error { return greet(out, greeting{URL: url}) })
}

// receive reads the task from the first line. The context that it returns ends with a signal,
// and with the input: whoever started us is gone then.
func receive[T any](ctx context.Context, in io.Reader) (_ context.Context, task T, cancel func(), err error) {
	r := bufio.NewReader(in)
	line, err := r.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &task)
	}
	if err != nil {
		return nil, task, nil, fmt.Errorf("read the task from standard input; this command is for the demo's own use: %w", err)
	}
	ctx, cancel = signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		// Blocks until the parent is gone, and ends with this process otherwise.
		_, _ = io.Copy(io.Discard, r)
		cancel()
	}()
	return ctx, task, cancel, nil
}

func greet(out io.Writer, g greeting) error {
	line, err := json.Marshal(g)
	if err == nil {
		_, err = out.Write(append(line, '\n'))
	}
	return err
}
