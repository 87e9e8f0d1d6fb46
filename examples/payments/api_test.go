package payments_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/examples/payments"
	"github.com/pacht-queue/pacht/examples/payments/psp"
)

type created struct {
	ID     string `json:"id"`
	Status string `json:"status"`
}

func (s *shop) order(path, key, body string) (int, created, string) {
	s.t.Helper()
	header := map[string]string{}
	if key != "" {
		header["Idempotency-Key"] = key
	}
	status, said := s.send(path, header, body)
	var c created
	if status < 300 {
		must(s.t, json.Unmarshal([]byte(said), &c))
	}
	return status, c, said
}

const order = `{"amount":{"amount_minor":1999,"currency":"EUR"},"payer":"ann"}`

// S101: the same attempt is one payment, however often it is sent and however many send it at once.
func TestSameKeyIsOnePaymentAndOneAnswer(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		said := make([]string, 8)
		var wg sync.WaitGroup
		for i := range said {
			wg.Go(func() {
				status, _, body := s.order("/payments", "k1", order)
				if said[i] = body; status != http.StatusCreated {
					t.Errorf("%d %s", status, body)
				}
			})
		}
		wg.Wait()
		for _, body := range said {
			if body != said[0] {
				t.Fatalf("two answers to one key:\n%s\n%s", body, said[0])
			}
		}
		if status, _, body := s.order("/payments", "k1", strings.Replace(order, "1999", "2000", 1)); status != http.StatusConflict || !strings.Contains(body, "Idempotency-Key") {
			t.Errorf("another body: %d %s", status, body)
		}
		_, other, _ := s.order("/payments", "k2", order)
		_, first, _ := s.order("/payments", "k1", order)
		if other.ID == first.ID || s.tally().Payments != 2 || s.tally().Pending != 2 {
			t.Errorf("%+v, %+v, %+v", other, first, s.tally())
		}
		s.work()
		// The answer is that of the first time; how it stands now is asked for.
		if _, again, _ := s.order("/payments", "k1", order); again != first || again.Status != payments.Pending {
			t.Errorf("%+v", again)
		}
		status, page := s.get("/payments/" + first.ID)
		var p struct {
			Status      string                `json:"status"`
			Transitions []payments.Transition `json:"transitions"`
		}
		must(t, json.Unmarshal([]byte(page), &p))
		if status != http.StatusOK || p.Status != payments.Succeeded || len(p.Transitions) != 1 {
			t.Errorf("%d %s", status, page)
		}
	})
}

func TestRefundsOverTheAPI(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		_, p, _ := s.order("/payments", "k1", order)
		path := "/payments/" + p.ID + "/refunds"
		const part = `{"amount":{"amount_minor":1500,"currency":"EUR"}}`
		if status, _, said := s.order(path, "r0", part); status != http.StatusUnprocessableEntity {
			t.Errorf("before it is paid: %d %s", status, said)
		}
		s.work()
		status, first, said := s.order(path, "r1", part)
		if status != http.StatusAccepted {
			t.Fatalf("%d %s", status, said)
		}
		if _, again, _ := s.order(path, "r1", part); again != first {
			t.Errorf("%+v, %+v", again, first)
		}
		for key, want := range map[string]int{"r1": http.StatusConflict, "r2": http.StatusUnprocessableEntity} {
			if status, _, said := s.order(path, key, strings.Replace(part, "1500", "500", 1)); status != want {
				t.Errorf("key %s: %d %s", key, status, said)
			}
		}
		// A refusal takes no key: with less the same key is good.
		if status, _, said := s.order(path, "r2", strings.Replace(part, "1500", "499", 1)); status != http.StatusAccepted {
			t.Errorf("%d %s", status, said)
		}
		s.work()
		if _, page := s.get("/payments/" + p.ID); !strings.Contains(page, `"status":"refunded"`) {
			t.Error(page)
		}
		if status, _, _ := s.order("/payments/nobody/refunds", "r3", part); status != http.StatusNotFound {
			t.Errorf("of no payment: %d", status)
		}
		if sum := s.totals(); sum.Refunds != 2 || sum.Net("EUR") != 0 || s.balance("provider") != 0 {
			t.Errorf("%+v", sum)
		}
	})
}

