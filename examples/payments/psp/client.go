package psp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Client calls the provider. Made by NewClient; closed by Close.
type Client struct {
	base string
	http *http.Client
}

// NewClient makes a client of the provider at base whose calls take at most timeout.
func NewClient(base string, timeout time.Duration) *Client {
	return &Client{base: base, http: &http.Client{Transport: loopback(), Timeout: timeout}}
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Charge takes money, once for each key, however often it is called while the key is
// remembered. Its answer may be Pending. What it answers is what was asked for, or ErrGarbage
// and the charge as far as it could be read.
func (c *Client) Charge(ctx context.Context, key string, o Order) (Charge, error) {
	var charge Charge
	if err := c.move(ctx, "/v1/charges", key, o, &charge); err != nil {
		return charge, err
	}
	if err := charge.check(); err != nil {
		return charge, err
	}
	if charge.Reference != o.Reference {
		return charge, fmt.Errorf("%w: asked for %.80q, got the charge of %.80q", ErrGarbage, o.Reference, charge.Reference)
	}
	return charge, nil
}

// Refund gives money back, once for each key.
func (c *Client) Refund(ctx context.Context, key string, o RefundOrder) (Refund, error) {
	var refund Refund
	if err := c.move(ctx, "/v1/refunds", key, o, &refund); err != nil {
		return refund, err
	}
	if err := refund.check(o.Charge); err != nil {
		return refund, err
	}
	if refund.Reference != o.Reference || refund.Amount != o.Amount {
		return refund, fmt.Errorf("%w: asked for refund %.80q of %s, got %.80q of %s", ErrGarbage, o.Reference, o.Amount, refund.Reference, refund.Amount)
	}
	return refund, nil
}

func (c *Client) move(ctx context.Context, path, key string, order, into any) error {
	body, err := json.Marshal(order)
	if err != nil {
		return fmt.Errorf("%w: encode: %w", ErrRefused, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, bytes.NewReader(body))
	if err != nil { // an address that is none says nothing of the order
		return fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	req.Header.Set("Idempotency-Key", key)
	req.Header.Set("Content-Type", "application/json")
	// The transport would send a request with this header again by itself when a connection
	// breaks. Asking again is the job's decision, and is to be seen in its attempts.
	req.GetBody = nil
	return c.do(req, http.StatusOK, into)
}

// Lookup lists the charges of a reference, oldest first; empty if the provider knows none, now.
// An answer with one that is garbage, or that is another reference's, is an error.
func (c *Client) Lookup(ctx context.Context, reference string) ([]Charge, error) {
	var list struct {
		Charges []Charge `json:"charges"`
	}
	if err := c.get(ctx, "/v1/charges?"+url.Values{"reference": {reference}}.Encode(), &list); err != nil {
		return nil, err
	}
	for _, each := range list.Charges {
		if err := each.check(); err != nil {
			return nil, err
		}
		if each.Reference != reference {
			return nil, fmt.Errorf("%w: asked for %.80q, got the charge of %.80q", ErrGarbage, reference, each.Reference)
		}
	}
	return list.Charges, nil
}

// Refunds lists the refunds of a reference, oldest first. An answer with one that is garbage, or
// that is another reference's, is an error.
func (c *Client) Refunds(ctx context.Context, reference string) ([]Refund, error) {
	var list struct {
		Refunds []Refund `json:"refunds"`
	}
	if err := c.get(ctx, "/v1/refunds?"+url.Values{"reference": {reference}}.Encode(), &list); err != nil {
		return nil, err
	}
	for _, each := range list.Refunds {
		if err := each.check(each.Charge); err != nil {
			return nil, err
		}
		if each.Reference != reference {
			return nil, fmt.Errorf("%w: asked for refund %.80q, got %.80q", ErrGarbage, reference, each.Reference)
		}
	}
	return list.Refunds, nil
}

// List is a page of all charges that were asked for since a time, and the cursor of the next;
// "" = there is none. A charge that is garbage has no Status. If the list has changed before
// the cursor, it is an error, and the list must be read again from its beginning.
func (c *Client) List(ctx context.Context, since time.Time, cursor string) (page []Charge, next string, err error) {
	q := url.Values{"since": {since.UTC().Format(time.RFC3339Nano)}}
	if cursor != "" {
		q.Set("cursor", cursor)
	}
	var list struct {
		Charges []json.RawMessage `json:"charges"`
		Next    string            `json:"next"`
	}
	if err := c.get(ctx, "/v1/charges?"+q.Encode(), &list); err != nil {
		return nil, "", err
	}
	for _, raw := range list.Charges {
		var each Charge
		if err := json.Unmarshal(raw, &each); err != nil || each.check() != nil {
			var name struct {
				ID        string `json:"id"`
				Reference string `json:"reference"`
			}
			_ = json.Unmarshal(raw, &name) // what cannot be read stays empty
			each = Charge{ID: name.ID, Reference: name.Reference}
		}
		page = append(page, each)
	}
	return page, list.Next, nil
}

// Charges lists all charges. It begins again when the list changes while it is read.
func (c *Client) Charges(ctx context.Context) ([]Charge, error) {
	var all []Charge
	cursor := ""
	for tries := 0; ; {
		page, next, err := c.List(ctx, time.Time{}, cursor)
		switch {
		case errors.Is(err, ErrConflict) && tries < 5:
			all, cursor = nil, ""
			tries++
			continue
		case err != nil:
			return nil, err
		}
		all = append(all, page...)
		if cursor = next; cursor == "" {
			return all, nil
		}
	}
}

// Totals sums up the provider's ledger.
func (c *Client) Totals(ctx context.Context) (Totals, error) {
	var t Totals
	return t, c.get(ctx, "/v1/totals", &t)
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
		return failure(err)
	}
	defer func() { err = errors.Join(err, res.Body.Close()) }()
	if res.StatusCode != want {
		return refused(res)
	}
	if into == nil {
		return nil
	}
	if err := json.NewDecoder(res.Body).Decode(into); err != nil {
		return fmt.Errorf("%w: its answer cannot be read: %w", ErrGarbage, err)
	}
	return nil
}
