package psp

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// hook receives webhooks, and refuses the first ones.
type hook struct {
	mu     sync.Mutex
	refuse int
	events []Event
	bad    []error
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = Verify("s3cret", r.Header.Get(SignatureHeader), body, time.Now(), time.Minute)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refuse--; h.refuse >= 0 {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	var e Event
	if err == nil {
		e, err = ParseEvent(body)
	}
	if err != nil {
		h.bad = append(h.bad, err)
	}
	h.events = append(h.events, e)
}

func (h *hook) types() (all []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.events {
		all = append(all, e.Type)
	}
	return all
}

func TestWebhooksAreSignedSentAgainLostLateTwiceAndOutOfOrder(t *testing.T) {
	t.Parallel()
	const after = 30 * time.Millisecond
	for scenario, want := range map[string][]string{
		Success:         {"charge.succeeded"},
		Decline:         {"charge.failed"},
		WebhookLost:     nil,
		WebhookLate:     {"charge.pending", "charge.succeeded"},
		WebhookTwice:    {"charge.pending", "charge.pending", "charge.succeeded", "charge.succeeded"},
		WebhookDisorder: {"charge.succeeded", "charge.pending", "charge.failed", "charge.failed"},
		ChargedBack:     {"charge.succeeded", "charge.charged_back"},
	} {
		t.Run(scenario, func(t *testing.T) {
			h := &hook{refuse: 1}
			if scenario == WebhookTwice || scenario == ChargedBack {
				h.refuse = 0
			}
			srv := httptest.NewServer(h)
			defer srv.Close()
			c := told(t, Config{Webhook: Webhook{URL: srv.URL, Secret: "s3cret"}}, Scenario{Name: scenario, After: after})
			if _, err := c.Charge(t.Context(), "k", charge("p1")); err != nil && scenario != Decline {
				t.Fatal(err)
			}
			until(t, "it is settled", func() bool { return totals(t, c).Pending == 0 })
			until(t, "all events have come", func() bool { return len(h.types()) >= len(want) })
			got := h.types()
			if scenario == WebhookLate || scenario == WebhookTwice { // the first delivery is refused and comes later
				slices.Sort(got)
			}
			if !slices.Equal(got, want) || len(h.bad) > 0 {
				t.Errorf("got %v, want %v; %v", got, want, h.bad)
			}
			ids := map[string]string{}
			for _, e := range h.events {
				if kind, ok := ids[e.ID]; ok && kind != e.Type {
					t.Errorf("id %s for %s and %s", e.ID, kind, e.Type)
				}
				ids[e.ID] = e.Type
			}
		})
	}
}

func TestSignaturesOfOthersAndOldOnesAreRefused(t *testing.T) {
	t.Parallel()
	now, body := time.Now(), []byte(`{"id":"evt"}`)
	good := Sign("s", now, body)
	if err := Verify("s", good, body, now, time.Minute); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"other secret":  Verify("t", good, body, now, time.Minute),
		"empty secret":  Verify("", Sign("", now, body), body, now, time.Minute),
		"other body":    Verify("s", good, []byte(`{"id":"evl"}`), now, time.Minute),
		"too old":       Verify("s", good, body, now.Add(2*time.Minute), time.Minute),
		"from tomorrow": Verify("s", good, body, now.Add(-2*time.Minute), time.Minute),
		"no signature":  Verify("s", "", body, now, time.Minute),
		"no hex":        Verify("s", good[:15]+"zz", body, now, time.Minute),
		"other time":    Verify("s", strings.Replace(good, "t=1", "t=2", 1), body, now, time.Minute),
	} {
		if !errors.Is(err, ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
