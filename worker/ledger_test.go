package worker_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/worker"
)

// R12: the outcome of a job whose handler called CompleteTx stands in the ledger only. While the
// ledger does not answer, the outcomes of all others are stored.
func TestSlowLedgerDelaysNoOtherOutcome(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := &between{faulty: &faulty{store: db.open(t)}}
		b, _ := newBusiness(t, db, s.store)
		asked, answer := make(chan struct{}), make(chan struct{})
		var once, release sync.Once
		s.attempts = func() {
			once.Do(func() { close(asked) })
			<-answer
		}
		w := start(t, s, quick(3, func(ctx context.Context, job *pacht.Job[task]) error {
			if job.Args.N == 0 {
				return b.complete(ctx, job, func(tx businessTx) error { return tx.commit(ctx) })
			}
			return nil
		}))
		t.Cleanup(func() { release.Do(func() { close(answer) }) })
		enqueue(t, s, 1)
		<-asked
		watch := db.open(t)
		answers, err := watch.Enqueue(t.Context(), []pacht.NewJob{pacht.New(task{N: 1}), pacht.New(task{N: 2})})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range answers {
			becomes(t, watch, a.ID, pacht.Completed)
		}
		if n := w.seen.count(worker.EventSettled); n > 2 {
			t.Errorf("%d settled: the ledger did answer", n)
		}
		release.Do(func() { close(answer) })
		eventually(t, 20*time.Second, "all are settled", func() bool { return w.seen.count(worker.EventSettled) == 3 })
		checked(t, watch)
	})
}
