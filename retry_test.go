package pacht_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
)

// attempts of S078: all the small ones, and then some up to 10,000 and past all sense.
func attempts() []int {
	list := []int{math.MinInt, -1, 0}
	for n := 1; n <= 200; n++ {
		list = append(list, n)
	}
	for n := 250; n <= 10_000; n += 50 {
		list = append(list, n)
	}
	return append(list, 10_001, math.MaxInt)
}

// S078: doubling wrapped around after 40 tries, and the job was retried hot.
func TestExponentialGrowsToItsCapAndNeverWrapsAround(t *testing.T) {
	for _, base := range []time.Duration{0, 1, time.Microsecond, time.Millisecond, time.Second, time.Hour, 24 * time.Hour, math.MaxInt64} {
		for _, most := range []time.Duration{0, 1, time.Second, time.Hour, pacht.MaxDelay, math.MaxInt64} {
			p := pacht.Exponential{Base: base, Cap: most}
			bound := most
			if bound == 0 {
				bound = time.Hour
			}
			last := time.Duration(0)
			for _, n := range attempts() {
				ceiling := p.Ceiling(n)
				if ceiling < last || ceiling > bound || ceiling <= 0 {
					t.Fatalf("base %s, cap %s, attempt %d: ceiling %s after %s", base, most, n, ceiling, last)
				}
				last = ceiling
				for _, r := range []float64{0, 0.25, 0.5, math.Nextafter(1, 0)} {
					if d := p.Delay(n, r); d < 0 || d > ceiling {
						t.Fatalf("base %s, cap %s, attempt %d, r %v: %s, ceiling %s", base, most, n, r, d, ceiling)
					}
				}
			}
			if last != bound {
				t.Errorf("base %s, cap %s: ends at %s", base, most, last)
			}
		}
	}
}

// S079: documented and real delays differed by a factor of 2.
func TestExponentialStartsAtItsBase(t *testing.T) {
	p := pacht.Exponential{}
	for attempt, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 10: 512 * time.Second, 12: 2048 * time.Second, 13: time.Hour} {
		if got := p.Ceiling(attempt); got != want {
			t.Errorf("attempt %d: up to %s, want %s", attempt, got, want)
		}
		if got := p.Delay(attempt, 0.5); got != want/2 {
			t.Errorf("attempt %d, r 0.5: %s, want %s", attempt, got, want/2)
		}
	}
}

func TestLinearGrowsByItsStepToItsCap(t *testing.T) {
	p := pacht.Linear{Step: 10 * time.Second, Cap: time.Minute}
	for attempt, want := range map[int]time.Duration{-5: 10 * time.Second, 1: 10 * time.Second, 2: 20 * time.Second, 6: time.Minute, 7: time.Minute, math.MaxInt: time.Minute} {
		if got := p.Delay(attempt, 0.9); got != want {
			t.Errorf("attempt %d: %s, want %s", attempt, got, want)
		}
	}
	for _, step := range []time.Duration{1, time.Second, 24 * time.Hour, math.MaxInt64} {
		last := time.Duration(0)
		for _, n := range attempts() {
			d := pacht.Linear{Step: step}.Delay(n, 0)
			if d < last || d > pacht.MaxDelay {
				t.Fatalf("step %s, attempt %d: %s after %s", step, n, d, last)
			}
			last = d
		}
	}
}

