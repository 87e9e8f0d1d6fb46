package strict_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pacht-queue/pacht/examples/payments/strict"
	"github.com/pacht-queue/pacht/money"
)

type inner struct {
	Name string    `json:"name"`
	At   time.Time `json:"at"`
}

type outer struct {
	Amount money.Amount `json:"amount"`
	Inner  *inner       `json:"inner"`
	List   []inner      `json:"list"`
	N      int64        `json:"n"`
}

// What could be read in two ways is refused, at every depth, in words of JSON and not of Go.
func TestWhatCouldBeReadInTwoWaysIsRefused(t *testing.T) {
	for body, want := range map[string]string{
		``:                                     "empty",
		" \n":                                  "empty",
		`[]`:                                   "want a JSON object",
		`null`:                                 "want a JSON object",
		`"x"`:                                  "want a JSON object",
		`{`:                                    "no valid JSON",
		`{}{}`:                                 "more than one document",
		`{} x`:                                 "more than one document",
		`{"n":1,"n":2}`:                        `"n" stands in it twice`,
		`{"n":1,"\u006e":2}`:                   `"n" stands in it twice`,
		`{"N":1}`:                              `"N" does not belong`,
		`{"inner":{"name":"a","name":"b"}}`:    `"inner.name" stands in it twice`,
		`{"inner":{"Name":"a"}}`:               `"inner.Name" does not belong`,
		`{"list":[{"name":"a"},{"NAME":"b"}]}`: `"list.NAME" does not belong`,
		`{"amount":{"amount_minor":1,"amount_minor":2,"currency":"EUR"}}`: "twice",
		`{"inner":{"name":"a\u0000b"}}`:                                   `\u0000`,
		`{"inner":{"name":"\ud800"}}`:                                     `\ud800`,
		"{\"inner\":{\"name\":\"\xff\"}}":                                 "UTF-8",
		`{"n":"1"}`:                                                       `"n" is string, want an integer`,
		`{"inner":[]}`:                                                    `"inner" is array, want an object`,
		`{"inner":{"name":5}}`:                                            `"inner.name" is number, want a string`,
	} {
		var o outer
		err := strict.Decode([]byte(body), &o)
		if !errors.Is(err, strict.ErrBody) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "strict") || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%q: %v, want %s", body, err, want)
		}
	}
	var o outer
	body := ` {"amount":{"amount_minor":5,"currency":"EUR"},"inner":{"name":"a","at":"2026-01-01T00:00:00Z"},"list":[{"name":"b"}],"n":7} `
	if err := strict.Decode([]byte(body), &o); err != nil || o.Amount.Minor != 5 || o.Inner.Name != "a" || o.List[0].Name != "b" || o.N != 7 {
		t.Errorf("%+v, %v", o, err)
	}
}
