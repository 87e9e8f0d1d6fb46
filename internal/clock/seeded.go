package clock

import (
	"hash/fnv"
	"math/rand/v2"
)

// Seeded is chance that can be repeated: the same seed and the same names give the same
// numbers. For simulations; not for one goroutine's use by another.
func Seeded(seed uint64, about ...string) *rand.Rand {
	h := fnv.New64a()
	for _, name := range about {
		h.Write([]byte(name)) // never fails
		h.Write([]byte{0})
	}
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}