// S078: what a policy of one's own may return, and what a database can store.
func TestDelayOfCutsEveryPolicyToItsBounds(t *testing.T) {
	returns := func(d time.Duration) pacht.RetryPolicy {
		return pacht.RetryFunc(func(int, float64) time.Duration { return d })
	}
	for d, want := range map[time.Duration]time.Duration{
		math.MinInt64: 0, -1: 0, 0: 0, 1: 1, time.Hour: time.Hour,
		pacht.MaxDelay: pacht.MaxDelay, pacht.MaxDelay + 1: pacht.MaxDelay, math.MaxInt64: pacht.MaxDelay,
	} {
		if got := pacht.DelayOf(returns(d), 1, 0); got != want {
			t.Errorf("a policy that returns %d: %s, want %s", d, got, want)
		}
		if got := pacht.DelayOf(pacht.Fixed(d), 7, 0); got != want {
			t.Errorf("Fixed(%d): %s, want %s", d, got, want)
		}
	}
	if got := pacht.DelayOf(nil, 3, 0.5); got != 2*time.Second {
		t.Errorf("no policy: %s, want that of Exponential{}", got)
	}
	got := pacht.DelayOf(pacht.RetryFunc(func(attempt int, r float64) time.Duration {
		return time.Duration(attempt) * time.Duration(r*100)
	}), 3, 0.5)
	if got != 150 {
		t.Errorf("a policy was not given attempt and chance: %s", got)
	}
}

type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

func TestSettlementOfSaysWhatEachErrorMeans(t *testing.T) {
	job := pacht.JobInfo{ID: 7, Token: 3, Attempt: 2}
	ref := pacht.Ref{Job: 7, Token: 3}
	plain := errors.New("refused")
	wrap := func(err error) error { return fmt.Errorf("charge: %w", err) }
	policy := pacht.Fixed(5 * time.Second)
	for name, c := range map[string]struct {
		err  error
		want pacht.Settlement
	}{
		"nil":           {nil, pacht.Settlement{Outcome: "Completed"}},
		"plain":         {plain, pacht.Settlement{Outcome: "Failed", Delay: 5 * time.Second, Error: "refused"}},
		"wrapped plain": {wrap(plain), pacht.Settlement{Outcome: "Failed", Delay: 5 * time.Second, Error: "charge: refused"}},
		"permanent":     {pacht.Permanent(plain), pacht.Settlement{Outcome: "Failed", Permanent: true, Error: "refused"}},
		"wrapped permanent": {wrap(wrap(pacht.Permanent(plain))),
			pacht.Settlement{Outcome: "Failed", Permanent: true, Error: "charge: charge: refused"}},
		"retry after":          {pacht.RetryAfter(time.Hour, plain), pacht.Settlement{Outcome: "Failed", Delay: time.Hour, Error: "refused"}},
		"retry after no time":  {pacht.RetryAfter(0, plain), pacht.Settlement{Outcome: "Failed", Error: "refused"}},
		"retry after negative": {pacht.RetryAfter(-time.Hour, plain), pacht.Settlement{Outcome: "Failed", Error: "refused"}},
		"retry after ages":     {pacht.RetryAfter(math.MaxInt64, plain), pacht.Settlement{Outcome: "Failed", Delay: pacht.MaxDelay, Error: "refused"}},
		"wrapped retry after":  {wrap(pacht.RetryAfter(time.Hour, plain)), pacht.Settlement{Outcome: "Failed", Delay: time.Hour, Error: "charge: refused"}},
		"snooze":               {pacht.Snooze(time.Minute), pacht.Settlement{Outcome: "Snoozed", Delay: time.Minute}},
		"wrapped snooze":       {wrap(pacht.Snooze(time.Minute)), pacht.Settlement{Outcome: "Snoozed", Delay: time.Minute}},
		"snooze for no time":   {pacht.Snooze(0), pacht.Settlement{Outcome: "Failed", Delay: 5 * time.Second, Error: "snooze: 0s is not allowed, want more than 0"}},
		"snooze negative":      {pacht.Snooze(-1), pacht.Settlement{Outcome: "Failed", Delay: 5 * time.Second, Error: "snooze: -1ns is not allowed, want more than 0"}},
		"snooze for ever":      {pacht.Snooze(math.MaxInt64), pacht.Settlement{Outcome: "Snoozed", Delay: pacht.MaxDelay}},
		"cancel":               {pacht.Cancel(plain), pacht.Settlement{Outcome: "Cancelled", Error: "refused"}},
		"wrapped cancel":       {wrap(pacht.Cancel(plain)), pacht.Settlement{Outcome: "Cancelled", Error: "charge: refused"}},
		"unknown":              {pacht.UnknownOutcome(plain), pacht.Settlement{Outcome: "Unknown", Error: "refused"}},
		"wrapped unknown":      {wrap(pacht.UnknownOutcome(plain)), pacht.Settlement{Outcome: "Unknown", Error: "charge: refused"}},
		"the outermost class counts": {pacht.Permanent(wrap(pacht.Snooze(time.Hour))),
			pacht.Settlement{Outcome: "Failed", Permanent: true, Error: "charge: Snoozed for 1h0m0s"}},
		"a class in a join": {errors.Join(errors.New("and"), pacht.UnknownOutcome(plain)), pacht.Settlement{Outcome: "Unknown", Error: "and\nrefused"}},
		// S076: a nil pointer in an error has an Error method that panics.
		"nil pointer":         {(*nilError)(nil), pacht.Settlement{Outcome: "Failed", Delay: 5 * time.Second, Error: "<nil>"}},
		"unstorable":          {errors.New("a\x00b\xff"), pacht.Settlement{Outcome: "Failed", Delay: 5 * time.Second, Error: "a\uFFFDb\uFFFD"}},
		"unstorable and Dead": {pacht.Permanent(errors.New("\xff")), pacht.Settlement{Outcome: "Failed", Permanent: true, Error: "\uFFFD"}},
	} {
		c.want.Ref = ref
		got := pacht.SettlementOf(job, c.err, policy, 0.5)
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", c.want) {
			t.Errorf("%s:\n got  %+v\n want %+v", name, got, c.want)
		}
		if err := got.Validate(); err != nil {
			t.Errorf("%s: the settlement is refused: %v", name, err)
		}
	}
}

