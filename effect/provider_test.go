package effect_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/effect"
)

// provider is a payment provider behind HTTP: a charge for each key, found by its reference.
type provider struct {
	*httptest.Server
	client  *http.Client
	calls   counter // that reached it
	lookups counter

	mu      sync.Mutex
	charges map[string]string // by key: the receipt's id
	found   map[string]string // by reference: the same
	keys    []string          // of all calls

	// Behaviour. before answers whether the request is at an end before anything is done; after,
	// whether it is once the charge is made.
	before, after func(w http.ResponseWriter) bool
	hidden        bool // look-ups find nothing
}

func newProvider(t *testing.T) *provider {
	p := &provider{charges: map[string]string{}, found: map[string]string{}}
	p.Server = httptest.NewServer(p)
	p.client = p.Server.Client()
	t.Cleanup(func() {
		p.client.CloseIdleConnections()
		p.Server.Close()
	})
	return p
}

// set changes how it behaves.
func (p *provider) set(change func(p *provider)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

func (p *provider) charged() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.charges)
}

// oneKey asserts that all calls bore the same key.
func (p *provider) oneKey(t testing.TB, want string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, key := range p.keys {
		if key != want || len(key) < 20 {
			t.Errorf("keys of calls %q, the stored one is %q", p.keys, want)
		}
	}
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		p.lookups.add()
		p.mu.Lock()
		id, ok := p.found[strings.TrimPrefix(r.URL.Path, "/")]
		ok = ok && !p.hidden
		p.mu.Unlock()
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_ = json.NewEncoder(w).Encode(receipt{ID: id})
		return
	}
	p.calls.add()
	var call effect.Call
	if err := json.NewDecoder(r.Body).Decode(&call); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	p.keys = append(p.keys, call.Key)
	before, after := p.before, p.after
	p.mu.Unlock()
	if before != nil && before(w) {
		return
	}
	p.mu.Lock()
	if p.charges[call.Key] == "" {
		p.charges[call.Key] = fmt.Sprint("ch_", len(p.charges)+1)
	}
	id := p.charges[call.Key]
	p.found[call.Reference] = id
	p.mu.Unlock()
	if after != nil && after(w) {
		return
	}
	_ = json.NewEncoder(w).Encode(receipt{ID: id})
}

// hangUp ends the connection without an answer.
func hangUp(w http.ResponseWriter) bool {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = conn.Close()
	}
	return true
}

// charge is the call of these tests, and classes what it can.
func (p *provider) charge(ctx context.Context, call effect.Call) (r receipt, err error) {
	body, err := json.Marshal(call)
	if err != nil {
		return r, effect.NotSent(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, bytes.NewReader(body))
	if err != nil {
		return r, effect.NotSent(err)
	}
	resp, err := p.client.Do(req)
	if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" {
		return r, effect.NotSent(err)
	}
	if err != nil {
		return r, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
		return r, json.NewDecoder(resp.Body).Decode(&r)
	case http.StatusPaymentRequired:
		return r, effect.Rejected(errors.New("declined"))
	case http.StatusTooManyRequests:
		return r, effect.RejectedForNow(time.Hour, errors.New("too many requests"))
	}
	return r, errors.New(resp.Status)
}

// probe is the look-up of these tests.
func (p *provider) probe(ctx context.Context, e pacht.Effect) (v effect.Verdict[receipt], err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL+"/"+e.Reference, nil)
	if err != nil {
		return v, err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return v, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
		v.State = effect.Succeeded
		return v, json.NewDecoder(resp.Body).Decode(&v.Result)
	case http.StatusNotFound:
		v.State = effect.NotFound
		_, err = io.Copy(io.Discard, resp.Body)
	}
	return v, err
}
