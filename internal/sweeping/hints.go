package sweeping

import "sync"

// Hints remembers where a row of calls by hand has got to, for each status, so that the next
// call need not walk from the start. It is only a hint: whoever finds less than asked from it
// on looks from the start.
type Hints struct {
	mu sync.Mutex
	at map[string]Place
}

// From is where the last call has got to; the zero Place is the start.
func (h *Hints) From(status string) Place {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at[status]
}

// Reached keeps where a call has got to.
func (h *Hints) Reached(status string, at Place) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at == nil {
		h.at = map[string]Place{}
	}
	h.at[status] = at
}
