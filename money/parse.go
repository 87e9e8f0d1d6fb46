package money

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// decimals: no plus, no leading zeros, no spaces, no separators but the point, no exponent.
var decimals = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)

// Parse reads an exact decimal: either whole units ("20") or with exactly the decimals that the
// currency has ("20.00" euros). More of them are refused also if they are zeros: who writes
// "20.00000000" does not count in cents, and should be asked. So is "-0".
func Parse(s, currency string) (Amount, error) {
	c, err := ParseCurrency(currency)
	if err != nil {
		return Amount{}, err
	}
	exponent, _ := c.Exponent() // known: it was just parsed
	if !decimals.MatchString(s) {
		return Amount{}, fmt.Errorf("%w: %.40q, want a decimal number such as 20 or 20.00", ErrAmount, s)
	}
	whole, fraction, _ := strings.Cut(s, ".")
	switch {
	case fraction == "":
		fraction = strings.Repeat("0", exponent)
	case len(fraction) != exponent:
		return Amount{}, fmt.Errorf("%w: %.40q has %d decimals, %s has %d", ErrAmount, s, len(fraction), c, exponent)
	}
	minor, err := strconv.ParseInt(whole+fraction, 10, 64)
	if err != nil {
		return Amount{}, fmt.Errorf("%w: %.40s %s", ErrOverflow, s, c)
	}
	if minor == 0 && strings.HasPrefix(s, "-") {
		return Amount{}, fmt.Errorf("%w: %.40q: zero has no sign", ErrAmount, s)
	}
	return Amount{Minor: minor, Currency: c}, nil
}
