package reconcile_test

import (
	"context"
	"sync"
	"time"

	"github.com/pacht-queue/pacht/reconcile"
)

// provider is the payment provider, as far as it can be asked.
type provider struct {
	mu      sync.Mutex
	records map[string]reconcile.Record
	lookup  map[string]func() (reconcile.Record, error) // instead of records
	asked   map[string]int
}

func newProvider() *provider {
	return &provider{records: map[string]reconcile.Record{}, lookup: map[string]func() (reconcile.Record, error){}, asked: map[string]int{}}
}

// has makes a record of 19.99 EUR.
func (p *provider) has(reference string, state reconcile.State, change ...func(*reconcile.Record)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := reconcile.Record{Reference: reference, ProviderID: "ch_" + reference, State: state, Amount: euro(1999), At: time.Now().Add(-time.Hour).UTC().Truncate(time.Second)}
	for _, f := range change {
		f(&r)
	}
	p.records[reference] = r
}

// Lookup implements reconcile.Theirs.
func (p *provider) Lookup(_ context.Context, reference string) (reconcile.Record, error) {
	p.mu.Lock()
	p.asked[reference]++
	f := p.lookup[reference]
	r, ok := p.records[reference]
	p.mu.Unlock()
	switch {
	case f != nil:
		return f()
	case !ok:
		return reconcile.Record{State: reconcile.NotFound}, nil
	}
	return r, nil
}