// Bad input is refused with the reason, and changes nothing.
func TestBadOrdersChangeNothing(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		for body, want := range map[string]int{
			``: 400, `{`: 400, order + order: 400, `[]`: 400, `{"amount":null}`: 400,
			`{"amount":{"amount_minor":1,"currency":"EUR"},"more":1}`:                                   400,
			`{"amount":{"amount_minor":19.99,"currency":"EUR"}}`:                                        400,
			`{"amount":{"amount_minor":"1999","currency":"EUR"}}`:                                       400,
			`{"amount":{"amount_minor":1999,"currency":"XYZ"}}`:                                         400,
			`{"amount":{"amount_minor":9223372036854775808,"currency":"EUR"}}`:                          400,
			`{"amount":{"currency":"EUR"}}`:                                                             400,
			`{}`:                                                                                        422,
			`{"amount":{"amount_minor":1,"currency":"EUR"},"payer":"a","payer":"b"}`:                    400,
			`{"AMOUNT":{"amount_minor":1,"currency":"EUR"}}`:                                            400,
			`{"amount":{"amount_minor":1,"currency":"EUR"},"payer":"a\u0000b"}`:                         400,
			`{"amount":{"amount_minor":1,"currency":"EUR"},"payer":"\ud800"}`:                           400,
			"{\"amount\":{\"amount_minor\":1,\"currency\":\"EUR\"},\"payer\":\"\xff\"}":                 400,
			`{"amount":{"amount_minor":10000000000001,"currency":"EUR"}}`:                               422,
			`{"amount":{"amount_minor":9223372036854775807,"currency":"EUR"}}`:                          422,
			`{"amount":{"amount_minor":0,"currency":"EUR"}}`:                                            422,
			`{"amount":{"amount_minor":-1,"currency":"EUR"}}`:                                           422,
			`{"payer":"` + strings.Repeat("x", 101) + `","amount":{"amount_minor":1,"currency":"EUR"}}`: 422,
			`{"payer":"` + strings.Repeat("x", 70_000) + `"}`:                                           413,
		} {
			status, _, said := s.order("/payments", "k", body)
			var problem struct {
				Status int    `json:"status"`
				Title  string `json:"title"`
				Detail string `json:"detail"`
			}
			if err := json.Unmarshal([]byte(said), &problem); err != nil || status != want || problem.Status != want || problem.Detail == "" ||
				strings.Contains(problem.Detail, "api.") || strings.Contains(problem.Detail, "Go ") || strings.Contains(problem.Detail, "EOF") {
				t.Errorf("%.80s: %d %s, want %d", body, status, said, want)
			}
		}
		for _, key := range []string{"", strings.Repeat("k", 256), "k\xff"} {
			if status, _, _ := s.order("/payments", key, order); status != http.StatusBadRequest {
				t.Errorf("key %q: %d", key, status)
			}
		}
		if status, said := s.send("/payments", map[string]string{"Idempotency-Key": "k", "Content-Type": "text/plain"}, order); status != http.StatusUnsupportedMediaType {
			t.Errorf("%d %s", status, said)
		}
		for path, want := range map[string]int{"/payments/nobody": 404, "/return?payment=nobody": 404, "/return": 404, "/nowhere": 404, "/webhooks/psp": 405} {
			if status, said := s.get(path); status != want {
				t.Errorf("%s: %d %s", path, status, said)
			}
		}
		if tally := s.tally(); tally.Payments != 0 || tally.Unfinished() != 0 {
			t.Errorf("%+v", tally)
		}
	})
}

// The return page asks the provider, and believes nothing that stands in its address.
func TestReturnPageAsksTheProvider(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		s.create("p1")
		if status, page := s.get("/return?payment=p1&status=succeeded"); status != http.StatusOK || !strings.Contains(page, "do not know yet") {
			t.Errorf("%d %s", status, page)
		}
		_, err := s.provider.Charge(t.Context(), "k", psp.Order{Reference: "p1", Amount: eur(1999)})
		must(t, err)
		for range 2 {
			if status, page := s.get("/return?payment=p1"); status != http.StatusOK || !strings.Contains(page, "went through") || !strings.Contains(page, "19.99 EUR") {
				t.Errorf("%d %s", status, page)
			}
		}
		if s.payment("p1").Status != payments.Succeeded || s.balance("provider") != 1999 {
			t.Errorf("%+v", s.payment("p1"))
		}
		if status, said := s.get("/state"); status != http.StatusOK || !strings.Contains(said, `"succeeded":1`) || !strings.Contains(said, fmt.Sprintf(`"minor":%d`, 1999)) {
			t.Errorf("%d %s", status, said)
		}
	})
}

