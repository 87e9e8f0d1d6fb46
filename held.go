package pacht

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Job is a job in the hands of its handler: what is to be done, and the lease on it.
type Job[T Args] struct {
	*Held
	Args T
}

// Held is a held lease. A worker makes it; for tests of handlers, pachttest does.
type Held struct {
	JobInfo
	keeper Keeper
}

// Keeper is what stands behind a Held job: a worker, or pachttest.
type Keeper interface {
	Remaining() time.Duration
	Ensure(ctx context.Context, d time.Duration) error
	SetOutput(output json.RawMessage) error
	SetStep(ctx context.Context, name string, data json.RawMessage) error
	SetStepTx(ctx context.Context, tx Tx, name string, data json.RawMessage) error
	Steps(ctx context.Context) ([]Step, error)
	CompleteTx(ctx context.Context, tx Tx) error
	EffectOpen(name string, open bool)
}

// NewHeld is for workers.
func NewHeld(job JobInfo, keeper Keeper) *Held { return &Held{JobInfo: job, keeper: keeper} }

// Info is the job as it was claimed.
func (h *Held) Info() JobInfo { return h.JobInfo }

// Remaining is how long the lease is held without a doubt: counted from before the last
// claim or renewal was sent, by the most pessimistic of our clocks. Zero or less means that
// somebody else may own the job. The renewer goes on extending it while the handler runs.
func (h *Held) Remaining() time.Duration { return h.keeper.Remaining() }

// Ensure makes sure that at least d of the lease is left, by a round trip to the database in
// any case: call it before an effect that cannot be rolled back. It fails with ErrLeaseLost
// if the lease is not ours any more, and with *InvalidError if d is more than the job's TTL.
// What no clock can cover (a machine that is frozen after Ensure) only the fence and the
// provider's idempotency key cover.
func (h *Held) Ensure(ctx context.Context, d time.Duration) error {
	if d > h.TTL {
		return &InvalidError{Field: "ensure", Value: d.String(), Bound: fmt.Sprintf("at most the job's TTL, %s", h.TTL)}
	}
	return h.keeper.Ensure(ctx, d)
}

// SetOutput keeps a JSON-encodable value, stored with the attempt when the lease is settled,
// whatever its outcome. The last call counts. It is not durable before. A json.RawMessage is
// kept byte for byte.
func (h *Held) SetOutput(v any) error {
	if raw, ok := v.(json.RawMessage); ok && raw != nil {
		return h.keeper.SetOutput(raw)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("output of job %d does not encode as JSON: %w", h.ID, err)
	}
	return h.keeper.SetOutput(raw)
}

// SetStep records what the job has reached, with a JSON-encodable value or nil. It is durable
// when it returns, and read by the next attempt. Fenced: ErrLeaseLost.
func (h *Held) SetStep(ctx context.Context, name string, data any) error {
	raw, err := h.stepData(name, data)
	if err != nil {
		return err
	}
	return h.keeper.SetStep(ctx, name, raw)
}

// SetStepTx records a step in the caller's transaction, with whatever else it does.
func (h *Held) SetStepTx(ctx context.Context, tx Tx, name string, data any) error {
	raw, err := h.stepData(name, data)
	if err != nil {
		return err
	}
	return h.keeper.SetStepTx(ctx, tx, name, raw)
}

func (h *Held) stepData(name string, data any) (json.RawMessage, error) {
	if err := ValidName("step", name); err != nil {
		return nil, err
	}
	if data == nil {
		return nil, nil
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("step %q of job %d does not encode as JSON: %w", name, h.ID, err)
	}
	return raw, nil
}

// Steps lists what this job has reached in all attempts, oldest first.
func (h *Held) Steps(ctx context.Context) ([]Step, error) { return h.keeper.Steps(ctx) }

// Step is the newest step of that name, by any attempt; false if there is none.
func (h *Held) Step(ctx context.Context, name string) (Step, bool, error) {
	steps, err := h.Steps(ctx)
	for i := len(steps) - 1; i >= 0 && err == nil; i-- {
		if steps[i].Name == name {
			return steps[i], true, nil
		}
	}
	return Step{}, false, err
}

// CompleteTx completes the job in the caller's transaction: both commit, or neither. Make it
// the last statement before the commit, then return nil from the handler. On ErrLeaseLost or
// ErrAlreadySettled the transaction is broken and cannot be committed; so it is on ErrEffectOpen,
// while an effect of this holder is without an answer (R10).
func (h *Held) CompleteTx(ctx context.Context, tx Tx) error { return h.keeper.CompleteTx(ctx, tx) }

// EffectOpen is for package effect. It says that an effect of this name was called under this
// lease and has no answer, or that it has one by now: by that the worker judges what a handler
// answers, or means when it is stopped from outside (R10).
func (h *Held) EffectOpen(name string, open bool) { h.keeper.EffectOpen(name, open) }
