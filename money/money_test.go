package money_test

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/pacht-queue/pacht/money"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		_, _ = os.Stderr.WriteString(err.Error())
		code = 1
	}
	os.Exit(code)
}

func TestExponentsAreThoseOfISO4217(t *testing.T) {
	for code, want := range map[string]int{
		"EUR": 2, "USD": 2, "JPY": 0, "KWD": 3, "UYW": 4, "CLP": 0, "ISK": 0, "HUF": 2, "XCG": 2, "BHD": 3, "TND": 3, "MRU": 2,
	} {
		c, err := money.ParseCurrency(code)
		if got, bad := c.Exponent(); err != nil || bad != nil || got != want {
			t.Errorf("%s: %d, %v, %v, want %d", code, got, err, bad, want)
		}
	}
	// Funds, metals, test codes, withdrawn ones, and what is no code at all.
	for _, code := range []string{"", "eur", "EURO", "E", "CLF", "CHE", "USN", "UYI", "XAU", "XTS", "XXX", "ANG", "BGN", "HRK", "ZWL", "EU\x00", "ЕUR"} {
		if c, err := money.ParseCurrency(code); !errors.Is(err, money.ErrCurrency) || c != "" {
			t.Errorf("%q: %q, %v", code, c, err)
		}
	}
	count := map[int]int{}
	for _, c := range money.Currencies() {
		if len(c) != 3 {
			t.Errorf("code %q", c)
		}
		e, err := c.Exponent()
		if err != nil {
			t.Error(err)
		}
		count[e]++
	}
	// 134 with two decimals in the list of 2024-06-25, less ANG, BGN, CUC, with XAD, XCG.
	if count[0] != 16 || count[2] != 133 || count[3] != 7 || count[4] != 1 || len(count) != 4 {
		t.Errorf("currencies by exponent: %v", count)
	}
}

// S104: exact decimals or an error, never a rounded one and never zero.
func TestParseReadsExactDecimalsAndNothingElse(t *testing.T) {
	for _, c := range []struct {
		text, currency string
		want           int64
	}{
		{"19.99", "EUR", 1999}, {"20", "EUR", 2000}, {"0.00", "EUR", 0}, {"0", "JPY", 0}, {"1999", "JPY", 1999},
		{"1.234", "KWD", 1234}, {"-0.05", "USD", -5}, {"0.0001", "UYW", 1},
		{"92233720368547758.07", "EUR", math.MaxInt64}, {"-92233720368547758.08", "EUR", math.MinInt64},
	} {
		a, err := money.Parse(c.text, c.currency)
		if err != nil || a != (money.Amount{Minor: c.want, Currency: money.Currency(c.currency)}) {
			t.Errorf("%s %s: %v, %v", c.text, c.currency, a, err)
		}
		if back, err := money.Parse(a.Decimal(), c.currency); err != nil || back != a {
			t.Errorf("%s is written as %s and read as %v, %v", c.text, a.Decimal(), back, err)
		}
	}
	for _, c := range []struct {
		text, currency string
		want           error
	}{
		{"20.00000000", "EUR", money.ErrAmount}, {"20.0", "EUR", money.ErrAmount}, {"20.0", "JPY", money.ErrAmount}, {"1.23", "KWD", money.ErrAmount},
		{"", "EUR", money.ErrAmount}, {" 20", "EUR", money.ErrAmount}, {"20 ", "EUR", money.ErrAmount}, {"+20", "EUR", money.ErrAmount},
		{"020", "EUR", money.ErrAmount}, {".50", "EUR", money.ErrAmount}, {"20.", "EUR", money.ErrAmount}, {"1,000", "EUR", money.ErrAmount},
		{"1e3", "EUR", money.ErrAmount}, {"NaN", "EUR", money.ErrAmount}, {"0x10", "EUR", money.ErrAmount}, {"-0", "EUR", money.ErrAmount},
		{"-0.00", "EUR", money.ErrAmount}, {"٣", "EUR", money.ErrAmount}, {"20\n", "EUR", money.ErrAmount},
		{"92233720368547758.08", "EUR", money.ErrOverflow}, {"99999999999999999999", "JPY", money.ErrOverflow},
		{"20", "EURO", money.ErrCurrency}, {"20", "", money.ErrCurrency}, {"20", "XAU", money.ErrCurrency},
	} {
		if a, err := money.Parse(c.text, c.currency); !errors.Is(err, c.want) || a != (money.Amount{}) {
			t.Errorf("%q %q: %v, %v, want %v", c.text, c.currency, a, err, c.want)
		}
	}
}

