// Package sweeping decides how a sweep goes through a table in pages: pure, and the same on
// every database.
//
// A look from the start of the table would walk again and again over what is to stay, and,
// on PostgreSQL, over what was deleted and not vacuumed yet. A look that only goes on from
// where the last one ended would miss what became old behind it. So looks go on, and those
// from the start are rationed by what they cost.
package sweeping

import "time"

// wholeEvery is how many times its own duration a look from the start is kept away from the
// next one: at most two per cent of the time.
const wholeEvery = 50

// Place is how far a look has got, by the key it goes by: microseconds since 1970 (or none),
// then a number.
type Place struct{ Us, ID int64 }

// State is what is kept of a target's sweep between pages.
type State struct {
	At       Place         // where the look under way, or the last one, has got to
	Looking  bool          // a look is under way
	Whole    bool          // it began at the start
	Cost     time.Duration // what it took so far
	WholeDue bool          // by the database's clock; not stored
}

// Page is what one page found out.
type Page struct {
	Last  Place // what it looked at last
	Ended bool  // nothing behind it is old enough
	Took  time.Duration
}

// Begin prepares the next page: the one after the last, or the first of a look.
func (s State) Begin() State {
	if s.Looking {
		return s
	}
	s.Looking, s.Whole, s.Cost = true, s.WholeDue, 0
	if s.Whole {
		s.At = Place{}
	}
	return s
}

// Next is the state after a page, when the next one is due, and when the next look from the
// start may begin; negative = as it was.
func (s State) Next(p Page, period time.Duration) (next State, in, wholeIn time.Duration) {
	s.At, s.Cost = p.Last, s.Cost+p.Took
	if !p.Ended {
		return s, 0, -1
	}
	s.Looking = false
	if !s.Whole {
		return s, period, -1
	}
	return s, period, max(period, wholeEvery*s.Cost)
}
