package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pacht-queue/pacht/examples/payments"
	"github.com/pacht-queue/pacht/examples/payments/api"
	"github.com/pacht-queue/pacht/examples/payments/psp"
	"github.com/pacht-queue/pacht/money"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "s3cret"

// nobody is a provider that has never heard of anything.
type nobody struct{}

func (nobody) Lookup(context.Context, string) ([]psp.Charge, error) { return nil, nil }

// shop is the API over a real database in a file.
func shop(f *testing.F) (http.Handler, *payments.Book) {
	f.Helper()
	place, err := payments.Open(context.Background(), payments.Address{File: filepath.Join(f.TempDir(), "shop.db")})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if n, err := place.Book.Unbalanced(context.Background()); err != nil || n != 0 {
			f.Errorf("%d movements are not balanced, %v", n, err)
		}
		if err := place.Close(); err != nil {
			f.Error(err)
		}
	})
	if err := place.Migrate(context.Background()); err != nil {
		f.Fatal(err)
	}
	handler, err := api.New(api.Config{Book: place.Book, Provider: nobody{}, Secret: secret, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	return handler, place.Book
}

func post(handler http.Handler, path string, body []byte, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header[header[i]] = []string{header[i+1]}
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

// S101, S104: an order is stored for exactly the amount that it names, once for each key, or it is
// refused as the caller's fault; no body is a fault of ours.
func FuzzOrder(f *testing.F) {
	for _, s := range []string{
		`{"amount":{"amount_minor":1999,"currency":"EUR"},"payer":"ann"}`, `{"amount":{"amount_minor":1,"currency":"JPY"}}`, `{"amount":{"amount_minor":0,"currency":"EUR"}}`, `{"amount":{"amount_minor":-1,"currency":"EUR"}}`,
		`{"amount":{"amount_minor":9223372036854775807,"currency":"EUR"}}`, `{"amount":null}`, `{}`, `{"amount":{"amount_minor":1,"currency":"EUR"},"amount":{"amount_minor":2,"currency":"EUR"}}`, `{"amount":{"amount_minor":1,"currency":"EUR"},"payer":"\u0000"}`,
		`{"amount":{"amount_minor":1,"currency":"EUR"},"payer":"` + strings.Repeat("x", 5000) + `"}`, "{\"amount\":{\"amount_minor\":1,\"currency\":\"EUR\"},\"payer\":\"\xff\"}", `[`, ``,
	} {
		f.Add("k1", "application/json", []byte(s))
	}
	f.Add("", "application/json", []byte(`{}`))
	f.Add("k\x7f", "text/plain", []byte(`{}`))
	handler, book := shop(f)
	f.Fuzz(func(t *testing.T, key, kind string, body []byte) {
		header := []string{"Idempotency-Key", key, "Content-Type", kind}
		w := post(handler, "/payments", body, header...)
		said := w.Body.Bytes()
		if !json.Valid(said) {
			t.Errorf("%q is answered %d %q", body, w.Code, said)
		}
		switch w.Code {
		case http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
			return
		case http.StatusCreated:
		default:
			t.Fatalf("%q is answered %d %s", body, w.Code, said)
		}
		var asked struct {
			Amount json.RawMessage `json:"amount"`
		}
		var created struct {
			ID     string       `json:"id"`
			Amount money.Amount `json:"amount"`
		}
		var amount money.Amount
		if json.Unmarshal(body, &asked) != nil || json.Unmarshal(asked.Amount, &amount) != nil || json.Unmarshal(said, &created) != nil || created.Amount != amount || amount.Minor <= 0 {
			t.Fatalf("%q is answered %s", body, said)
		}
		p, err := book.Payment(context.Background(), created.ID)
		if err != nil || p.Amount != amount {
			t.Errorf("%q is stored as %+v, %v", body, p, err)
		}
		if again := post(handler, "/payments", body, header...); again.Code != http.StatusCreated || !bytes.Equal(again.Body.Bytes(), said) {
			t.Errorf("%q, sent again, is answered %d %s, was %s", body, again.Code, again.Body, said)
		}
	})
}

// S097, S104: a webhook with a good signature is kept or refused, whatever stands in it; sent again
// it changes nothing; with any other signature it is not read.
func FuzzWebhook(f *testing.F) {
	const event = `{"id":"evt_1","type":"charge.succeeded","created":"2026-01-02T15:04:05Z","charge":{"id":"ch_1","reference":"p1","status":"succeeded","amount":{"amount_minor":1999,"currency":"EUR"},"at":"2026-01-02T15:04:05Z"}}`
	for _, s := range []string{event, strings.Replace(event, "p1", "p2", 1), strings.Replace(event, "1999", "null", 1), strings.Replace(event, "succeeded", "failed", 2), strings.Replace(event, `"p1"`, `"`+strings.Repeat("x", 200)+`"`, 1), `{}`, ``, "\xff", strings.Replace(event, `"at":"2026`, `"at":"0000`, 1), strings.Replace(event, "EUR", "JPY", 1)} {
		f.Add([]byte(s), "t=1,v1=00")
	}
	handler, book := shop(f)
	for _, id := range []string{"p1", "p2"} {
		if _, err := book.Create(context.Background(), payments.Payment{ID: id, Amount: money.Amount{Minor: 1999, Currency: "EUR"}}); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, signature string) {
		if w := post(handler, "/webhooks/psp", body, psp.SignatureHeader, signature); w.Code != http.StatusUnauthorized && w.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("%q, signed %q, is answered %d %s", body, signature, w.Code, w.Body)
		}
		var verdicts [2]payments.Received
		for i := range verdicts {
			w := post(handler, "/webhooks/psp", body, psp.SignatureHeader, psp.Sign(secret, time.Now(), body))
			if w.Code == http.StatusRequestEntityTooLarge {
				return
			}
			if w.Code != http.StatusOK && w.Code != http.StatusUnprocessableEntity {
				t.Fatalf("%q is answered %d %s", body, w.Code, w.Body)
			}
			if err := json.Unmarshal(w.Body.Bytes(), &verdicts[i]); err != nil {
				t.Fatalf("%q is answered %s: %v", body, w.Body, err)
			}
		}
		if first, again := verdicts[0], verdicts[1]; first.EventID != again.EventID || first.Verdict != again.Verdict || again.Verdict == payments.Applied && !again.Duplicate {
			t.Errorf("%q is answered %+v, and then %+v", body, first, again)
		}
	})
}
