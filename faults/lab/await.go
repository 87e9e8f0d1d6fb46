package lab

import (
	"testing"
	"time"
)

// Await polls until a condition holds, and fails the test if it does not within the time.
func Await(t testing.TB, patience time.Duration, what string, holds func() bool) {
	t.Helper()
	if !Within(patience, holds) {
		t.Fatalf("waited %s in vain until %s", patience, what)
	}
}

// Within polls until a condition holds, and says whether it did within the time.
func Within(patience time.Duration, holds func() bool) bool {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !holds(); <-tick.C {
		if time.Now().After(deadline) {
			return holds()
		}
	}
	return true
}
