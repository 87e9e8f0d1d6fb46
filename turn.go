package pacht

import (
	"context"
	"fmt"
)

// Turn is the place of one batch in a row of batches that are enqueued one after the other, of which
// the next may begin before the last is committed. What holds for the row: a batch is committed after
// the one before it, and never if that one was not. A nil Turn is a batch that follows nothing.
//
// A store draws ids and time (Begun), stores, waits for the one before (Wait) and commits. One that
// begins no batch ahead calls neither: the next one then comes when this one has ended.
type Turn struct {
	before *Turn         // nil: there is none, or it has been waited for
	begun  chan struct{} // closed when the next may begin
	ended  chan struct{} // closed when err says how it ended
	err    error
}

// next is the turn after t, which may be nil.
func (t *Turn) next() *Turn {
	return &Turn{before: t, begun: make(chan struct{}), ended: make(chan struct{})}
}

// Begun says that ids and time are drawn: the batch after this one may begin, and draw later ones. One
// that is tried again after that may have later ids than its follower.
func (t *Turn) Begun() {
	if t != nil && !over(t.begun) {
		close(t.begun)
	}
}

// Wait waits until the batch before has ended. An error means that this one must not be committed: the
// one before was not, or ctx has ended.
func (t *Turn) Wait(ctx context.Context) error {
	if t == nil || t.before == nil {
		return nil
	}
	select {
	case <-t.before.ended:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if t.before.err != nil {
		return fmt.Errorf("the batch before was not stored: %v", t.before.err)
	}
	return nil
}

// run calls fn when the batch before has begun, unless that one has failed, and tells the batch
// after how this one ended. It returns when the one before has ended, also if this one fails.
func (t *Turn) run(fn func() error) error {
	if t.before != nil {
		<-t.before.begun
	}
	if t.before == nil || !over(t.before.ended) || t.before.err == nil {
		t.err = fn()
	}
	switch {
	case t.err == nil:
		t.err = t.Wait(context.Background()) // also if there was nothing to store
	case t.before != nil:
		<-t.before.ended // who fails ends what follows, and not what is being committed
	}
	t.before = nil // or the whole row would be kept
	close(t.ended)
	t.Begun()
	return t.err
}

func over(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
