package sqlite

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
)

// Between two looks at a busy file a waiter sleeps this long, at random: short enough to lose
// little, random so that no process falls into step behind another.
const (
	shortestNap = 200 * time.Microsecond
	longestNap  = 2 * time.Millisecond
)

func nap(ctx context.Context) error {
	return clock.Sleep(ctx, shortestNap+time.Duration(clock.Float()*float64(longestNap-shortestNap)))
}

// fileLock is the queue for the file's write lock within this process: at most one of its
// writers asks SQLite for the lock, the others wait here, first come first served. It knows
// which transaction of this process holds the lock, which SQLite cannot tell.
type fileLock struct {
	path string
	wait time.Duration
	turn chan struct{} // full while somebody has the turn

	mu     sync.Mutex
	holder holder
	lent   uint64 // how often a transaction of the caller's has had the turn
}

// holder is who has the turn. The zero value: nobody, or the store's own writer, which is
// never waited for by itself.
type holder struct {
	what      string
	since     clock.Instant
	goroutine uint64
}

func newFileLock(path string, wait time.Duration) *fileLock {
	return &fileLock{path: path, wait: wait, turn: make(chan struct{}, 1)}
}

// take gets the turn for a transaction of the caller's, which has yet to begin.
func (l *fileLock) take(ctx context.Context) error {
	if err := l.refuseOwn(); err != nil {
		return err
	}
	timer := time.NewTimer(l.wait)
	defer timer.Stop()
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return l.tooLong()
	}
	return nil
}

// hold says that the transaction with the turn has begun, and so holds the file's lock.
func (l *fileLock) hold(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lent++
	l.holder = holder{what: what, since: clock.Now(), goroutine: goroutineID()}
}

// give passes the turn on.
func (l *fileLock) give() {
	l.mu.Lock()
	l.holder = holder{}
	l.mu.Unlock()
	<-l.turn
}

// lentSoFar counts the turns of the caller's transactions.
func (l *fileLock) lentSoFar() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lent
}

// refuseOwn refuses a write of a goroutine that has itself begun a transaction on this file
// and not ended it: it would wait for itself.
func (l *fileLock) refuseOwn() error {
	l.mu.Lock()
	h := l.holder
	l.mu.Unlock()
	if h.what == "" || h.goroutine != goroutineID() {
		return nil
	}
	return fmt.Errorf("%w: this goroutine has %s open since %s; use Store.Tx with it, or end it first",
		pacht.ErrInTransaction, h.what, h.since.Elapsed().Round(time.Millisecond))
}

// tooLong says who has been holding the lock for as long as anybody waits for it.
func (l *fileLock) tooLong() error {
	l.mu.Lock()
	h := l.holder
	l.mu.Unlock()
	if h.what != "" {
		return fmt.Errorf("%w: waited %s for the write lock of %s, which %s in this process has held for %s",
			pacht.ErrInTransaction, l.wait, l.path, h.what, h.since.Elapsed().Round(time.Millisecond))
	}
	return fmt.Errorf("waited %s for the write lock of %s, which another process or connection holds: %w", l.wait, l.path, pacht.ErrBusy)
}

// whileBusy repeats what SQLite refuses because the file is busy, until ctx ends or the bound
// is reached.
func (l *fileLock) whileBusy(ctx context.Context, do func() error) error {
	err := do()
	if !isBusy(err) {
		return err
	}
	for start := clock.Now(); isBusy(err); err = do() {
		if start.Elapsed() > l.wait {
			return l.tooLong()
		}
		if err := nap(ctx); err != nil {
			return err
		}
	}
	return err
}

// goroutineID reads the number in the first line of the goroutine's stack. There is no other
// way to ask it; it serves only to refuse what would wait for itself.
func goroutineID() uint64 {
	var buf [40]byte
	line := string(buf[:runtime.Stack(buf[:], false)])
	number, _, _ := strings.Cut(strings.TrimPrefix(line, "goroutine "), " ")
	id, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return 0
	}
	return id
}
