// Command payments serves the payments example: an API, a worker and the reconciler, on a SQLite
// file or on PostgreSQL. Start the provider first:
//
//	go run ./examples/payments/cmd/psp
//	go run ./examples/payments/cmd/payments
//	curl -i localhost:8480/payments -H 'Idempotency-Key: 1' -H 'Content-Type: application/json' \
//	    -d '{"amount":{"amount_minor":1999,"currency":"EUR"},"payer":"ann"}'
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
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
	cfg, err := parse(os.Args[1:], os.Getenv(secretVariable), os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil: // it was told
		os.Exit(2)
	}
	if err := run(cfg); err != nil {
		fmt.Fprintln(os.Stderr, "payments:", err)
		os.Exit(1)
	}
}

const (
	secretVariable = "PSP_SECRET"
	defaultSecret  = "secret of the simulator"
)

const usage = `An API, a worker and the reconciler for payments, in one process.

Environment:
  %s
    	the secret that signs the provider's webhooks; this process tells it to the
    	simulated provider (default %q)

Flags:
`

// parse reads the command line, and tells out what is wrong with it.
func parse(args []string, secret string, out io.Writer) (service.Config, error) {
	cfg := service.Config{
		Secret: cmp.Or(secret, defaultSecret),
		// What the simulated provider promises; a contract says it of a real one.
		Promises:  payments.Promises{KeyLife: 24 * time.Hour, Consistency: 5 * time.Second},
		Reconcile: reconcile.Config{Grace: 10 * time.Second, Period: 5 * time.Second, SlowPeriod: time.Minute, ListPeriod: time.Minute},
	}
	flags := flag.NewFlagSet("payments", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&cfg.Address.File, "file", "payments.db", "the SQLite `file`")
	flags.StringVar(&cfg.Address.Postgres, "postgres", "", "the `URL` of a PostgreSQL database, instead of the file")
	flags.StringVar(&cfg.Address.Schema, "schema", "pacht", "the `schema` on PostgreSQL")
	flags.StringVar(&cfg.Listen, "listen", "127.0.0.1:8480", "the `address` to serve the API at")
	cfg.Provider = "http://127.0.0.1:8481"
	flags.Func("provider", fmt.Sprintf("the `URL` of the provider (default %q)", cfg.Provider), func(s string) error {
		u, err := url.Parse(s)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return errors.New("want a URL like http://127.0.0.1:8481")
		}
		cfg.Provider = s
		return nil
	})
	flags.Usage = func() {
		fmt.Fprintf(out, usage, secretVariable, defaultSecret)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return cfg, err
	}
	if flags.NArg() > 0 {
		err := fmt.Errorf("unexpected argument %q: there are only flags", flags.Arg(0))
		fmt.Fprintln(out, "payments:", err)
		return cfg, err
	}
	return cfg, nil
}

func run(cfg service.Config) error {
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
