package history

import "math"

// forever is later than any time of a run, with room to add to it.
const forever = math.MaxInt64 / 4

// span is what is known of a moment on the database's clock, in microseconds: not before lo,
// not after hi. An answer that tells the moment makes both the same.
type span struct{ lo, hi int64 }

func exactly(t int64) span { return span{t, t} }

// after is a moment d later, known as well as this one.
func (s span) after(d int64) span { return span{s.lo + d, min(s.hi, forever) + d} }

func (s span) holds(t int64) bool { return s.lo <= t && t <= s.hi }

// give makes room for what a database rounds: SQLite counts whole milliseconds.
func (s span) give(d int64) span { return span{s.lo - d, s.hi + d} }
