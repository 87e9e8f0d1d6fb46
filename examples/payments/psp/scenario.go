package psp

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pacht-queue/pacht/internal/clock"
)

// What can happen to a reference.
const (
	Success         = "success"
	Decline         = "decline"          // refused for good
	Slow            = "slow"             // the answer takes After longer
	TimeoutAfter    = "timeout_after"    // done, and the answer never comes
	TimeoutBefore   = "timeout_before"   // nothing is done, and no answer comes
	ServerError     = "server_error"     // 500; done or not, by the seed
	TooMany         = "too_many"         // 429 with Retry-After; nothing is done
	KeyForgotten    = "key_forgotten"    // done, the answer never comes, and the key is forgotten After it
	LookupLate      = "lookup_late"      // done, the answer never comes, and look-ups do not find it until After
	WebhookLost     = "webhook_lost"     // this and the next three are accepted first, and done After it
	WebhookLate     = "webhook_late"     // told of once more After later
	WebhookTwice    = "webhook_twice"    // each event is sent twice, at once
	WebhookDisorder = "webhook_disorder" // after an attempt that failed; events come newest first, the oldest once more
	ChargedBack     = "charged_back"     // done, and taken back After it
	WrongAmount     = "wrong_amount"     // done with another amount, or told so: see the variants
	ListShift       = "list_shift"       // not in the list until After it, and then at its old place
)

// Variants of WrongAmount. With the first three other money is taken than was asked for; with
// the others it is the right money, and every record of it is garbage.
const (
	Lower         = "lower"
	Higher        = "higher"
	OtherCurrency = "currency"
	Null          = "null"     // the amount is null
	Missing       = "missing"  // there is no amount
	Decimal       = "decimal"  // "20.00000000"
	Stranger      = "stranger" // another payment's record
)

// Scenario is what happens to one reference.
type Scenario struct {
	Name    string        `json:"name"`
	Variant string        `json:"variant,omitempty"`  // of WrongAmount; "" = Lower
	Calls   int           `json:"calls,omitempty"`    // how many calls get no good answer; 0 = one, -1 = all
	After   time.Duration `json:"after_ns,omitempty"` // 0 = Config.Delay
}

// scenarios lists them, with what is special about some.
var scenarios = map[string]struct{ async, silent bool }{
	Success: {}, Decline: {}, Slow: {}, ServerError: {}, TooMany: {}, TimeoutBefore: {},
	ChargedBack: {}, WrongAmount: {}, ListShift: {},
	TimeoutAfter: {silent: true}, KeyForgotten: {silent: true}, LookupLate: {silent: true},
	WebhookLost: {async: true}, WebhookLate: {async: true}, WebhookTwice: {async: true}, WebhookDisorder: {async: true},
}

// Scenarios lists the names of all scenarios.
func Scenarios() []string { return slices.Sorted(maps.Keys(scenarios)) }

func (s Scenario) check() error {
	if _, ok := scenarios[s.Name]; !ok {
		return fmt.Errorf("scenario: %.40q is not allowed, want one of %v", s.Name, Scenarios())
	}
	switch s.Variant {
	case "", Lower, Higher, OtherCurrency, Null, Missing, Decimal, Stranger:
	default:
		return fmt.Errorf("variant: %.40q is not allowed", s.Variant)
	}
	if s.Calls < -1 || s.After < 0 {
		return fmt.Errorf("scenario %s: %d calls, after %s are not allowed, want -1 or more, and 0 or more", s.Name, s.Calls, s.After)
	}
	return nil
}

// meets says whether the nth call of a key gets no good answer.
func (s Scenario) meets(nth int) bool { return s.Calls < 0 || nth <= max(s.Calls, 1) }

// async says whether a charge is only accepted at first.
func (s Scenario) async() bool { return scenarios[s.Name].async }

// silent says whether the thing is done and the answer never comes.
func (s Scenario) silent() bool { return scenarios[s.Name].silent }

// Draw chooses by weight: the same seed and reference give the same scenario. An amount that it
// makes wrong is a sound record all the same: garbage must be asked for.
func (c Config) Draw(reference string) Scenario {
	all := 0
	names := slices.Sorted(maps.Keys(c.Mix))
	for _, name := range names {
		all += c.Mix[name]
	}
	if all == 0 {
		return Scenario{Name: Success}
	}
	chance := clock.Seeded(c.Seed, "scenario", reference)
	n := chance.IntN(all)
	for _, name := range names {
		switch n -= c.Mix[name]; {
		case n >= 0:
		case name == WrongAmount:
			return Scenario{Name: name, Variant: []string{Lower, Higher, OtherCurrency}[chance.IntN(3)]}
		default:
			return Scenario{Name: name}
		}
	}
	return Scenario{Name: Success}
}

// scenario is what happens to this reference, with its times filled in. The caller holds no
// lock of the ledger.
func (s *Server) scenario(reference string) Scenario {
	told, ok := s.ledger.told(reference)
	if !ok {
		told = s.cfg.Draw(reference)
	}
	if told.After == 0 {
		told.After = s.cfg.Delay
	}
	return told
}
