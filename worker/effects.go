package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
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

// first says that the job was never claimed before.
func (h *hold) first() bool { return h.job.Token <= 1 }

// recall looks for effects that earlier attempts have left without an answer, and that this handler
// may not have asked about: nothing is completed over them (R10). It asks the database only for
// jobs that were claimed before.
func (h *hold) recall(ctx context.Context) error {
	if h.first() {
		return nil
	}
	effects, err := h.w.store.Effects(ctx, h.job.ID)
	if err != nil {
		return fmt.Errorf("effects of %s: %w", h.job.Ref(), err)
	}
	for _, e := range effects {
		h.EffectOpen(e.Name, e.State.Open())
	}
	return nil
}

// remember is recall for a handler that has returned, until the database answers or the worker
// stops. The job is held and renewed meanwhile.
func (h *hold) remember() {
	if h.first() {
		return // as recall, without a timer for each job
	}
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		ctx, cancel := context.WithTimeout(h.w.base, callTimeout)
		err := h.recall(ctx)
		cancel()
		if err == nil || h.w.base.Err() != nil {
			return
		}
		h.w.trouble.met(callSettle, err)
		if errors.Is(err, pacht.ErrClosed) || clock.Sleep(h.w.base, clock.Jitter(wait)) != nil {
			return
		}
	}
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
	if errors.Is(why, pacht.ErrEffectOpen) {
		return pacht.UnknownOutcome(why)
	}
	return why
}
