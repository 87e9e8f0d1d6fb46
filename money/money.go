// Package money is amounts as integers of a currency's smallest unit. Nothing in it is a
// float, nothing is rounded, and what does not fit is an error and never zero.
package money

// Currency is an ISO 4217 code, three upper-case letters, that this package knows.
type Currency string

// Amount is so many minor units of a currency: {1999, "EUR"} is 19.99 euros, {1999, "JPY"} is
// 1,999 yen. The zero value is no amount.
type Amount struct {
	Minor    int64    `json:"amount_minor"`
	Currency Currency `json:"currency"`
}
