package main

import (
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/pacht-queue/pacht"
)

const day = 24 * time.Hour

// stamp is a moment as people read it, with how far off it is.
func stamp(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return fmt.Sprintf("%s (%s)", t.UTC().Format("2006-01-02 15:04:05Z"), ago(t, now))
}

// ago is how far off a moment is.
func ago(t, now time.Time) string {
	switch d := t.Sub(now); {
	case t.IsZero():
		return "never"
	case d > -time.Second && d <= 0:
		return "just now"
	case d < 0:
		return short(-d) + " ago"
	default:
		return "in " + short(d)
	}
}

// short is a duration in at most two units.
func short(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + short(-d)
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < time.Hour:
		return two(d, time.Minute, "m", time.Second, "s")
	case d < day:
		return two(d, time.Hour, "h", time.Minute, "m")
	}
	return two(d, day, "d", time.Hour, "h")
}

func two(d, big time.Duration, bigName string, small time.Duration, smallName string) string {
	s := strconv.FormatInt(int64(d/big), 10) + bigName
	if rest := d % big / small; rest > 0 {
		s += strconv.FormatInt(int64(rest), 10) + smallName
	}
	return s
}

// durationValue is a flag that also reads days and weeks: "30d", "2w", "36h".
type durationValue struct{ d *time.Duration }

func (v durationValue) Type() string { return "duration" }

func (v durationValue) String() string {
	if v.d == nil || *v.d == 0 {
		return ""
	}
	return v.d.String()
}

func (v durationValue) Set(s string) error {
	d, err := parseDuration(s)
	if err != nil {
		return err
	}
	*v.d = d
	return nil
}

var decimal = regexp.MustCompile(`^[+-]?([0-9]{1,20}\.?[0-9]{0,20}|\.[0-9]{1,20})$`)

// parseDuration reads what time.ParseDuration does, and whole or broken days and weeks: exactly,
// because a TTL of 0.7d that is a nanosecond short is no whole number of milliseconds.
func parseDuration(s string) (time.Duration, error) {
	for suffix, unit := range map[string]time.Duration{"d": day, "w": 7 * day} {
		number, ok := strings.CutSuffix(s, suffix)
		if !ok || !decimal.MatchString(number) {
			continue
		}
		if n, ok := new(big.Rat).SetString(number); ok {
			n.Mul(n, new(big.Rat).SetInt64(int64(unit)))
			if whole := new(big.Int).Quo(n.Num(), n.Denom()); whole.IsInt64() {
				return time.Duration(whole.Int64()), nil
			}
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, &pacht.InvalidError{Field: "duration", Value: strconv.Quote(cut(s, 40)), Bound: `a number with a unit, such as "90s", "36h", "30d" or "2w"`}
	}
	return d, nil
}
