package money_test

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"github.com/pacht-queue/pacht/money"
)

// exact is the amount as a fraction of whole units, by arithmetic that never rounds.
func exact(t *testing.T, a money.Amount) *big.Rat {
	t.Helper()
	exponent, err := a.Currency.Exponent()
	if err != nil {
		t.Fatalf("%+v: %v", a, err)
	}
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(exponent)), nil)
	return new(big.Rat).SetFrac(big.NewInt(a.Minor), unit)
}

// S104: what is accepted is worth exactly what was written, to the last digit, and is written
// again as it was read.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"19.99", "20", "0", "-0", "-0.05", "020", "1e3", "0x10", "20.", ".5", "1,000", "92233720368547758.07", "92233720368547758.08", "-92233720368547758.08", "0.0001", "9007199254740993", "٣", "+1", "1_0"} {
		for _, currency := range []string{"EUR", "JPY", "KWD", "UYW", "eur", ""} {
			f.Add(s, currency)
		}
	}
	f.Fuzz(func(t *testing.T, s, currency string) {
		a, err := money.Parse(s, currency)
		if err != nil {
			if a != (money.Amount{}) {
				t.Errorf("%q %q is refused and %+v", s, currency, a)
			}
			return
		}
		want, ok := new(big.Rat).SetString(s)
		if !ok || want.Cmp(exact(t, a)) != 0 || string(a.Currency) != currency {
			t.Errorf("%q %q was read as %+v", s, currency, a)
		}
		if strings.Trim(s, "-0123456789.") != "" {
			t.Errorf("%q was accepted", s)
		}
		if back, err := money.Parse(a.Decimal(), currency); err != nil || back != a {
			t.Errorf("%+v is written %s and read as %+v, %v", a, a.Decimal(), back, err)
		}
	})
}

// Every amount is written so that it is read again, by people and by programs.
func FuzzAmount(f *testing.F) {
	for _, n := range []int64{0, 1, -1, 99, -99, 100, 1 << 53, 1<<53 + 1, 1<<63 - 1, -1 << 63} {
		f.Add(n, int64(1), "EUR")
		f.Add(n, n, "JPY")
		f.Add(n, -n, "UYW")
	}
	f.Fuzz(func(t *testing.T, n, m int64, currency string) {
		a, err := money.New(n, currency)
		if err != nil {
			return
		}
		if back, err := money.Parse(a.Decimal(), currency); err != nil || back != a {
			t.Errorf("%+v is written %s and read as %+v, %v", a, a.Decimal(), back, err)
		}
		raw, err := json.Marshal(a)
		var out money.Amount
		if err != nil || json.Unmarshal(raw, &out) != nil || out != a {
			t.Errorf("%+v is written %s and read as %+v, %v", a, raw, out, err)
		}
		b := money.Amount{Minor: m, Currency: a.Currency}
		sum, err := a.Add(b)
		want := new(big.Int).Add(big.NewInt(n), big.NewInt(m))
		if want.IsInt64() != (err == nil) || err == nil && sum.Minor != want.Int64() {
			t.Errorf("%s plus %s is %s, %v", a, b, sum, err)
		}
		difference, err := a.Sub(b)
		want = new(big.Int).Sub(big.NewInt(n), big.NewInt(m))
		if want.IsInt64() != (err == nil) || err == nil && difference.Minor != want.Int64() {
			t.Errorf("%s minus %s is %s, %v", a, b, difference, err)
		}
	})
}

// S104: no other reading of the same document gives another amount, and nothing becomes zero by
// being left out.
func FuzzAmountJSON(f *testing.F) {
	for _, s := range []string{
		`{"amount_minor":1999,"currency":"EUR"}`, `{"currency":"EUR","amount_minor":-1}`, `{"amount_minor":1e2,"currency":"EUR"}`, `{"amount_minor":1,"amount_minor":2,"currency":"EUR"}`,
		`{"amount_minor":"1","currency":"EUR"}`, `{"Amount_Minor":1,"currency":"EUR"}`, `{"amount_minor":1}`, `null`, `[]`, `{"amount_minor":9007199254740993,"currency":"JPY"}`, `{"amount_minor":-0,"currency":"JPY"}`,
		`{"amount_minor":1,"currency":"\u0045UR"}`, `{"amount\u005fminor":1,"currency":"EUR"}`, `{"amount_minor":1,"currency":"EUR"} x`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var a money.Amount
		if err := json.Unmarshal(raw, &a); err != nil {
			if a != (money.Amount{}) {
				t.Errorf("%q is refused and %+v", raw, a)
			}
			return
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(raw, &fields); err != nil || len(fields) != 2 {
			t.Fatalf("%q was read as %+v: %v, %v", raw, a, fields, err)
		}
		want, ok := new(big.Int).SetString(string(fields["amount_minor"]), 10)
		var currency string
		if !ok || !want.IsInt64() || want.Int64() != a.Minor || json.Unmarshal(fields["currency"], &currency) != nil || currency != string(a.Currency) || a.Validate() != nil {
			t.Errorf("%q was read as %+v", raw, a)
		}
		if strings.Count(string(raw), ":") != 2 {
			t.Errorf("%q has a name twice and was read as %+v", raw, a)
		}
		again, err := json.Marshal(a)
		var out money.Amount
		if err != nil || json.Unmarshal(again, &out) != nil || out != a {
			t.Errorf("%+v is written %s and read as %+v, %v", a, again, out, err)
		}
	})
}
