package sweeping

import (
	"testing"
	"time"
)

func TestLookGoesOnWhereItsLastPageEnded(t *testing.T) {
	s := State{WholeDue: true, At: Place{ID: 70}}.Begin()
	if s.At != (Place{}) || !s.Whole || !s.Looking {
		t.Fatalf("a look from the start is due: %+v", s)
	}
	s, in, whole := s.Next(Page{Last: Place{ID: 10}, Took: time.Millisecond}, time.Minute)
	if s.At.ID != 10 || in != 0 || whole >= 0 || s.Begin() != s {
		t.Errorf("in the middle of a look: %+v, next in %s, whole in %s", s, in, whole)
	}
	s, in, _ = s.Next(Page{Last: Place{ID: 15}, Ended: true, Took: time.Millisecond}, time.Minute)
	if s.Looking || in != time.Minute {
		t.Errorf("at the end: %+v, next in %s", s, in)
	}
	s.WholeDue = false
	if s = s.Begin(); s.At.ID != 15 || s.Whole || s.Cost != 0 {
		t.Errorf("the next look, none from the start being due: %+v", s)
	}
}

func TestLooksFromTheStartTakeTwoPerCentOfTheTime(t *testing.T) {
	for _, c := range []struct{ took, want time.Duration }{
		{time.Millisecond, time.Second}, // the period
		{10 * time.Second, 1000 * time.Second},
	} {
		s := State{WholeDue: true}.Begin()
		s, _, _ = s.Next(Page{Took: c.took}, time.Second)
		_, _, whole := s.Next(Page{Took: c.took, Ended: true}, time.Second)
		if whole != c.want {
			t.Errorf("two pages of %s: the next look from the start in %s, want %s", c.took, whole, c.want)
		}
	}
	s := State{}.Begin()
	if _, _, whole := s.Next(Page{Took: time.Hour, Ended: true}, time.Second); whole >= 0 {
		t.Errorf("a look that went on moved the next one from the start: %s", whole)
	}
}
