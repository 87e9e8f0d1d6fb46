package worker_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/worker"
)

// between does something between what the database answers and what the worker hears.
type between struct {
	*faulty
	heldBy   func()
	attempts func()
}

func (b *between) HeldBy(ctx context.Context, owner string) (pacht.Claims, error) {
	c, err := b.faulty.HeldBy(ctx, owner)
	if b.heldBy != nil {
		b.heldBy()
	}
	return c, err
}

func (b *between) Attempts(ctx context.Context, id pacht.ID) ([]pacht.Attempt, error) {
	a, err := b.faulty.Attempts(ctx, id)
	if b.attempts != nil {
		b.attempts()
	}
	return a, err
}

// R1, R4: what was settled while the worker asked what it holds is not taken in again.
func TestLeaseSettledDuringTheQuestionIsNotAdopted(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := &between{faulty: &faulty{store: db.open(t)}}
		var runs [2]atomic.Int32
		begun, finish := make(chan struct{}), make(chan struct{})
		var once sync.Once
		var w *running
		ready := make(chan struct{})
		s.heldBy = func() {
			<-ready
			once.Do(func() { close(finish) })
			eventually(t, 20*time.Second, "the first job is settled", func() bool { return w.seen.count(worker.EventSettled) > 0 })
		}
		first := enqueue(t, s, 1)[0]
		w = start(t, s, quick(2, func(_ context.Context, job *pacht.Job[task]) error {
			if job.ID != first {
				runs[1].Add(1)
				return nil
			}
			if runs[0].Add(1) == 1 {
				close(begun)
			}
			<-finish
			return nil
		}))
		close(ready)
		<-begun
		s.loseClaims.Store(1)
		second := enqueue(t, s, 1)[0]
		becomes(t, s, second, pacht.Completed)
		eventually(t, 20*time.Second, "nothing is held", func() bool { return w.Status().Held == 0 })
		if runs[0].Load() != 1 || runs[1].Load() != 1 {
			t.Errorf("the settled job ran %d times, the adopted one %d times", runs[0].Load(), runs[1].Load())
		}
		checked(t, s)
	})
}

// R4: a commit whose answer was lost, and which comes through between the look at the ledger
// and the settle, is a completion like any other.
func TestCommitThatComesAfterTheLookIsACompletion(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := &between{faulty: &faulty{store: db.open(t)}}
		b, booked := newBusiness(t, db, s.store)
		commit := make(chan businessTx, 1)
		s.attempts = func() {
			select {
			case tx := <-commit:
				if err := tx.commit(context.Background()); err != nil {
					t.Error(err)
				}
			default:
			}
		}
		w := start(t, s, quick(1, func(ctx context.Context, job *pacht.Job[task]) error {
			return b.complete(context.WithoutCancel(ctx), job, func(tx businessTx) error {
				commit <- tx
				return errors.New("no answer to the commit")
			})
		}))
		id := enqueue(t, s, 1)[0]
		becomes(t, db.open(t), id, pacht.Completed)
		eventually(t, 10*time.Second, "it is told of", func() bool {
			return w.seen.count(worker.EventSettled)+w.seen.count(worker.EventRefused) > 0
		})
		if w.seen.count(worker.EventSettled) != 1 || booked() != 1 {
			t.Errorf("settled %d times, refused %d times, booked %d times",
				w.seen.count(worker.EventSettled), w.seen.count(worker.EventRefused), booked())
		}
	})
}

// silent never answers the renewals of one handler.
type silent struct{ store }

type silence struct{}

func (s silent) Renew(ctx context.Context, refs []pacht.Ref) (pacht.Renewals, error) {
	if ctx.Value(silence{}) != nil {
		<-ctx.Done()
		return pacht.Renewals{}, ctx.Err()
	}
	return s.store.Renew(ctx, refs)
}

// R8, R12: an Ensure that nobody answers ends by itself, whatever context it was given: its
// connection is that of all renewals.
func TestEnsureThatNobodyAnswersEndsByItself(t *testing.T) {
	t.Parallel()
	s := silent{newDatabase(t, "sqlite").open(t)}
	answer := make(chan error, 1)
	start(t, s, quick(1, func(_ context.Context, job *pacht.Job[task]) error {
		answer <- job.Ensure(context.WithValue(context.Background(), silence{}, true), time.Second)
		return nil
	}))
	enqueue(t, s, 1, pacht.TTL(3*time.Second))
	select {
	case err := <-answer:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Ensure: %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("Ensure waits for ever")
	}
}
