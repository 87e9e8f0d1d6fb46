package reconcile

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pacht-queue/pacht"
)

// Action is what is done about a difference.
type Action string

const (
	// Heal calls Ours.Heal. One that fails is tried again, and given to a person at MaxAge.
	Heal Action = "heal"
	// Wait asks again, and gives it to a person at MaxAge. A parked job of which the provider
	// knows nothing (MissingThere) is put back to Pending meanwhile, if the probers of all its
	// effects say that they may be called again under the same key (effect.Finding.Again).
	Wait Action = "wait"
	// Hold gives it to a person at once.
	Hold Action = "hold"
)

// Policy says what to do about a class. A person's break is looked at again by the slow lane: it
// is closed by itself once both sides agree, and healed if it can be by then.
type Policy struct {
	Action Action
	// Base and Cap bound how long to wait before it is asked again: half the break's age.
	Base, Cap time.Duration // 0 = 30s and 1h; 1ms to 30 days, Base not above Cap
	// MaxAge is the age of a break at which it goes to a person, never into silence.
	MaxAge time.Duration // 0 = 24h; up to a year
}

// DefaultPolicies says what is done about each class unless Config.Policies says otherwise.
//
//	paid there, pending or failed here   heal
//	failed there, pending here           heal
//	refunded or charged back there       heal
//	unknown there                        ask again, for 72 h
//	unknown here                         ask again, for 24 h
//	here but not there                   ask again, for 1 h: providers find late what they have
//	there but not here                   hold: whose money is it?
//	amount or currency differs           hold
//	charged twice                        hold
//	paid here, failed there              hold
func DefaultPolicies() map[Class]Policy {
	heal := Policy{Action: Heal, Base: 30 * time.Second, Cap: time.Hour, MaxAge: day}
	wait := Policy{Action: Wait, Base: 30 * time.Second, Cap: time.Hour, MaxAge: day}
	hold := Policy{Action: Hold, Base: 30 * time.Second, Cap: time.Hour, MaxAge: day}
	unknown, missing := wait, wait
	unknown.MaxAge, missing.MaxAge, missing.Cap = 72*time.Hour, time.Hour, 10*time.Minute
	return map[Class]Policy{
		PaidThere: heal, PaidThereLate: heal, FailedThere: heal, ReversedThere: heal,
		UnknownThere: unknown, UnknownHere: wait, MissingThere: missing,
		MissingHere: hold, AmountDiffers: hold, ChargedTwice: hold, PaidHere: hold,
	}
}

// withDefaults fills in what the user's policies do not say.
func withDefaults(own map[Class]Policy) (map[Class]Policy, error) {
	all := DefaultPolicies()
	for _, class := range slices.Sorted(maps.Keys(own)) {
		p, field := own[class], "policy of "+string(class)
		usual, known := all[class]
		if !known {
			return nil, &pacht.InvalidError{Field: "policy", Value: fmt.Sprintf("%.40q", class), Bound: "a class of differences, see Classes"}
		}
		if p.Base == 0 {
			p.Base = usual.Base
			if p.Cap > 0 {
				p.Base = min(p.Base, p.Cap)
			}
		}
		if p.Cap == 0 {
			p.Cap = max(usual.Cap, p.Base)
		}
		if p.MaxAge == 0 {
			p.MaxAge = usual.MaxAge
		}
		switch {
		case p.Action != Heal && p.Action != Wait && p.Action != Hold:
			return nil, &pacht.InvalidError{Field: field, Value: fmt.Sprintf("%.40q", p.Action), Bound: "heal, wait or hold"}
		case p.Action == Heal && (class == UnknownThere || class == UnknownHere || class == MissingThere):
			return nil, &pacht.InvalidError{Field: field, Value: string(p.Action), Bound: "wait or hold: silence resolves nothing"}
		case p.Base < time.Millisecond || p.Cap > 30*day || p.Base > p.Cap:
			return nil, &pacht.InvalidError{Field: field + ": base and cap", Value: p.Base.String() + " and " + p.Cap.String(), Bound: "1ms to 720h, base not above cap"}
		case p.MaxAge < 0 || p.MaxAge > year:
			return nil, &pacht.InvalidError{Field: field + ": max age", Value: p.MaxAge.String(), Bound: "1ns to 8760h"}
		}
		all[class] = p
	}
	return all, nil
}

// wait is how long to wait before a break of this age is asked again: so the pauses grow with
// the age and never become silence (S096). It ends no later than the break's time to go to a person.
func (p Policy) wait(age time.Duration) time.Duration {
	return min(max(age/2, p.Base), p.Cap, max(p.MaxAge-age, time.Millisecond))
}
