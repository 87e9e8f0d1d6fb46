package peer

import (
	"encoding/json"
	"testing"
)

// All peers are given the same bytes, written by hand or by encoding/json.
func TestPayloadsHaveTheLengthAskedFor(t *testing.T) {
	for _, length := range []int{200, 1000} {
		for _, number := range []int{0, 9, 10, 99_999} {
			p := NewPayload(number, length)
			text, err := json.Marshal(p)
			if err != nil || len(text) != length || string(text) != string(p.JSON()) {
				t.Errorf("number %d: %d bytes, want %d; by hand %s; %v", number, len(text), length, p.JSON(), err)
			}
		}
	}
}

func TestBatchesLeaveNoJobOut(t *testing.T) {
	for _, n := range []int{1, 999, 1000, 1001, 2500} {
		next := 0
		err := batches(n, 200, 1000, func(batch []Payload) error {
			for _, p := range batch {
				if p.Number != next {
					t.Fatalf("of %d: number %d, want %d", n, p.Number, next)
				}
				next++
			}
			return nil
		})
		if err != nil || next != n {
			t.Errorf("%d of %d, %v", next, n, err)
		}
	}
}

func TestPeersHaveNamesOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range All() {
		a := p.About()
		if seen[a.Name] || a.Name == "" || a.Settings == "" || a.Keeps == "" || a.Unfinished == "" || len(a.Acts) == 0 {
			t.Errorf("%+v", a)
		}
		seen[a.Name] = true
	}
}
