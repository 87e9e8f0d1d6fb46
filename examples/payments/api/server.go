// Package api is the HTTP side of the payments example: payments and refunds under idempotency
// keys, the provider's webhooks, and the page to which it sends payers back.
package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/pacht-queue/pacht/examples/payments"
	"github.com/pacht-queue/pacht/examples/payments/psp"
)

// Config of the API. Book, Provider and Secret must be given.
type Config struct {
	Book     *payments.Book
	Provider interface {
		Lookup(ctx context.Context, reference string) ([]psp.Charge, error)
	}
	Secret    string        // of the provider's webhooks
	Tolerance time.Duration // how old a webhook's signature may be; 0 = 5m
	// ChargeWithin is how long a payment may be charged from its creation; 0 = 7 days.
	ChargeWithin time.Duration
	Logger       *slog.Logger // nil = slog.Default()
}

type server struct {
	Config
	log *slog.Logger
}

const (
	maxBody    = 64 << 10
	returnTime = 3 * time.Second // for the provider's answer to the return page
)

// New makes the handler of the whole API.
func New(cfg Config) (http.Handler, error) {
	if cfg.Book == nil || cfg.Provider == nil || cfg.Secret == "" {
		return nil, errors.New("the payments API needs a book, a provider and the secret of its webhooks")
	}
	if cfg.Tolerance == 0 {
		cfg.Tolerance = 5 * time.Minute
	}
	if cfg.ChargeWithin == 0 {
		cfg.ChargeWithin = 7 * 24 * time.Hour
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	s := &server{Config: cfg, log: cfg.Logger}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /payments", s.create)
	mux.HandleFunc("GET /payments/{id}", s.payment)
	mux.HandleFunc("POST /payments/{id}/refunds", s.refund)
	mux.HandleFunc("POST /webhooks/psp", s.webhook)
	mux.HandleFunc("GET /return", s.returned)
	mux.HandleFunc("GET /state", s.state)
	return s.problems(mux), nil
}