// An id with a NUL, or that is no text, is nobody's on both databases; so is one that no key of an
// index can hold.
func TestIDsThatNoDatabaseCanHoldAreNotFound(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		for _, id := range []string{"a%00b", "%00", "%ff%fe", strings.Repeat("x", 5000)} {
			for _, path := range []string{"/payments/" + id, "/return?payment=" + id} {
				if status, said := s.get(path); status != http.StatusNotFound {
					t.Errorf("%.40s: %d %s", path, status, said)
				}
			}
			if status, _, said := s.order("/payments/"+id+"/refunds", "k", `{"amount":{"amount_minor":1,"currency":"EUR"}}`); status != http.StatusNotFound {
				t.Errorf("refund of %.40s: %d %s", id, status, said)
			}
		}
		for _, p := range []payments.Payment{{ID: "a\x00b", Amount: eur(1)}, {ID: "\xff", Amount: eur(1)}, {ID: "p", Payer: "a\x00b", Amount: eur(1)}} {
			var invalid *pacht.InvalidError
			if _, err := s.book.Create(t.Context(), p); !errors.As(err, &invalid) {
				t.Errorf("%+v: %v", p, err)
			}
		}
	})
}

// The largest order is good, and sums that do not fit into 64 bits are told exactly.
func TestStateIsToldWhateverTheSums(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		if status, _, said := s.order("/payments", "k", `{"amount":{"amount_minor":10000000000000,"currency":"EUR"}}`); status != http.StatusCreated {
			t.Errorf("%d %s", status, said)
		}
		s.create("p1")
		statement := `INSERT INTO entries (movement, account, payment_id, amount_minor, currency) VALUES (?1, ?2, 'p1', ?3, 'EUR')`
		if s.onPostgres() {
			statement = `INSERT INTO "The Queue".entries (movement, account, payment_id, amount_minor, currency) VALUES ($1, $2, 'p1', $3, 'EUR')`
		}
		for i := range 3 {
			s.exec(statement, fmt.Sprint(i), "provider", int64(math.MaxInt64))
			s.exec(statement, fmt.Sprint(i), "sales", int64(-math.MaxInt64))
		}
		status, said := s.get("/state")
		if status != http.StatusOK || !strings.Contains(said, `"exact":"27670116110564327421"`) || !strings.Contains(said, `"exact":"-27670116110564327421"`) {
			t.Errorf("%d %s", status, said)
		}
	})
}

// Programs get problems as JSON, with what to do; payers get a page.
func TestErrorsSuitTheirReader(t *testing.T) {
	each(t, psp.Config{}, func(t *testing.T, s *shop) {
		get := func(method, path, key string) (int, http.Header, string) {
			req, err := http.NewRequestWithContext(t.Context(), method, s.api.URL+path, strings.NewReader(order))
			must(t, err)
			req.Header.Set("Content-Type", "application/json")
			if key != "" {
				req.Header.Set("Idempotency-Key", key)
			}
			res, err := s.api.Client().Do(req)
			must(t, err)
			said, err := io.ReadAll(res.Body)
			must(t, errors.Join(err, res.Body.Close()))
			return res.StatusCode, res.Header, string(said)
		}
		for _, c := range []struct {
			method, path, key string
			status            int
			kind, says        string
		}{
			{"GET", "/nowhere", "", 404, "application/problem+json", "nothing at this address"},
			{"DELETE", "/payments", "", 405, "application/problem+json", "DELETE is not for this address: it takes POST"},
			{"GET", "/webhooks/psp", "", 405, "application/problem+json", "it takes POST"},
			{"GET", "/return?payment=nobody", "", 404, "text/html; charset=utf-8", "There is no such payment"},
			{"GET", "/payments/nobody", "", 404, "application/problem+json", "no such payment"},
		} {
			status, header, said := get(c.method, c.path, c.key)
			if status != c.status || header.Get("Content-Type") != c.kind || !strings.Contains(said, c.says) || (status == 405) != (header.Get("Allow") != "") {
				t.Errorf("%s %s: %d %v %s", c.method, c.path, status, header, said)
			}
		}
		s.exec(map[bool]string{false: `ALTER TABLE payments RENAME TO gone`, true: `ALTER TABLE "The Queue".payments RENAME TO gone`}[s.onPostgres()])
		for _, c := range []struct {
			method, path, key, kind, says string
			key2                          bool
		}{
			{"GET", "/payments/p1", "", "application/problem+json", "ask again", false},
			{"GET", "/return?payment=p1", "", "text/html; charset=utf-8", "need not pay again", false},
			{"POST", "/payments", "k", "application/problem+json", "same Idempotency-Key", true},
		} {
			status, header, said := get(c.method, c.path, c.key)
			if status != 500 || header.Get("Content-Type") != c.kind || !strings.Contains(said, c.says) || strings.Contains(said, "Idempotency-Key") != c.key2 {
				t.Errorf("%s %s: %d %v %s", c.method, c.path, status, header, said)
			}
		}
	})
}
