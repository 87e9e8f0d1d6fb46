package psp

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/pacht-queue/pacht/money"
)

// Only what the provider says of this very order ends it. A wrong key of ours, a wrong
// address or a proxy in between says nothing of the order, and must not fail it.
func TestOnlyAWordOnThisVeryOrderIsFinal(t *testing.T) {
	t.Parallel()
	said := func(status int, header, body string) (charged, refunded error) {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if header != "" {
				w.Header().Set("Retry-After", header)
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body) // its caller may be gone
		}))
		defer srv.Close()
		c := NewClient(srv.URL, 5*time.Second)
		defer c.Close()
		_, charged = c.Charge(t.Context(), "k", charge("p1"))
		_, refunded = c.Refund(t.Context(), "k", RefundOrder{Reference: "r1", Charge: "ch_1", Amount: money.Amount{Minor: 1, Currency: "EUR"}})
		return charged, refunded
	}
	const page = "<html>Forbidden</html>"
	for _, c := range []struct {
		status       int
		header, body string
		want         error
		wait         time.Duration
	}{
		{402, "", `{"code":"card_declined"}`, ErrDeclined, 0},
		{402, "", page, ErrDeclined, 0},
		{422, "", `{"code":"over_refund"}`, ErrRefused, 0},
		{422, "", `{"code":"no_such_charge"}`, ErrRefused, 0},
		{422, "", `{"code":"charge"}`, ErrRefused, 0},
		{422, "", `{"code":"refund"}`, ErrRefused, 0},
		{409, "", `{"code":"key_conflict"}`, ErrConflict, 0},
		{408, "", page, ErrUnanswered, 0},
		{500, "", page, ErrUnanswered, 0},
		{302, "", page, ErrUnanswered, 0},
		{429, "7", page, ErrBusy, 7 * time.Second},
		{401, "", `{"code":"bad_api_key"}`, ErrTurnedAway, turnedAwayFor},
		{403, "", page, ErrTurnedAway, turnedAwayFor},
		{403, "90", page, ErrTurnedAway, 90 * time.Second},
		{400, "", `{"code":"body"}`, ErrTurnedAway, turnedAwayFor},
		{404, "", page, ErrTurnedAway, turnedAwayFor},
		{404, "", `{"code":"over_refund"}`, ErrTurnedAway, turnedAwayFor},
		{405, "", "", ErrTurnedAway, turnedAwayFor},
		{413, "", page, ErrTurnedAway, turnedAwayFor},
		{415, "", page, ErrTurnedAway, turnedAwayFor},
		{422, "", page, ErrTurnedAway, turnedAwayFor},
		{422, "", `{"code":"new_field_required"}`, ErrTurnedAway, turnedAwayFor},
		{451, "", "", ErrTurnedAway, turnedAwayFor},
	} {
		charged, refunded := said(c.status, c.header, c.body)
		for call, err := range map[string]error{"charge": charged, "refund": refunded} {
			for _, class := range []error{ErrDeclined, ErrRefused, ErrConflict, ErrBusy, ErrTurnedAway, ErrUnanswered, ErrNotSent, ErrGarbage} {
				if errors.Is(err, class) != (class == c.want) {
					t.Errorf("%s, %d %s: %v, want %v", call, c.status, c.body, err, c.want)
				}
			}
			if RetryAfter(err) != c.wait {
				t.Errorf("%s, %d %s: again after %s, want %s", call, c.status, c.body, RetryAfter(err), c.wait)
			}
		}
	}
}
