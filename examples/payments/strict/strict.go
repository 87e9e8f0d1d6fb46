// Package strict reads JSON from outside: what could be read in two ways is refused. encoding/json
// takes the last of two equal names, and any case of a name; who checked the first one, or another
// spelling, has checked something else than what is carried out.
package strict

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/pacht-queue/pacht"
)

// ErrBody: a body that is not what was asked for.
var ErrBody = errors.New("the body cannot be taken")

// Decode reads one JSON object into a struct. Refused are: anything behind it, text that is not
// UTF-8 or that a database cannot store, a name that stands twice in one object, a name that is
// not known, or known only in another case. Its errors are for whoever sent the body.
func Decode(body []byte, into any) error {
	trimmed := bytes.TrimLeft(body, " \t\r\n")
	switch {
	case len(trimmed) == 0:
		return fmt.Errorf("%w: it is empty, want a JSON object", ErrBody)
	case trimmed[0] != '{':
		return fmt.Errorf("%w: it begins with %.20q, want a JSON object", ErrBody, firstOf(trimmed))
	}
	if err := one(body); err != nil {
		return err
	}
	var invalid *pacht.InvalidError
	if err := (pacht.Limits{}).ValidJSON("body", body); errors.As(err, &invalid) {
		return fmt.Errorf("%w: it has %s, want %s", ErrBody, invalid.Value, invalid.Bound)
	} else if err != nil {
		return fmt.Errorf("%w: %w", ErrBody, err)
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if err := walk(dec, reflect.TypeOf(into), ""); err != nil {
		return err
	}
	return explain(json.Unmarshal(body, into))
}

// one refuses what is no JSON, and a second document.
func one(body []byte) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	var first json.RawMessage
	if err := dec.Decode(&first); err != nil {
		return fmt.Errorf("%w: it is no valid JSON", ErrBody)
	}
	if rest := bytes.TrimSpace(body[dec.InputOffset():]); len(rest) > 0 {
		return fmt.Errorf("%w: more than one document", ErrBody)
	}
	return nil
}

func firstOf(b []byte) string { return strings.ToValidUTF8(string(b[:min(len(b), 10)]), "?") }

// walk reads one value and checks the names of its objects. t is what it is decoded into, nil if
// that reads its own names.
func walk(dec *json.Decoder, t reflect.Type, where string) error {
	token, err := dec.Token()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBody, err)
	}
	delim, nested := token.(json.Delim)
	if !nested {
		return nil
	}
	known := fields(t)
	seen := map[string]bool{}
	for dec.More() {
		inner := element(t)
		name := where
		if delim == '{' {
			key, err := dec.Token()
			if err != nil {
				return fmt.Errorf("%w: %w", ErrBody, err)
			}
			text, _ := key.(string) // an object's names are strings
			name = join(where, text)
			if seen[text] {
				return fmt.Errorf("%w: %.80q stands in it twice", ErrBody, name)
			}
			seen[text] = true
			if known != nil {
				field, ok := known[text]
				if !ok {
					return fmt.Errorf("%w: %.80q does not belong in it", ErrBody, name)
				}
				inner = field
			}
		}
		if err := walk(dec, inner, name); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil { // the end of it
		return fmt.Errorf("%w: %w", ErrBody, err)
	}
	return nil
}

func join(where, name string) string {
	if where == "" {
		return name
	}
	return where + "." + name
}

// fields are the names that a struct has in JSON; nil if it is none, or reads its own.
func fields(t reflect.Type) map[string]reflect.Type {
	t = bare(t)
	if t == nil || t.Kind() != reflect.Struct || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return nil
	}
	known := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.IsExported() && name != "-" && name != "" {
			known[name] = f.Type
		}
	}
	return known
}

func bare(t reflect.Type) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

func element(t reflect.Type) reflect.Type {
	if t = bare(t); t != nil && t.Kind() == reflect.Slice {
		return t.Elem()
	}
	return nil
}

// explain says in words of JSON what the decoder says in words of Go.
func explain(err error) error {
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &kind):
		return fmt.Errorf("%w: %.80q is %.40s, want %s", ErrBody, kind.Field, kind.Value, wanted(kind.Type))
	}
	return fmt.Errorf("%w: %w", ErrBody, err)
}

func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Bool:
		return "true or false"
	}
	return "an integer"
}
