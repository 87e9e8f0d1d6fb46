package lab

import (
	"crypto/rand"
	"encoding/binary"
	"os"
	"strconv"
	"testing"

	"github.com/pacht-queue/pacht/internal/clock"
)

// Seed is the seed of a test: another one each time, or PACHT_SEED. A test that fails says how
// to replay it; what it replays is the order of the faults, not that of the processes.
func Seed(t testing.TB) uint64 {
	t.Helper()
	var seed uint64
	if given := os.Getenv("PACHT_SEED"); given != "" {
		var err error
		if seed, err = strconv.ParseUint(given, 10, 64); err != nil {
			t.Fatalf("PACHT_SEED=%q: want a whole number, 0 or more", given)
		}
	} else {
		var b [4]byte
		_, _ = rand.Read(b[:]) // never fails, by its documentation
		seed = uint64(binary.BigEndian.Uint32(b[:]))
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("replay with PACHT_SEED=%d", seed)
		}
	})
	return seed
}

// Draw picks n of them by the seed in the short form, each run others, and takes all in the long one.
func Draw[T any](t testing.TB, seed uint64, n int, all []T) []T {
	if Long() || n >= len(all) {
		return all
	}
	drawn := make([]T, 0, n)
	for _, i := range clock.Seeded(seed, "draw", t.Name()).Perm(len(all))[:n] {
		drawn = append(drawn, all[i])
	}
	return drawn
}
