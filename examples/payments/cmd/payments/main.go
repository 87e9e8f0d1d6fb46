// Command payments serves the payments example: an API, a worker and the reconciler, on a SQLite
// file or on PostgreSQL. Start the provider first:
//
//	go run ./examples/payments/cmd/psp
//	go run ./examples/payments/cmd/payments
//	curl -i localhost:8480/payments -H 'Idempotency-Key: 1' -H 'Content-Type: application/json' \
//	    -d '{"amount":{"amount_minor":1999,"currency":"EUR"},"payer":"ann"}'
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/pacht-queue/pacht/examples/payments"
	"github.com/pacht-queue/pacht/examples/payments/psp"
	"github.com/pacht-queue/pacht/examples/payments/service"
	"github.com/pacht-queue/pacht/reconcile"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "payments:", err)
		os.Exit(1)
	}
}

func run() error {
	cfg := service.Config{
		// What the simulated provider promises; a contract says it of a real one.
		Promises:  payments.Promises{KeyLife: 24 * time.Hour, Consistency: 5 * time.Second},
		Reconcile: reconcile.Config{Grace: 10 * time.Second, Period: 5 * time.Second, SlowPeriod: time.Minute, ListPeriod: time.Minute},
	}
	flag.StringVar(&cfg.Address.File, "file", "payments.db", "the SQLite file")
	flag.StringVar(&cfg.Address.Postgres, "postgres", "", "the URL of a PostgreSQL database, instead of the file")
	flag.StringVar(&cfg.Address.Schema, "schema", "pacht", "the schema on PostgreSQL")
	flag.StringVar(&cfg.Listen, "listen", "127.0.0.1:8480", "where to serve the API")
	flag.StringVar(&cfg.Provider, "provider", "http://127.0.0.1:8481", "the URL of the provider")
	flag.Parse()
	if cfg.Secret = os.Getenv("PSP_SECRET"); cfg.Secret == "" {
		cfg.Secret = "secret of the simulator" // as cmd/psp has it by default
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return service.Run(ctx, cfg, func(url string) error {
		fmt.Println("payments at", url)
		provider := psp.NewClient(cfg.Provider, 5*time.Second)
		defer provider.Close()
		if err := provider.SetWebhook(ctx, psp.Webhook{URL: url + "/webhooks/psp", Secret: cfg.Secret}); err != nil {
			return errors.Join(err, errors.New("is the provider running? go run ./examples/payments/cmd/psp"))
		}
		return nil
	})
}
