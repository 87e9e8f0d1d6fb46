package effect_test

import (
	"context"
	"errors"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/effect"
	"github.com/pacht-queue/pacht/sqlite"
	"github.com/pacht-queue/pacht/worker"
)

// psp stands for a provider's client.
type psp struct{}

func (psp) charge(context.Context, string, int) (string, error) { return "ch_1", nil }
func (psp) find(context.Context, string) (id string, known bool, err error) {
	return "ch_1", true, nil
}

// A charge that is made once, whatever becomes of the worker, of the provider's answer, and of the
// database's.
func Example() {
	store, err := sqlite.Open("payments.db", sqlite.Config{})
	if err != nil {
		return
	}
	var provider psp
	charge, err := effect.Define(effect.New(store), "charge", effect.Spec[string]{
		KeyLife:     24 * time.Hour,
		Consistency: 2 * time.Minute,
		MinLease:    20 * time.Second,
		Probe: func(ctx context.Context, e pacht.Effect) (effect.Verdict[string], error) {
			id, known, err := provider.find(ctx, e.Reference)
			switch {
			case err != nil:
				return effect.Verdict[string]{}, err // says nothing
			case !known:
				return effect.Verdict[string]{State: effect.NotFound}, nil
			}
			return effect.Verdict[string]{State: effect.Succeeded, Result: id}, nil
		},
	})
	if err != nil {
		return
	}
	declined := errors.New("declined")
	_ = worker.Handle(func(ctx context.Context, job *pacht.Job[payment]) error {
		id, err := charge.Do(ctx, job, func(ctx context.Context, call effect.Call) (string, error) {
			id, err := provider.charge(ctx, call.Key, job.Args.N)
			if errors.Is(err, declined) {
				return "", effect.Rejected(err) // final
			}
			return id, err // an error that nobody classed: unknown
		})
		if err != nil {
			return err
		}
		return job.SetOutput(id)
	})
}
