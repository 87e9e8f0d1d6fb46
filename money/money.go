// Package money is amounts as integers of a currency's smallest unit. Nothing in it is a
// float, nothing is rounded, and what does not fit is an error and never zero.
package money

import "errors"

// What callers branch on with errors.Is.
var (
	// ErrCurrency: no active currency of ISO 4217 that has a minor unit, or none with which
	// people pay.
	ErrCurrency = errors.New("unknown currency")
	// ErrAmount: it is not an exact amount of its currency.
	ErrAmount = errors.New("not an amount")
	// ErrOverflow: the result is more than 64 bits hold.
	ErrOverflow = errors.New("amount too large")
	// ErrMixed: two amounts of different currencies.
	ErrMixed = errors.New("different currencies")
)
