package psp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pacht-queue/pacht/examples/payments/psp"
	"github.com/pacht-queue/pacht/money"
)

const event = `{"id":"evt_1","type":"charge.succeeded","created":"2026-01-02T15:04:05Z","charge":{"id":"ch_1","reference":"p1","status":"succeeded","amount":{"amount_minor":1999,"currency":"EUR"},"at":"2026-01-02T15:04:05Z"}}`

// S104: an event that is taken is sound in all its parts, and says the same when it is written again.
func FuzzEvent(f *testing.F) {
	refund := `"refund":{"id":"re_1","charge":"ch_1","status":"succeeded","amount":{"amount_minor":5,"currency":"EUR"},"at":"2026-01-02T15:04:05Z"}`
	for _, s := range []string{
		event, strings.Replace(event, `}}`, `},`+refund+`}`, 1), strings.Replace(event, "1999", "0", 1), strings.Replace(event, "1999", "-1", 1), strings.Replace(event, "1999", `"19.99"`, 1),
		strings.Replace(event, "1999", "9223372036854775807", 1), strings.Replace(event, `"EUR"`, `"eur"`, 1), strings.Replace(event, `"p1"`, `"p\u0000"`, 1), strings.Replace(event, `"evt_1"`, `""`, 1),
		strings.Replace(event, `"succeeded"`, `"done"`, 1), strings.Replace(event, `"at"`, `"refunded_minor":5,"at"`, 1), strings.Replace(event, `"at"`, `"refunds":[{}],"at"`, 1), `{}`, `null`, event + event,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		e, err := psp.ParseEvent(body)
		if err != nil {
			if !errors.Is(err, psp.ErrGarbage) || e.ID != "" || e.Charge.Amount != (money.Amount{}) || len(err.Error()) > 1200 {
				t.Errorf("%q: %+v, %v", body, e, err)
			}
			return
		}
		c := e.Charge
		if e.ID == "" || len(e.ID) > 200 || c.ID == "" || c.Reference == "" || c.Amount.Validate() != nil || c.Amount.Minor <= 0 || c.Refunded < 0 || c.ChargedBack < 0 || strings.ContainsRune(e.ID+e.Type+c.ID+c.Reference, 0) {
			t.Errorf("%q was taken as %+v", body, e)
		}
		again, err := json.Marshal(e)
		if err != nil {
			t.Fatalf("%q became %+v: %v", body, e, err)
		}
		back, err := psp.ParseEvent(again)
		if err != nil {
			t.Fatalf("%q is written again as %q: %v", body, again, err)
		}
		if third, err := json.Marshal(back); err != nil || !bytes.Equal(again, third) {
			t.Errorf("%q became %q, and that %q, %v", body, again, third, err)
		}
	})
}

// A signature is of one body, one secret and one time: no other text of it is taken.
func FuzzSignature(f *testing.F) {
	now := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	good := psp.Sign("s3cret", now, []byte(event))
	for _, s := range []string{good, strings.ToUpper(good), "t=,v1=", "", good + "00", strings.Replace(good, "t=", "t=+", 1), strings.Replace(good, "t=", "t=0", 1), "t=9223372036854775807,v1=00", "t=-9223372036854775808,v1=00", good + ",v1=00"} {
		f.Add(s, "s3cret", []byte(event), int64(0))
	}
	f.Fuzz(func(t *testing.T, signature, secret string, body []byte, off int64) {
		at := now.Add(time.Duration(off))
		err := psp.Verify(secret, signature, body, at, 5*time.Minute)
		if err != nil && !errors.Is(err, psp.ErrSignature) {
			t.Errorf("%q: %v", signature, err)
		}
		text, _, _ := strings.Cut(strings.TrimPrefix(signature, "t="), ",")
		seconds, _ := strconv.ParseInt(text, 10, 64)
		if err == nil && (secret == "" || !strings.EqualFold(signature, psp.Sign(secret, time.Unix(seconds, 0), body)) || at.Sub(time.Unix(seconds, 0)).Abs() > 5*time.Minute) {
			t.Errorf("%q of %q with %q at %s was taken", signature, body, secret, at)
		}
		if secret == "" {
			return
		}
		sound := psp.Sign(secret, at, body)
		if err := psp.Verify(secret, sound, body, at, time.Second); err != nil {
			t.Errorf("%q: %v", sound, err)
		}
		if err := psp.Verify(secret, sound, append(bytes.Clone(body), 0), at, time.Second); err == nil {
			t.Errorf("%q was taken for a longer body", sound)
		}
	})
}

