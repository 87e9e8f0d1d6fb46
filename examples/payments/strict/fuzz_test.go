package strict_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pacht-queue/pacht/examples/payments/strict"
)

// What is accepted can be read in one way only, and says the same when it is written again; what is
// refused is refused in words of JSON.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"amount":{"amount_minor":5,"currency":"EUR"},"inner":{"name":"a","at":"2026-01-01T00:00:00Z"},"list":[{"name":"b"}],"n":7}`,
		`{"n":1,"n":2}`, `{"n":1,"\u006e":2}`, `{"N":1}`, `{"inner":null}`, `{"inner":{"name":"a","name":"b"}}`, `{"list":[{"name":"a"},{"NAME":"b"}]}`, `{"list":[[]]}`, `{"list":{"name":"a"}}`,
		`{"n":1.0}`, `{"n":1e0}`, `{"n":9223372036854775808}`, `{"n":null}`, `null`, `[]`, `{}{}`, `{"amount":{"amount_minor":1,"amount_minor":2,"currency":"EUR"}}`, `{"inner":{"name":"\ud800"}}`, "{\"inner\":{\"name\":\"\xff\"}}",
		`{"inner":{"at":"0000-01-01T00:00:00Z"}}`, `{"":1}`, `{"amount":[]}`, strings.Repeat(`{"inner":`, 2000) + strings.Repeat("}", 2000), "\ufeff{}", `{"inner":{"name":"a":1}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var o outer
		if err := strict.Decode(body, &o); err != nil {
			text := err.Error()
			if !errors.Is(err, strict.ErrBody) || len(text) > 600 || !utf8.ValidString(text) || strings.Contains(text, "strict") || strings.Contains(text, "Go ") {
				t.Errorf("%q: %q", body, text)
			}
			return
		}
		if twice(t, json.NewDecoder(bytes.NewReader(body))) {
			t.Errorf("%q has a name twice and was taken", body)
		}
		// A plain decoder that knows the same names, in this case only, finds no other.
		dec := json.NewDecoder(bytes.NewReader(body))
		dec.DisallowUnknownFields()
		var plain outer
		if err := dec.Decode(&plain); err != nil || !reflect.DeepEqual(plain, o) {
			t.Errorf("%q was read as %+v; by itself as %+v, %v", body, o, plain, err)
		}
		if o.Amount.Validate() != nil {
			return // it was not given: whoever decodes asks
		}
		again, err := json.Marshal(o)
		if err != nil {
			t.Fatalf("%q became %+v: %v", body, o, err)
		}
		var back outer
		if err := strict.Decode(again, &back); err != nil {
			t.Fatalf("%q is written again as %q: %v", body, again, err)
		}
		if third, err := json.Marshal(back); err != nil || !bytes.Equal(again, third) {
			t.Errorf("%q became %q, and that %q, %v", body, again, third, err)
		}
	})
}

// twice says whether an object of the document has a name twice, as it is decoded.
func twice(t *testing.T, dec *json.Decoder) bool {
	t.Helper()
	token, err := dec.Token()
	if err != nil {
		t.Fatal(err)
	}
	open, nested := token.(json.Delim)
	if !nested {
		return false
	}
	found, seen := false, map[string]bool{}
	for dec.More() {
		if open == '{' {
			name, err := dec.Token()
			if err != nil {
				t.Fatal(err)
			}
			text, _ := name.(string)
			found = found || seen[text]
			seen[text] = true
		}
		found = twice(t, dec) || found
	}
	if _, err := dec.Token(); err != nil {
		t.Fatal(err)
	}
	return found
}
