package money

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Amount is so many minor units of a currency: {1999, "EUR"} is 19.99 euros, {1999, "JPY"} is
// 1,999 yen. The zero value is no amount, and not zero of anything. Do not embed it in a struct
// that is decoded from JSON: its UnmarshalJSON would become that of the struct.
type Amount struct {
	Minor    int64    `json:"amount_minor"`
	Currency Currency `json:"currency"`
}

// New is an amount of a currency that is known.
func New(minor int64, currency string) (Amount, error) {
	a := Amount{Minor: minor, Currency: Currency(currency)}
	return a, a.Validate()
}

// Validate refuses an amount of no known currency, the zero value among them.
func (a Amount) Validate() error {
	_, err := a.Currency.Exponent()
	return err
}

// Add is a + b, of one currency.
func (a Amount) Add(b Amount) (Amount, error) {
	if err := a.fits(b); err != nil {
		return Amount{}, err
	}
	if b.Minor > 0 && a.Minor > math.MaxInt64-b.Minor || b.Minor < 0 && a.Minor < math.MinInt64-b.Minor {
		return Amount{}, fmt.Errorf("%w: %s plus %s", ErrOverflow, a, b)
	}
	return Amount{Minor: a.Minor + b.Minor, Currency: a.Currency}, nil
}

// Sub is a - b, of one currency.
func (a Amount) Sub(b Amount) (Amount, error) {
	if err := a.fits(b); err != nil {
		return Amount{}, err
	}
	if b.Minor < 0 && a.Minor > math.MaxInt64+b.Minor || b.Minor > 0 && a.Minor < math.MinInt64+b.Minor {
		return Amount{}, fmt.Errorf("%w: %s minus %s", ErrOverflow, a, b)
	}
	return Amount{Minor: a.Minor - b.Minor, Currency: a.Currency}, nil
}

func (a Amount) fits(b Amount) error {
	if err := a.Validate(); err != nil {
		return err
	}
	if a.Currency != b.Currency {
		return fmt.Errorf("%w: %s and %s", ErrMixed, a, b)
	}
	return nil
}

// Decimal is the amount as Parse reads it: "19.99". Of an unknown currency it is the minor
// units alone.
func (a Amount) Decimal() string {
	exponent, err := a.Currency.Exponent()
	if err != nil || exponent == 0 {
		return strconv.FormatInt(a.Minor, 10)
	}
	digits, sign := strconv.FormatInt(a.Minor, 10), ""
	if a.Minor < 0 {
		digits, sign = digits[1:], "-" // also right for the smallest integer, which has no opposite
	}
	if missing := exponent + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	point := len(digits) - exponent
	return sign + digits[:point] + "." + digits[point:]
}

func (a Amount) String() string {
	if a.Validate() != nil {
		return fmt.Sprintf("%d minor units of %.12q", a.Minor, string(a.Currency))
	}
	return a.Decimal() + " " + string(a.Currency)
}
