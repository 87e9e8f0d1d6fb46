package reconcile

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/money"
)

func record(state State, change ...func(*Record)) Record {
	r := Record{Reference: "p1", State: state}
	if state != Inconclusive && state != NotFound {
		r.Amount = money.Amount{Minor: 100, Currency: "EUR"}
	}
	if state == Refunded {
		r.Refunded = 30
	}
	if state == ChargedBack {
		r.ChargedBack = 40
	}
	for _, f := range change {
		f(&r)
	}
	return r
}

// Every pair of states has one class, and the same record on both sides has none.
func TestEachPairOfStatesHasItsClass(t *testing.T) {
	states := []State{Inconclusive, NotFound, Pending, Succeeded, Failed, Refunded, ChargedBack} // theirs, as the columns
	want := map[State][]Class{
		Inconclusive: {UnknownHere, UnknownHere, UnknownHere, UnknownHere, UnknownHere, UnknownHere, UnknownHere},
		NotFound:     {UnknownThere, "", MissingHere, MissingHere, "", MissingHere, MissingHere},
		Pending:      {UnknownThere, MissingThere, UnknownThere, PaidThere, FailedThere, PaidThere, PaidThere},
		Succeeded:    {UnknownThere, MissingThere, UnknownThere, "", PaidHere, ReversedThere, ReversedThere},
		Failed:       {UnknownThere, "", UnknownThere, PaidThereLate, "", PaidThereLate, PaidThereLate},
		Refunded:     {UnknownThere, MissingThere, UnknownThere, MissingThere, PaidHere, "", ReversedThere},
		ChargedBack:  {UnknownThere, MissingThere, UnknownThere, MissingThere, PaidHere, ReversedThere, ""},
	}
	for ours, row := range want {
		for i, theirs := range states {
			d := compare(record(ours), record(theirs))
			if d.class != row[i] || (d.class != "") != (d.why != "") {
				t.Errorf("ours %q, theirs %q: %q (%s), want %q", ours, theirs, d.class, d.why, row[i])
			}
			if d.risk.Minor < 0 {
				t.Errorf("ours %q, theirs %q: %d at risk", ours, theirs, d.risk.Minor)
			}
		}
	}
}

// S104, S105: the gravest difference is told, with what is at risk.
func TestGravestDifferenceIsToldWithWhatIsAtRisk(t *testing.T) {
	amount := func(minor int64, currency money.Currency) func(*Record) {
		return func(r *Record) { r.Amount = money.Amount{Minor: minor, Currency: currency} }
	}
	refunded := func(minor int64) func(*Record) { return func(r *Record) { r.Refunded = minor } }
	back := func(minor int64) func(*Record) { return func(r *Record) { r.ChargedBack = minor } }
	charges := func(n int) func(*Record) { return func(r *Record) { r.Charges = n } }
	for _, c := range []struct {
		ours, theirs Record
		class        Class
		risk         int64
		currency     money.Currency
	}{
		{record(Pending), record(Succeeded, amount(90, "EUR")), AmountDiffers, 10, "EUR"},
		{record(Pending), record(Succeeded, amount(100, "USD")), AmountDiffers, 100, "USD"},
		{record(Pending), record(Pending, amount(90, "EUR")), AmountDiffers, 10, "EUR"},
		{record(Pending), record(Pending, amount(0, "")), UnknownThere, 100, "EUR"},
		{record(Failed), record(Succeeded, amount(90, "EUR")), AmountDiffers, 10, "EUR"},
		{record(Pending), record(Failed, amount(90, "EUR")), FailedThere, 100, "EUR"},
		{record(Pending), record(Succeeded, charges(2), amount(90, "EUR")), ChargedTwice, 90, "EUR"},
		{record(Succeeded), record(Succeeded, charges(3)), ChargedTwice, 200, "EUR"},
		{record(Succeeded), record(Succeeded, charges(math.MaxInt), amount(math.MaxInt64, "EUR")), ChargedTwice, math.MaxInt64, "EUR"},
		{record(Succeeded), record(Succeeded, charges(1)), "", 0, ""},
		{record(Succeeded), record(Succeeded, refunded(40)), ReversedThere, 40, "EUR"},
		{record(Refunded), record(Refunded, refunded(50)), ReversedThere, 20, "EUR"},
		{record(Refunded, refunded(60)), record(Refunded), MissingThere, 30, "EUR"},
		{record(Succeeded, refunded(30)), record(Refunded), "", 0, ""},
		{record(Refunded), record(Refunded, refunded(130)), AmountDiffers, 30, "EUR"},
		{record(Succeeded), record(ChargedBack), ReversedThere, 40, "EUR"},
		{record(ChargedBack), record(ChargedBack, back(70)), ReversedThere, 30, "EUR"},
		{record(ChargedBack), record(ChargedBack, back(39)), MissingThere, 1, "EUR"},
		{record(ChargedBack), record(Succeeded), MissingThere, 40, "EUR"},
		{record(ChargedBack), record(Succeeded, back(40)), "", 0, ""},
		{record(ChargedBack), record(ChargedBack, refunded(60)), ReversedThere, 60, "EUR"},
		{record(ChargedBack, refunded(10)), record(ChargedBack, refunded(5), back(50)), ReversedThere, 10, "EUR"},
		{record(ChargedBack, refunded(10)), record(ChargedBack, refunded(5)), MissingThere, 5, "EUR"},
		{record(ChargedBack), record(ChargedBack, refunded(61)), AmountDiffers, 1, "EUR"},
		{record(Pending), record(ChargedBack, back(101)), AmountDiffers, 1, "EUR"},
		{record(Refunded), record(ChargedBack, back(100)), AmountDiffers, 30, "EUR"}, // no transition can write down both
		{record(ChargedBack), record(ChargedBack, refunded(math.MaxInt64), back(math.MaxInt64)), AmountDiffers, math.MaxInt64 - 100, "EUR"},
	} {
		d := compare(c.ours, c.theirs)
		if d.class != c.class || d.risk.Minor != c.risk || d.risk.Currency != c.currency {
			t.Errorf("ours %+v, theirs %+v: %+v, want %q, %d %s", c.ours, c.theirs, d, c.class, c.risk, c.currency)
		}
	}
}

