package pacht

import (
	"context"
	"encoding/json"
	"strconv"
	"time"
)

// EffectState is what is known of a call to the outside.
type EffectState string

const (
	// EffectReady: certainly not done, or refused for now. It may be called, not before NotBefore.
	EffectReady EffectState = "ready"
	// EffectCalled: the intent is durable. Whether the call was made and what came of it is
	// not known yet: somebody is at it, or died at it.
	EffectCalled EffectState = "called"
	// EffectUnknown: nobody could say what came of it. The reconciler asks (R10).
	EffectUnknown EffectState = "unknown"
	// EffectSucceeded: it was done. Final.
	EffectSucceeded EffectState = "succeeded"
	// EffectFailed: it was refused for good. Final.
	EffectFailed EffectState = "failed"
)

// Final says whether nothing can follow this state.
func (s EffectState) Final() bool { return s == EffectSucceeded || s == EffectFailed }

// Open says whether the effect may have happened and nobody knows.
func (s EffectState) Open() bool { return s == EffectCalled || s == EffectUnknown }

// Effect is one call to the outside that cannot be rolled back, as its row in the table effects
// stands. A job has at most one of a name, whatever its attempts.
type Effect struct {
	Job   ID          `json:"job"`
	Name  string      `json:"name"`
	State EffectState `json:"state"`
	// Rev grows by one with each change of the row, and by nothing else: the fence of answers.
	Rev int64 `json:"rev"`
	// Key is the idempotency key, Reference the name by which we ask the provider. Both are
	// fixed by the first intent and the same for every attempt.
	Key       string          `json:"key"`
	Reference string          `json:"reference"`
	Request   json.RawMessage `json:"request,omitempty"` // what was asked for, if the caller said so
	Token     Token           `json:"token"`             // of the lease under which it was called last
	Calls     int             `json:"calls"`             // intents so far
	Answer    json.RawMessage `json:"answer,omitempty"`  // set if it succeeded
	Error     string          `json:"error,omitempty"`   // the last thing that went wrong

	FirstCalledAt time.Time `json:"first_called_at"` // from when the provider's memory of the key counts
	CalledAt      time.Time `json:"called_at"`
	AnsweredAt    time.Time `json:"answered_at,omitzero"`
	NotBefore     time.Time `json:"not_before,omitzero"` // of a ready one
}

// EffectIntent is what is written down before a call.
type EffectIntent struct {
	Name      string // as queues have, see ValidName
	Key       string // 1 to MaxKeyBytes bytes
	Reference string // 1 to MaxKeyBytes bytes
	Request   json.RawMessage
	// Again is the Rev of an open effect that the provider does not know, so that it may be
	// called again; 0 = only one that was never called, or is ready.
	Again int64
}

// Validate checks an intent, but for the JSON, whose bounds are the store's.
func (i EffectIntent) Validate() error {
	if err := ValidName("effect", i.Name); err != nil {
		return err
	}
	for _, each := range []struct{ field, value string }{{"effect key", i.Key}, {"effect reference", i.Reference}} {
		if each.value == "" || len(each.value) > MaxKeyBytes || !storable(each.value) {
			return &InvalidError{Field: each.field, Value: clip(each.value), Bound: "1 to 512 bytes of UTF-8 without NUL"}
		}
	}
	if i.Again < 0 {
		return &InvalidError{Field: "effect rev", Value: strconv.FormatInt(i.Again, 10), Bound: "0 or more"}
	}
	return nil
}

// EffectBegun answers an intent.
type EffectBegun struct {
	Effect Effect
	// Begun says that the intent is durable and the call may be made, once. False: the effect
	// stands as Effect says, because it was called before or may not be called yet.
	Begun bool
	Now   time.Time // the database's clock
	// LeaseUntil is the end of the lease, which the same statement has renewed.
	LeaseUntil time.Time
}

// EffectAnswer is what became of a call.
type EffectAnswer struct {
	Job   ID
	Name  string
	Rev   int64       // as the intent or the last answer gave it
	State EffectState // any but EffectCalled
	// Answer is what the provider said, if it succeeded. JSON or empty.
	Answer json.RawMessage
	Error  string        // stored after SafeText(Error, MaxErrorBytes)
	Wait   time.Duration // of a ready one: not before so long from now; 0 to MaxDelay
}

// Validate checks an answer, but for the JSON.
func (a EffectAnswer) Validate() error {
	if err := ValidName("effect", a.Name); err != nil {
		return err
	}
	switch a.State {
	case EffectReady, EffectUnknown, EffectSucceeded, EffectFailed:
	default:
		return &InvalidError{Field: "effect state", Value: clip(string(a.State)), Bound: "ready, unknown, succeeded or failed"}
	}
	if a.Wait < 0 || a.Wait > MaxDelay || a.Wait > 0 && a.State != EffectReady {
		return &InvalidError{Field: "effect wait", Value: a.Wait.String(), Bound: "0 to 8760h, and only for a ready effect"}
	}
	return nil
}

// EffectCursor names one effect in lists, which are ordered by job, then name.
type EffectCursor struct {
	Job  ID
	Name string
}

// EffectLog keeps what is known of calls to the outside.
type EffectLog interface {
	// BeginEffect records the intent to make a call, in one statement that also renews the
	// lease: so it is fenced (R3), and a claim in between finds either no intent or a lease that
	// is not over. It is refused with *LeaseLostError if the lease was closed, taken, or is past
	// its time (R7); nothing is written then. What is Begun is durable when it returns.
	// On an error the intent may have been written: the call must not be made. On SQLite a
	// goroutine with an open transaction on the file is refused (ErrInTransaction).
	BeginEffect(ctx context.Context, ref Ref, intent EffectIntent) (EffectBegun, error)
	// AnswerEffect stores what became of a call. It is guarded by the effect's own state and
	// Rev and not by the lease: what the provider said is kept, also when the lease is gone.
	// A success is stored for any effect that is not final, whatever its Rev, because a call
	// under the same key is the same call. It answers the row as it is then; if nothing was
	// changed and it does not say the same already, *EffectError; ErrNotFound if there is no such
	// effect. It may be repeated.
	AnswerEffect(ctx context.Context, a EffectAnswer) (Effect, error)
	// Effects lists the effects of one job, by name.
	Effects(ctx context.Context, id ID) ([]Effect, error)
	// OpenEffects lists effects that may have happened and nobody knows: unknown ones, and
	// called ones whose lease is closed or past its time. In order of the cursor, after it; at
	// most limit (1 to 1000). Cheap whatever the number of effects with an answer. A pass that
	// begins at the zero cursor misses none that was committed before it began.
	OpenEffects(ctx context.Context, after EffectCursor, limit int) ([]Effect, error)
}

// EffectError refuses an answer: the effect stands otherwise already.
type EffectError struct {
	Effect Effect      // as it stands
	Asked  EffectState // what was to be stored
}

func (e *EffectError) Error() string {
	return "effect " + e.Effect.Name + " of job " + e.Effect.Job.String() + " cannot become " + string(e.Asked) +
		": it is " + string(e.Effect.State) + " with rev " + strconv.FormatInt(e.Effect.Rev, 10)
}
