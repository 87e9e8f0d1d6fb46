package effect

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/pacht-queue/pacht"
)

// State is what the provider says of a call.
type State string

const (
	Inconclusive State = ""          // nothing that could be relied on
	Succeeded    State = "succeeded" // it was done
	Failed       State = "failed"    // it was refused for good, and will never be done
	NotFound     State = "not_found" // the provider knows of no such call
)

// Verdict is what a look-up at the provider has found out. Its zero value is inconclusive.
type Verdict[R any] struct {
	State  State
	Result R      // if it succeeded: what the call would have returned
	Reason string // why it failed, or why nothing can be said
}

func (v Verdict[R]) finding() Finding {
	f := Finding{State: v.State, Reason: v.Reason}
	switch v.State {
	case Inconclusive, Failed, NotFound:
	case Succeeded:
		raw, err := json.Marshal(v.Result)
		if err != nil {
			return Finding{Reason: fmt.Sprintf("it was found as done, and the result does not encode as JSON: %v", err)}
		}
		f.Result = raw
	default:
		return Finding{Reason: fmt.Sprintf("the prober answers %.40q, which is no state", string(v.State))}
	}
	return f
}

// Finding is a verdict without its type, weighed by what the provider promises.
type Finding struct {
	State  State           `json:"state"`
	Result json.RawMessage `json:"result,omitempty"` // if it succeeded
	Reason string          `json:"reason,omitempty"`
	// Again says of a call that was not found that it may be made again under the same key:
	// the provider would know of it by now, and does still know the key.
	Again bool `json:"again,omitempty"`
}

// Probe asks the provider what became of a call that has no answer, as a handler's next attempt
// would, and changes nothing; now is the database's clock. "Not found" within the effect's
// Consistency is inconclusive. So are errors and panics of the prober, whose Reason tells, and an
// effect that is not defined here.
func (all *Effects) Probe(ctx context.Context, e pacht.Effect, now time.Time) Finding {
	def := all.definition(e.Name)
	if def == nil {
		return Finding{Reason: "no effect of this name is defined in this program"}
	}
	return def.ask(ctx, e, now)
}

// Record stores what was found out: a success or a failure. Anything else is nothing to store.
// It answers the effect as it is then; *pacht.EffectError if it is final otherwise, or was
// changed since it was read.
func (all *Effects) Record(ctx context.Context, e pacht.Effect, f Finding) (pacht.Effect, error) {
	a := pacht.EffectAnswer{Job: e.Job, Name: e.Name, Rev: e.Rev}
	switch f.State {
	case Succeeded:
		a.State, a.Answer = pacht.EffectSucceeded, f.Result
	case Failed:
		a.State, a.Error = pacht.EffectFailed, f.Reason
	default:
		return e, nil
	}
	return all.answer(ctx, a)
}

// ask asks the prober, and weighs what it says.
func (d *definition) ask(ctx context.Context, e pacht.Effect, now time.Time) Finding {
	f := d.look(ctx, e)
	if f.State != NotFound {
		return f
	}
	switch since := now.Sub(e.CalledAt); {
	case since < d.consistency:
		return Finding{Reason: fmt.Sprintf("not found %s after the call, which says nothing before %s", since.Round(time.Millisecond), d.consistency)}
	case d.keyLife == 0:
		f.Reason = "not found; it is not called again, because the provider knows no keys"
	case now.Sub(e.FirstCalledAt) >= d.usable():
		f.Reason = fmt.Sprintf("not found; it is not called again, because the provider may have forgotten the key, %s after the first call",
			now.Sub(e.FirstCalledAt).Round(time.Second))
	default:
		f.Again = true
	}
	return f
}

// look calls the prober, which may do what it likes.
func (d *definition) look(ctx context.Context, e pacht.Effect) (f Finding) {
	if d.probe == nil {
		return Finding{Reason: "nobody can be asked"}
	}
	defer func() {
		if r := recover(); r != nil {
			f = Finding{Reason: fmt.Sprintf("the prober panicked: %v\n%s", r, debug.Stack())}
		}
	}()
	f, err := d.probe(ctx, e)
	if err != nil {
		return Finding{Reason: fmt.Sprintf("the prober failed: %v", err)}
	}
	return f
}
