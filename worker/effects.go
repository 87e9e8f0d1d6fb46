package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pacht-queue/pacht"
)

// EffectOpen implements pacht.Keeper.
func (h *hold) EffectOpen(name string, open bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.effects == nil {
		h.effects = make(map[string]bool)
	}
	h.effects[name] = open
}

// hasEffects says whether any effect was called or asked about under this lease.
func (h *hold) hasEffects() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.effects) > 0
}

// unanswered names the effects that may have happened and nobody knows; nil if there are none.
func (h *hold) unanswered() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var open []string
	for _, name := range slices.Sorted(maps.Keys(h.effects)) {
		if h.effects[name] {
			open = append(open, name)
		}
	}
	if len(open) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", pacht.ErrEffectOpen, strings.Join(open, ", "))
}

// refuseTx refuses to complete, and breaks the transaction as any refusal of CompleteTx does: the
// business write must not be committed by a caller who ignores the error (R4).
func (h *hold) refuseTx(ctx context.Context, tx pacht.Tx, why error) error {
	why = fmt.Errorf("complete %s: %w", h.job.Ref(), why)
	// A settlement without an outcome is never accepted.
	var invalid *pacht.InvalidError
	if err := tx.SettleTx(ctx, pacht.Settlement{Ref: h.job.Ref()}); !errors.As(err, &invalid) {
		why = errors.Join(why, err)
	}
	return pacht.UnknownOutcome(why)
}
