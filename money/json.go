package money

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
)

// UnmarshalJSON reads an object with amount_minor, an integer, and currency, a known code:
// both, each once, and nothing else. null is refused, and so are a string, a fraction and an
// exponent in place of the integer: nothing defaults to zero. A field that is missing in an
// enclosing object is not seen here; whoever decodes one calls Validate.
func (a *Amount) UnmarshalJSON(b []byte) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("%w: %.60s, want an object with amount_minor and currency", ErrAmount, b)
	}
	var read Amount
	seen := map[string]bool{}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return fmt.Errorf("%w: %w", ErrAmount, err)
		}
		key, _ := name.(string) // an object's names are strings
		if seen[key] {
			return fmt.Errorf("%w: %.40q stands in it twice", ErrAmount, key)
		}
		seen[key] = true
		value, err := dec.Token()
		if err != nil {
			return fmt.Errorf("%w: %w", ErrAmount, err)
		}
		if err := read.set(key, value); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil { // the closing brace
		return fmt.Errorf("%w: %w", ErrAmount, err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return fmt.Errorf("%w: more than one document", ErrAmount)
	}
	for _, key := range []string{"amount_minor", "currency"} {
		if !seen[key] {
			return fmt.Errorf("%w: %s is missing", ErrAmount, key)
		}
	}
	*a = read
	return nil
}

func (a *Amount) set(key string, value json.Token) (err error) {
	switch key {
	case "amount_minor":
		n, ok := value.(json.Number)
		if !ok {
			return fmt.Errorf("%w: amount_minor is %s, want an integer", ErrAmount, said(value))
		}
		// Neither 20.0 nor 2e1: an integer is written as one.
		if a.Minor, err = strconv.ParseInt(n.String(), 10, 64); err != nil {
			return fmt.Errorf("%w: amount_minor is %.40s, want an integer of at most 64 bits", ErrAmount, n)
		}
	case "currency":
		code, ok := value.(string)
		if !ok {
			return fmt.Errorf("%w: currency is %s, want a string", ErrCurrency, said(value))
		}
		a.Currency, err = ParseCurrency(code)
	default:
		err = fmt.Errorf("%w: %.40q does not belong in it", ErrAmount, key)
	}
	return err
}

func said(value json.Token) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case string:
		return fmt.Sprintf("the string %.40q", v)
	}
	return fmt.Sprintf("%.40v", value)
}
