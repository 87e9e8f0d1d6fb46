package psp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/pacht-queue/pacht/internal/clock"
)

// Webhook says where events go.
type Webhook struct {
	URL    string `json:"url"` // "" = nowhere
	Secret string `json:"secret"`
}

func (w Webhook) check() error {
	if w.URL == "" {
		return nil
	}
	u, err := url.Parse(w.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("webhook url: %.80q is not allowed, want http://HOST/PATH", w.URL)
	}
	if w.Secret == "" {
		return fmt.Errorf("webhook secret: it is empty, and %s could not tell who sends", w.URL)
	}
	return nil
}

// deliveries is how often an event is sent until somebody takes it.
const deliveries = 8

// deliver sends an event until it is taken, or it has been tried often enough.
func (s *Server) deliver(e outgoing) error {
	hook := s.hook.Load()
	if hook.URL == "" {
		return nil
	}
	body, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode event %s: %w", e.ID, err)
	}
	for try := range deliveries {
		if err = s.post(*hook, body); err == nil {
			return nil
		}
		if clock.Sleep(s.ctx, 50*time.Millisecond<<try) != nil {
			return nil // the provider is closing: the event is lost
		}
	}
	return fmt.Errorf("event %s was not taken after %d deliveries: %w", e.ID, deliveries, err)
}

func (s *Server) post(hook Webhook, body []byte) error {
	req, err := http.NewRequestWithContext(s.ctx, http.MethodPost, hook.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(SignatureHeader, Sign(hook.Secret, clock.Now().Time(), body))
	res, err := s.out.Do(req)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxBody)) // so that the connection can be used again
	if err := res.Body.Close(); err != nil {
		return err
	}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return fmt.Errorf("answered with %s", res.Status)
	}
	return nil
}

// later does something after a while, unless the provider is closed before.
func (s *Server) later(after time.Duration, do func() error) {
	s.closing.RLock()
	defer s.closing.RUnlock()
	if s.ctx.Err() != nil {
		return
	}
	s.pending.Go(func() {
		if clock.Sleep(s.ctx, after) != nil {
			return
		}
		if err := do(); err != nil && s.ctx.Err() == nil {
			slog.Warn("provider", "error", err)
		}
	})
}
