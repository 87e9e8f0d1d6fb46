package psp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// What callers of the provider branch on.
var (
	// ErrDeclined: refused for good. Nothing was charged, and nothing will be.
	ErrDeclined = errors.New("declined by the provider")
	// ErrRefused: the request itself is wrong, or its key was used for another one. Sending
	// it again gives the same answer.
	ErrRefused = errors.New("refused by the provider")
	// ErrUnanswered: no answer, or one that does not say what happened. It may have been
	// charged or not; with the same key it is safe to ask again.
	ErrUnanswered = errors.New("no answer from the provider")
)

// Client calls the provider. Made by NewClient; closed by Close.
type Client struct {
	base string
	http *http.Client
}

// NewClient makes a client of the provider at base whose calls take at most timeout.
func NewClient(base string, timeout time.Duration) *Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil // the provider is on the loopback
	transport.MaxIdleConnsPerHost = 64
	return &Client{base: base, http: &http.Client{Transport: transport, Timeout: timeout}}
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Charge takes money, once for each key, however often it is called. Its errors are
// ErrDeclined, ErrRefused and ErrUnanswered.
func (c *Client) Charge(ctx context.Context, key string, charge Charge) (Entry, error) {
	body, err := json.Marshal(charge)
	if err != nil {
		return Entry{}, fmt.Errorf("encode a charge: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/v1/charges", bytes.NewReader(body))
	if err != nil {
		return Entry{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	req.Header.Set("Idempotency-Key", key)
	req.Header.Set("Content-Type", "application/json")
	// The transport would send a request with this header again by itself when a connection
	// breaks. Asking again is the job's decision, and is to be seen in its attempts.
	req.GetBody = nil
	var entry Entry
	return entry, c.do(req, http.StatusOK, &entry)
}

// Lookup lists what was charged for a reference; empty if nothing was.
func (c *Client) Lookup(ctx context.Context, reference string) ([]Entry, error) {
	return c.charges(ctx, "?"+url.Values{"reference": {reference}}.Encode())
}

// Charges lists all charges, in order.
func (c *Client) Charges(ctx context.Context) ([]Entry, error) { return c.charges(ctx, "") }

func (c *Client) charges(ctx context.Context, query string) ([]Entry, error) {
	var list struct {
		Charges []Entry `json:"charges"`
	}
	err := c.get(ctx, "/v1/charges"+query, &list)
	return list.Charges, err
}

// Totals sums up the provider's ledger.
func (c *Client) Totals(ctx context.Context) (Totals, error) {
	var t Totals
	return t, c.get(ctx, "/v1/totals", &t)
}

// Release lets answers go out that Config.HoldAnswers holds back.
func (c *Client) Release(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/simulator/release", nil)
	if err != nil {
		return err
	}
	return c.do(req, http.StatusNoContent, nil)
}

func (c *Client) get(ctx context.Context, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return err
	}
	return c.do(req, http.StatusOK, into)
}

func (c *Client) do(req *http.Request, want int, into any) (err error) {
	res, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnanswered, err)
	}
	defer func() { err = errors.Join(err, res.Body.Close()) }()
	if res.StatusCode != want {
		return refusal(res)
	}
	if into == nil {
		return nil
	}
	if err := json.NewDecoder(res.Body).Decode(into); err != nil {
		return fmt.Errorf("%w: its answer broke off: %w", ErrUnanswered, err)
	}
	return nil
}

func refusal(res *http.Response) error {
	var p problem
	if err := json.NewDecoder(io.LimitReader(res.Body, maxBody)).Decode(&p); err != nil {
		p.Message = "with no reason that can be read"
	}
	class := ErrRefused
	switch {
	case res.StatusCode == http.StatusPaymentRequired:
		class = ErrDeclined
	case res.StatusCode >= 500 || res.StatusCode == http.StatusTooManyRequests:
		class = ErrUnanswered
	}
	return fmt.Errorf("%w: %d %s: %s", class, res.StatusCode, p.Code, p.Message)
}