func TestAmountsAreWrittenWithTheirDecimals(t *testing.T) {
	for want, a := range map[string]money.Amount{
		"19.99 EUR": {Minor: 1999, Currency: "EUR"}, "0.05 EUR": {Minor: 5, Currency: "EUR"}, "-0.05 EUR": {Minor: -5, Currency: "EUR"},
		"1999 JPY": {Minor: 1999, Currency: "JPY"}, "0.001 KWD": {Minor: 1, Currency: "KWD"}, "-92233720368547758.08 USD": {Minor: math.MinInt64, Currency: "USD"},
		`5 minor units of ""`: {Minor: 5}, `5 minor units of "eur"`: {Minor: 5, Currency: "eur"},
	} {
		if got := a.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestSumsThatDoNotFitAreErrors(t *testing.T) {
	eur := func(n int64) money.Amount { return money.Amount{Minor: n, Currency: "EUR"} }
	if got, err := eur(1999).Add(eur(-2000)); err != nil || got != eur(-1) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := eur(-1).Sub(eur(math.MinInt64)); err != nil || got != eur(math.MaxInt64) {
		t.Errorf("%v, %v", got, err)
	}
	yen := money.Amount{Minor: 1, Currency: "JPY"}
	for name, c := range map[string]struct {
		do   func(money.Amount) (money.Amount, error)
		with money.Amount
		want error
	}{
		"max plus 1":       {eur(math.MaxInt64).Add, eur(1), money.ErrOverflow},
		"min plus -1":      {eur(math.MinInt64).Add, eur(-1), money.ErrOverflow},
		"max minus -1":     {eur(math.MaxInt64).Sub, eur(-1), money.ErrOverflow},
		"min minus 1":      {eur(math.MinInt64).Sub, eur(1), money.ErrOverflow},
		"0 minus min":      {eur(0).Sub, eur(math.MinInt64), money.ErrOverflow},
		"euros plus yen":   {eur(1).Add, yen, money.ErrMixed},
		"euros minus yen":  {eur(1).Sub, yen, money.ErrMixed},
		"nothing plus one": {money.Amount{}.Add, eur(1), money.ErrCurrency},
		"one plus nothing": {eur(1).Add, money.Amount{}, money.ErrMixed},
		"no currency":      {money.Amount{Minor: 1}.Add, money.Amount{Minor: 1}, money.ErrCurrency},
	} {
		if got, err := c.do(c.with); !errors.Is(err, c.want) || got != (money.Amount{}) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// S104: a missing, unparsable or null amount never becomes zero.
func TestJSONAmountsAreIntegersWithACurrencyOrRefused(t *testing.T) {
	in := money.Amount{Minor: 9007199254740993, Currency: "EUR"} // more than a float holds
	text, err := json.Marshal(in)
	if err != nil || string(text) != `{"amount_minor":9007199254740993,"currency":"EUR"}` {
		t.Errorf("%s, %v", text, err)
	}
	var out money.Amount
	if err := json.Unmarshal(text, &out); err != nil || out != in {
		t.Errorf("%v, %v", out, err)
	}
	for _, bad := range []string{
		`null`, `{}`, `1999`, `"19.99"`, `[]`,
		`{"amount_minor":1999}`, `{"currency":"EUR"}`,
		`{"amount_minor":null,"currency":"EUR"}`, `{"amount_minor":1999,"currency":null}`,
		`{"amount_minor":"20.00000000","currency":"EUR"}`, `{"amount_minor":"1999","currency":"EUR"}`,
		`{"amount_minor":19.99,"currency":"EUR"}`, `{"amount_minor":20.0,"currency":"EUR"}`, `{"amount_minor":2e3,"currency":"EUR"}`,
		`{"amount_minor":-0.0,"currency":"EUR"}`, `{"amount_minor":true,"currency":"EUR"}`, `{"amount_minor":{},"currency":"EUR"}`,
		`{"amount_minor":9223372036854775808,"currency":"EUR"}`,
		`{"amount_minor":1,"amount_minor":2,"currency":"EUR"}`, `{"amount_minor":1,"currency":"EUR","more":1}`,
		`{"AMOUNT_MINOR":1,"currency":"EUR"}`, `{"amount_minor":1,"currency":"eur"}`, `{"amount_minor":1,"currency":"XAU"}`,
	} {
		out := in
		if err := json.Unmarshal([]byte(bad), &out); err == nil || out != in {
			t.Errorf("%s was read as %v, %v", bad, out, err)
		}
	}
	// In an enclosing object null is refused too; what is missing is left to Validate.
	var record struct {
		Amount money.Amount `json:"amount"`
	}
	if err := json.Unmarshal([]byte(`{"amount":null}`), &record); err == nil {
		t.Error("null was read as an amount")
	}
	if err := json.Unmarshal([]byte(`{}`), &record); err != nil || record.Amount.Validate() == nil {
		t.Errorf("%v; a missing amount is valid", err)
	}
}