// S096: the pauses grow with the age, are never longer than the cap, and end in time for a person.
func TestPausesGrowWithTheAgeOfABreak(t *testing.T) {
	for class, p := range DefaultPolicies() {
		last := time.Duration(0)
		for age := time.Duration(0); age < p.MaxAge; age += p.wait(age) {
			pause := p.wait(age)
			if pause <= 0 || pause > p.Cap || pause > p.MaxAge-age && pause > time.Millisecond {
				t.Errorf("%s, age %s: a pause of %s", class, age, pause)
			}
			if pause < last && age+pause < p.MaxAge {
				t.Errorf("%s, age %s: the pause shrinks from %s to %s", class, age, last, pause)
			}
			last = pause
		}
	}
}

func TestEachClassHasAPolicyAndAbsurdOnesAreRefused(t *testing.T) {
	all, err := withDefaults(nil)
	if err != nil || len(all) != len(Classes) {
		t.Fatalf("%d policies for %d classes, %v", len(all), len(Classes), err)
	}
	for _, class := range Classes {
		if p := all[class]; p.Action == "" || p.Base <= 0 || p.Cap < p.Base || p.MaxAge <= 0 {
			t.Errorf("%s: %+v", class, p)
		}
	}
	for _, bad := range []map[Class]Policy{
		{"odd": {Action: Hold}},
		{PaidThere: {}},
		{PaidThere: {Action: "ignore"}},
		{UnknownThere: {Action: Heal}},
		{UnknownHere: {Action: Heal}},
		{MissingThere: {Action: Heal}},
		{PaidThere: {Action: Heal, Base: time.Hour, Cap: time.Minute}},
		{PaidThere: {Action: Heal, Base: -1}},
		{PaidThere: {Action: Heal, Cap: 31 * day}},
		{PaidThere: {Action: Heal, MaxAge: -1}},
		{PaidThere: {Action: Heal, MaxAge: 2 * year}},
	} {
		var invalid *pacht.InvalidError
		if _, err := withDefaults(bad); !errors.As(err, &invalid) || invalid.Bound == "" {
			t.Errorf("%v: %v", bad, err)
		}
	}
	all, err = withDefaults(map[Class]Policy{PaidThere: {Action: Wait, Cap: time.Second}, MissingThere: {Action: Hold, Base: 2 * time.Hour}})
	if err != nil || all[PaidThere].Base != time.Second || all[MissingThere].Cap != 2*time.Hour || all[PaidThere].MaxAge != day {
		t.Errorf("%+v, %v", all, err)
	}
}

type nobody struct {
	Store
	Ours
	Theirs
}

func TestConfigurationsThatMakeNoSenseAreRefusedNamingFieldValueAndBound(t *testing.T) {
	good := Config{Store: nobody{}, Ours: nobody{}, Theirs: nobody{}}
	for field, change := range map[string]func(*Config){
		"reconcile store":       func(c *Config) { c.Store = nil },
		"reconcile ours":        func(c *Config) { c.Ours = nil },
		"reconcile theirs":      func(c *Config) { c.Theirs = nil },
		"reconcile grace":       func(c *Config) { c.Grace = time.Millisecond },
		"reconcile period":      func(c *Config) { c.Period = -time.Second },
		"reconcile slow period": func(c *Config) { c.Period, c.SlowPeriod = time.Hour, time.Minute },
		"reconcile list period": func(c *Config) { c.ListPeriod = time.Second },
		"reconcile window":      func(c *Config) { c.ListPeriod, c.Window = day, time.Hour },
		"reconcile timeout":     func(c *Config) { c.Timeout = time.Hour },
		"reconcile rate":        func(c *Config) { c.Rate = math.NaN() },
		"reconcile parallel":    func(c *Config) { c.Parallel = 65 },
		"queue":                 func(c *Config) { c.Queue = "a b" },
		"by":                    func(c *Config) { c.By = "a\x00" },
		"policy":                func(c *Config) { c.Policies = map[Class]Policy{"odd": {Action: Heal}} },
	} {
		cfg := good
		change(&cfg)
		var invalid *pacht.InvalidError
		if _, err := New(cfg); !errors.As(err, &invalid) || invalid.Field != field || invalid.Bound == "" {
			t.Errorf("%s: %v", field, err)
		}
	}
	r, err := New(good)
	if err != nil || r.lister != nil || r.cfg.Period != time.Minute || r.cfg.Window != 7*day || r.cfg.By == "" {
		t.Errorf("%+v, %v", r, err)
	}
}