func TestClassesKeepNilAndTheErrorBehindThem(t *testing.T) {
	if pacht.Permanent(nil) != nil || pacht.RetryAfter(time.Second, nil) != nil || pacht.Cancel(nil) != nil || pacht.UnknownOutcome(nil) != nil {
		t.Error("a class made an error of nil")
	}
	plain := errors.New("refused")
	for _, err := range []error{pacht.Permanent(plain), pacht.RetryAfter(1, plain), pacht.Cancel(plain), pacht.UnknownOutcome(plain)} {
		if !errors.Is(err, plain) || err.Error() != "refused" || !pacht.Classed(err) || !pacht.Classed(fmt.Errorf("x: %w", err)) {
			t.Errorf("%v", err)
		}
	}
	if pacht.Classed(plain) || pacht.Classed(nil) || !pacht.Classed(pacht.Snooze(1)) {
		t.Error("Classed takes a plain error for one with a class, or the other way round")
	}
}

// deep is one of many errors around another.
type deep struct{ inner error }

func (d *deep) Error() string { return "around" }
func (d *deep) Unwrap() error { return d.inner }

// S072: the error was bigger than the column, and saving the failure failed.
func TestSettlementOfHugeErrorsIsBounded(t *testing.T) {
	chain := error(pacht.Permanent(errors.New("core")))
	for range 1_000_000 {
		chain = &deep{chain}
	}
	if s := pacht.SettlementOf(pacht.JobInfo{}, chain, nil, 0); !s.Permanent || s.Error != "around" {
		t.Errorf("10^6 wrapped errors: %+v", s)
	}
	many := make([]error, 1_000_000)
	for i := range many {
		many[i] = errors.New("zażółć")
	}
	for name, err := range map[string]error{"10^6 joined": errors.Join(many...), "20 MB": errors.New(strings.Repeat("ż", 10<<20))} {
		s := pacht.SettlementOf(pacht.JobInfo{}, err, nil, 0)
		if len(s.Error) > pacht.MaxErrorBytes || len(s.Error) < pacht.MaxErrorBytes-20 || !strings.HasSuffix(s.Error, "...[cut]") {
			t.Errorf("%s: an error of %d bytes that ends in %q", name, len(s.Error), s.Error[len(s.Error)-20:])
		}
	}
}
