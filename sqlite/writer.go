package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
)

const (
	// groupTime bounds how long one transaction takes in further callers' work: whoever else
	// wants to write to the file waits that long.
	groupTime = 25 * time.Millisecond
	// aloneTime is how long the writer goes from transaction to transaction without a pause:
	// a process that wants in has to find the file free once in a while.
	aloneTime = 50 * time.Millisecond
	// sharedTime is how long after the last sign of another process the writer pauses after
	// each transaction, as long as the other's nap may be.
	sharedTime = time.Second
)

// writer is the only goroutine of this store that writes. Callers put their parts into its
// queues; it takes the file's write lock and then runs all parts that are waiting in one
// transaction; one that fails leaves the others alone (R12).
// Answers are given after the commit. It goes out at once when idle; what gathers while a
// transaction is written goes into the next.
type writer struct {
	store *Store
	wake  chan struct{}
	ctx   context.Context // ends with the store: sleeping and waiting for locks
	quit  context.CancelCauseFunc
	ended chan struct{}

	mu     sync.Mutex
	closed bool
	urgent []*part // renewals: nothing may make them wait
	normal []*part

	groupTime time.Duration // see groupTime; tests give it more

	// Of the goroutine alone.
	conn      *sql.Conn
	prepared  map[string]*sql.Stmt
	version   int64         // of the file's data after our last transaction
	lent      uint64        // turns of the caller's transactions until then
	shared    clock.Instant // last sign of another process
	isShared  bool
	committed clock.Instant // end of our last transaction
	alone     clock.Instant // since when we have written without a pause
}

const (
	partQueued int32 = iota
	partStarted
	partDropped
)

// part is one caller's share of a transaction.
type part struct {
	verb  string
	run   func(ctx context.Context, w *work) error // may be run twice: the first time is undone then
	state atomic.Int32
	err   error
	done  chan struct{}
}

// work is what a part runs its statements with.
type work struct {
	runner
	now int64 // the database's clock, read for this part while the lock is held
}

func startWriter(s *Store) *writer {
	w := &writer{store: s, wake: make(chan struct{}, 1), ended: make(chan struct{}), groupTime: groupTime}
	w.ctx, w.quit = context.WithCancelCause(context.Background())
	go w.loop()
	return w
}

// write runs a part in the next transaction and waits until that is committed. A caller whose
// ctx ends while the part is queued is let go, and the part never runs; once it has started,
// the answer is the commit's.
func (s *Store) write(ctx context.Context, verb string, urgent bool, run func(context.Context, *work) error) error {
	if err := s.fits(ctx); err != nil {
		return err
	}
	return s.writer.do(ctx, verb, urgent, run)
}

func (w *writer) do(ctx context.Context, verb string, urgent bool, run func(context.Context, *work) error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", verb, context.Cause(ctx))
	}
	if err := w.store.lock.refuseOwn(); err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	p := &part{verb: verb, run: run, done: make(chan struct{})}
	if err := w.enqueue(p, urgent); err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	timer := time.NewTimer(w.store.lock.wait)
	defer timer.Stop()
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		if p.state.CompareAndSwap(partQueued, partDropped) {
			return fmt.Errorf("%s: waiting for the write lock: %w", verb, context.Cause(ctx))
		}
	case <-timer.C:
		if p.state.CompareAndSwap(partQueued, partDropped) {
			return fmt.Errorf("%s: %w", verb, w.store.lock.tooLong())
		}
	}
	<-p.done
	return p.err
}

func (w *writer) enqueue(p *part, urgent bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return pacht.ErrClosed
	}
	if urgent {
		w.urgent = append(w.urgent, p)
	} else {
		w.normal = append(w.normal, p)
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return nil
}

// next takes the first part that nobody has given up, renewals first.
func (w *writer) next() *part {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, q := range []*[]*part{&w.urgent, &w.normal} {
		for len(*q) > 0 {
			p := (*q)[0]
			(*q)[0] = nil
			*q = (*q)[1:]
			if p.state.CompareAndSwap(partQueued, partStarted) {
				return p
			}
		}
	}
	return nil
}

// waiting says whether anybody waits, and forgets those who gave up.
func (w *writer) waiting() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, q := range []*[]*part{&w.urgent, &w.normal} {
		for len(*q) > 0 && (*q)[0].state.Load() == partDropped {
			*q = (*q)[1:]
		}
		if len(*q) > 0 {
			return true
		}
	}
	return false
}

// close ends the goroutine and waits for it. Parts that have not started get pacht.ErrClosed.
func (w *writer) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.quit(pacht.ErrClosed)
	<-w.ended
}

func (w *writer) loop() {
	defer close(w.ended)
	ctx := w.ctx
	for ctx.Err() == nil {
		if !w.waiting() {
			select {
			case <-w.wake:
			case <-ctx.Done():
			}
			continue
		}
		w.pause(ctx)
		select {
		case w.store.lock.turn <- struct{}{}:
		case <-ctx.Done():
			continue
		}
		group, err := w.group(ctx)
		w.store.lock.give()
		if errors.Is(err, context.Canceled) && ctx.Err() != nil && !errors.Is(err, pacht.ErrUnknown) {
			err = fmt.Errorf("%w: %w", context.Cause(ctx), err) // closed while it opened the file
		}
		answer(group, err)
		runtime.Gosched() // whoever was answered and has more to write comes into the next group
	}
	w.disconnect()
	for p := w.next(); p != nil; p = w.next() {
		answer([]*part{p}, fmt.Errorf("%s: %w", p.verb, pacht.ErrClosed))
	}
}

// answer lets the callers go. An error of the whole group goes to all of them.
func answer(group []*part, err error) {
	for _, p := range group {
		if err != nil {
			p.err = err
		}
		close(p.done)
	}
}
