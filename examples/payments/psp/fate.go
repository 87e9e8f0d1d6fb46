package psp

import (
	"strconv"
	"sync"
	"time"

	"github.com/pacht-queue/pacht/internal/clock"
)

// fate is what will happen to one call beside its scenario: decided by the seed, the key and
// how often the key was seen, so that a run can be repeated whatever order the calls come in.
type fate struct {
	nth           int           // call under this key
	before, after time.Duration // how long it takes to the charge, and from there to the answer
	failBefore    bool          // 503, and nothing was done
	failAfter     bool          // done, and then the answer is lost or a 502
	drop          bool          // of failAfter: the connection is cut instead of a 502
	decline       bool
}

type fates struct {
	cfg  Config
	mu   sync.Mutex
	seen map[string]int
}

func (f *fates) of(key string) fate {
	f.mu.Lock()
	f.seen[key]++
	nth := f.seen[key]
	f.mu.Unlock()

	// Whether a card is declined does not change from call to call.
	decline := clock.Seeded(f.cfg.Seed, "decline", key).Float64() < f.cfg.DeclineRate
	r := clock.Seeded(f.cfg.Seed, "call", key, strconv.Itoa(nth))
	took := time.Duration((0.5 + r.Float64()) * float64(f.cfg.Latency))
	before := time.Duration(r.Float64() * float64(took))
	return fate{
		nth: nth, before: before, after: took - before,
		failBefore: r.Float64() < f.cfg.FailRate,
		failAfter:  r.Float64() < f.cfg.LoseRate,
		drop:       r.Float64() < 0.5,
		decline:    decline,
	}
}
