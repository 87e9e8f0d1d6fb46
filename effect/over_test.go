package effect_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/effect"
)

// R10, S102: a second call that certainly did nothing says nothing of the first, whose outcome
// nobody knows. It may arrive late: the provider is asked again, however long that takes, and
// nobody calls with a key that it may have forgotten.
func TestASecondCallThatDidNothingLeavesTheFirstUnknown(t *testing.T) {
	busy := func(w http.ResponseWriter) bool { w.WriteHeader(http.StatusTooManyRequests); return true }
	for name, second := range map[string]func(w *world){
		"rejected for now": func(w *world) { w.psp.set(func(p *provider) { p.before = busy }); w.run(w.pay) },
		"not sent": func(w *world) {
			w.run(func(ctx context.Context, job *pacht.Job[payment]) error {
				_, err := w.charge.Do(ctx, job, func(context.Context, effect.Call) (receipt, error) {
					return receipt{}, effect.NotSent(errors.New("connection refused"))
				})
				return err
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(w *world) {
				w.psp.set(func(p *provider) { p.before = hangUp })
				id := w.enqueue()
				w.run(w.pay)
				w.age(2 * consistency)
				w.retry(id)
				second(w)
				calls := w.psp.calls.get()
				w.is(id, pacht.Pending, pacht.EffectUnknown, calls, 0)
				// The first call has been on its way all the time. It is carried out, and a day
				// later its key is forgotten.
				e := w.effect(id)
				w.psp.set(func(p *provider) {
					p.before = nil
					p.charges["forgotten"], p.found[e.Reference] = "ch_1", "ch_1"
				})
				w.age(keyLife + time.Hour)
				w.run(w.pay)
				w.is(id, pacht.Completed, pacht.EffectSucceeded, calls, 1)
			})
		})
	}
}
