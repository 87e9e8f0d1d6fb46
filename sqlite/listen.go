package sqlite

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
)

// ears are the calls of Listen that are under way in this store.
type ears struct {
	mu     sync.Mutex
	wake   map[*pacht.Listener]bool
	closed chan struct{} // made by the first Listen or by close
	shut   bool
}

// ended is closed when the store is.
func (e *ears) ended() chan struct{} {
	if e.closed == nil {
		e.closed = make(chan struct{})
	}
	return e.closed
}

func (e *ears) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.shut {
		e.shut = true
		close(e.ended())
	}
}

// tell wakes who listens, after the commit of an enqueue.
func (e *ears) tell(jobs []pacht.NewJob, answers []pacht.Enqueued) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.wake) == 0 {
		return
	}
	now := clock.Now().Time()
	var queues []string
	for i, a := range answers {
		queue := first(jobs[i].Queue, pacht.DefaultQueue)
		due := a.Err == nil && !a.Duplicate && jobs[i].Delay <= 0 && !jobs[i].RunAt.After(now)
		if due && !slices.Contains(queues, queue) {
			queues = append(queues, queue)
		}
	}
	for l := range e.wake {
		for _, queue := range queues {
			l.Wake(queue)
		}
	}
}

// Listen implements pacht.Waker. What another process or a caller's transaction enqueues is
// found by polling.
func (s *Store) Listen(ctx context.Context, owner string, l pacht.Listener) error {
	if err := pacht.ValidOwner(owner); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	e := &s.ears
	e.mu.Lock()
	ended := e.ended()
	if !e.shut {
		if e.wake == nil {
			e.wake = map[*pacht.Listener]bool{}
		}
		e.wake[&l] = true
		l.Works(true, nil)
	}
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		delete(e.wake, &l)
		e.mu.Unlock()
	}()
	select {
	case <-ended:
		return fmt.Errorf("listen of %s: %w", owner, pacht.ErrClosed)
	case <-ctx.Done():
		return nil
	}
}

// Sleep implements pacht.Waker: who listens hears all that there is to hear.
func (s *Store) Sleep(_ context.Context, owner string, queues []string, life time.Duration) error {
	return pacht.ValidSleep(owner, queues, life)
}

// Rise implements pacht.Waker.
func (s *Store) Rise(_ context.Context, owner string, queues []string) error {
	return pacht.ValidSleep(owner, queues, pacht.MaxSleep)
}
