// Package service puts the payments example together: the API, a worker, and the reconciler, in
// one process. Any number of them may run on one database.
package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pacht-queue/pacht/effect"
	"github.com/pacht-queue/pacht/examples/payments"
	"github.com/pacht-queue/pacht/examples/payments/api"
	"github.com/pacht-queue/pacht/examples/payments/psp"
	"github.com/pacht-queue/pacht/reconcile"
	"github.com/pacht-queue/pacht/worker"
)

// Config of the service. Address, Provider and Secret must be given.
type Config struct {
	Address  payments.Address
	Listen   string // "" = a free port of the loopback
	Provider string // the URL of the provider
	Secret   string // of its webhooks
	Promises payments.Promises
	Timeout  time.Duration // of a call to the provider; 0 = 10s
	Slots    int           // jobs at once; 0 = 8
	// Reconcile says how often to look and what to do; its Store, Ours, Theirs, Effects and
	// Logger are filled in.
	Reconcile reconcile.Config
	Worker    worker.Config // likewise: Queues, Handlers and Logger
	Logger    *slog.Logger  // nil = slog.Default()
}

// Queue is the queue of all jobs of the service.
const Queue = "payments"

// Run serves until ctx ends, and tells ready the address of the API.
func Run(ctx context.Context, cfg Config, ready func(url string) error) (err error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 10 * time.Second
	}
	if cfg.Slots == 0 {
		cfg.Slots = 8
	}
	place, err := payments.Open(ctx, cfg.Address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, place.Close()) }()
	if err := place.Migrate(ctx); err != nil {
		return err
	}
	place.Book.Queue = Queue
	provider := psp.NewClient(cfg.Provider, cfg.Timeout)
	defer provider.Close()

	w, r, err := actors(cfg, place, provider)
	if err != nil {
		return err
	}
	handler, err := api.New(api.Config{Book: place.Book, Provider: provider, Secret: cfg.Secret, Logger: cfg.Logger})
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return w.Run(ctx) })
	g.Go(func() error { return r.Run(ctx) })
	g.Go(func() error { return serve(ctx, cfg, handler, ready) })
	return g.Wait()
}

// actors makes the worker and the reconciler, whose passes are jobs of the worker.
func actors(cfg Config, place *payments.Place, provider *psp.Client) (*worker.Worker, *reconcile.Reconciler, error) {
	effects := effect.New(place.Store)
	h, err := payments.NewHandlers(place.Book, provider, place.Store, effects, cfg.Promises)
	if err != nil {
		return nil, nil, err
	}
	rc := cfg.Reconcile
	rc.Store, rc.Ours, rc.Theirs, rc.Effects = place.Store, payments.Ours{Book: place.Book}, payments.Theirs{Provider: provider}, effects
	rc.Queue, rc.Logger = Queue, cfg.Logger
	r, err := reconcile.New(rc)
	if err != nil {
		return nil, nil, err
	}
	wc := cfg.Worker
	wc.Queues, wc.Logger = map[string]int{Queue: cfg.Slots}, cfg.Logger
	wc.Handlers = append(h.All(), worker.Handle(r.Handle))
	w, err := worker.New(place.Store, wc)
	return w, r, err
}

func serve(ctx context.Context, cfg Config, handler http.Handler, ready func(url string) error) error {
	address := cfg.Listen
	if address == "" {
		address = "127.0.0.1:0"
	}
	lis, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("serve payments: %w", err)
	}
	srv := &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second,
		ErrorLog: slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(lis) }()
	err = ready("http://" + lis.Addr().String())
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-ended:
			return fmt.Errorf("serve payments: %w", err)
		}
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	stopping := srv.Shutdown(grace)
	if stopping != nil {
		stopping = errors.Join(stopping, srv.Close())
	}
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return errors.Join(err, stopping)
}
