package demo

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/pacht-queue/pacht/examples/payments/api"
	"github.com/pacht-queue/pacht/examples/payments/psp"
)

// hook is the shop's API, to which the provider sends its webhooks.
type hook struct {
	server *http.Server
	ended  chan error
}

// startHook serves the API and tells the provider where it is.
func (r *run) startHook(ctx context.Context) error {
	const secret = "of the demo alone"
	handler, err := api.New(api.Config{Book: r.place.Book, Provider: r.provider, Secret: secret, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	lis, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	r.hook = &hook{server: &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}, ended: make(chan error, 1)}
	go func() { r.hook.ended <- r.hook.server.Serve(lis) }()
	return r.provider.SetWebhook(ctx, psp.Webhook{URL: "http://" + lis.Addr().String() + "/webhooks/psp", Secret: secret})
}

// close cuts what is on its way.
func (h *hook) close() error {
	err := h.server.Close()
	if served := <-h.ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