// S100: whatever a provider answers, only a word on this very order is final. Garbage is garbage or
// unknown, and never "nothing was taken".
func FuzzAnswer(f *testing.F) {
	charge := `{"id":"ch_1","reference":"p1","status":"succeeded","amount":{"amount_minor":1999,"currency":"EUR"},"at":"2026-01-02T15:04:05Z"}`
	for _, s := range []string{charge, `{"charges":[` + charge + `]}`, `{"charges":[null,{"id":"x"},` + charge + `],"next":"1.1"}`, `{"charges":{}}`, `{"code":"declined","message":"no"}`, `{"code":"amount","message":"` + strings.Repeat("x", 2000) + `"}`, ``, `null`, `{`, `{"charges":[` + strings.Replace(charge, "p1", "p2", 1) + `]}`, `{"refunds":[{"id":"re_1"}]}`} {
		for _, status := range []int{200, 201, 402, 409, 422, 429, 500} {
			f.Add(status, "1", []byte(s))
		}
	}
	type answer struct {
		status int
		after  string
		body   []byte
	}
	var next atomic.Pointer[answer]
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		a := next.Load()
		w.Header()["Retry-After"] = []string{a.after}
		w.WriteHeader(a.status)
		_, _ = w.Write(a.body)
	}))
	f.Cleanup(provider.Close)
	client := psp.NewClient(provider.URL, time.Minute)
	f.Cleanup(client.Close)
	f.Fuzz(func(t *testing.T, status int, after string, body []byte) {
		if status < 200 || status > 599 || status == 204 || status == 304 || strings.ContainsFunc(after, func(r rune) bool { return r < ' ' || r > '~' }) {
			return
		}
		next.Store(&answer{status, after, body})
		ctx := context.Background()
		order := psp.Order{Reference: "p1", Amount: money.Amount{Minor: 1999, Currency: "EUR"}}
		c, err := client.Charge(ctx, "k", order)
		switch {
		case err == nil && (c.Reference != "p1" || c.Amount != order.Amount || c.ID == "" || status != 200 && status != 201):
			t.Errorf("%d %q was taken as %+v", status, body, c)
		case errors.Is(err, psp.ErrDeclined) && status != 402, errors.Is(err, psp.ErrRefused) && status != 422, errors.Is(err, psp.ErrNotSent):
			t.Errorf("%d %q is final: %v", status, body, err)
		}
		found, err := client.Lookup(ctx, "p1")
		for _, c := range found {
			if err == nil && (c.Reference != "p1" || c.Amount.Validate() != nil || c.Amount.Minor <= 0) {
				t.Errorf("%d %q was taken as %+v", status, body, c)
			}
		}
		page, _, err := client.List(ctx, time.Time{}, "")
		for _, c := range page {
			if err == nil && c.Status != "" && (c.ID == "" || c.Amount.Validate() != nil || c.Amount.Minor <= 0) {
				t.Errorf("%d %q was listed as %+v", status, body, c)
			}
		}
	})
}

// A page of the list is asked for by a cursor that the provider gave: nothing else is taken for one.
func FuzzCursor(f *testing.F) {
	for _, s := range []string{"", "0.0", "1.1", "-1.0", "1", "1.1x", "1.-1", "01.1", "1. 1", " 1.1", "99999999999999999999.1", "9223372036854775807.9223372036854775807", "1.1\x00", "+1.1"} {
		f.Add(s, "2026-01-02T15:04:05Z", "2")
	}
	server, err := psp.Open(psp.Config{Ledger: filepath.Join(f.TempDir(), "provider.jsonl")})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = server.Close() })
	for _, reference := range []string{"p1", "p2", "p3"} {
		body, _ := json.Marshal(psp.Order{Reference: reference, Amount: money.Amount{Minor: 5, Currency: "EUR"}})
		r := httptest.NewRequest(http.MethodPost, "/v1/charges", bytes.NewReader(body))
		r.Header.Set("Idempotency-Key", reference)
		w := httptest.NewRecorder()
		if server.ServeHTTP(w, r); w.Code >= 300 {
			f.Fatal(w.Code, w.Body)
		}
	}
	f.Fuzz(func(t *testing.T, cursor, since, limit string) {
		q := url.Values{"cursor": {cursor}, "since": {since}, "limit": {limit}}
		w := httptest.NewRecorder()
		server.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/charges?"+q.Encode(), nil))
		switch w.Code {
		case http.StatusOK:
			var list struct {
				Charges []psp.Charge `json:"charges"`
				Next    string       `json:"next"`
			}
			if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || len(list.Charges) > 3 {
				t.Errorf("%s: %v", w.Body, err)
			}
			from, before, two := strings.Cut(cursor, ".")
			if cursor != "" && (!two || strings.Trim(from+before, "0123456789") != "" || from == "" || before == "") {
				t.Errorf("the cursor %q was taken", cursor)
			}
		case http.StatusBadRequest, http.StatusConflict:
		default:
			t.Errorf("%q: %d %s", q.Encode(), w.Code, w.Body)
		}
	})
}
