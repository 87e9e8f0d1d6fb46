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

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/examples/payments"
	"github.com/pacht-queue/pacht/examples/payments/psp"
	"github.com/pacht-queue/pacht/watch"
	"github.com/pacht-queue/pacht/worker"
)

const queue = "payments"

// workerTask is what a worker process is told.
type workerTask struct {
	Name     string  `json:"name"`
	Place    address `json:"place"`
	Provider string  `json:"provider"`
}

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
	defer func() { err = errors.Join(err, place.close()) }()
	provider := psp.NewClient(task.Provider, 5*time.Second)
	defer provider.Close()

	charger := &payments.Charger{Book: place.book, Provider: provider}
	w, err := worker.New(place.store, worker.Config{
		Queues: map[string]int{queue: slots},
		Handlers: []worker.Handler{worker.HandleWith(worker.HandlerOptions{
			Retry: pacht.Exponential{Base: 100 * time.Millisecond, Cap: time.Second},
		}, charger.Handle)},
		Poll:   50 * time.Millisecond,
		Grace:  2 * time.Second,
		Unwind: time.Second,
		// A lease of 2 s is not worth much if its end is noticed after 30.
		Watch:  watch.Config{Period: 500 * time.Millisecond, Poll: 100 * time.Millisecond},
		Logger: slog.New(slog.NewTextHandler(errs, nil)),
	})
	if err != nil {
		return err
	}
	if err := greet(out, greeting{Owner: w.Owner()}); err != nil {
		return err
	}
	return w.Run(ctx)
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
