package history

import (
	"context"
	"errors"
	"fmt"

	"github.com/pacht-queue/pacht"
)

// Txn is a caller's open transaction, with the verbs that belong in one.
type Txn interface {
	pacht.Tx
	Commit(ctx context.Context) error
	Rollback(ctx context.Context) error
}

// Begin opens a transaction of a caller, on a connection of its own.
type Begin func(ctx context.Context) (Txn, error)

// Tx writes down what SettleTx and the end of its transaction answer.
type Tx struct {
	Txn
	r       *Recorder
	settles []*event
	refused bool
}

// BeginTx opens a transaction of this client.
func (r *Recorder) BeginTx(ctx context.Context) (*Tx, error) {
	if r.begin == nil {
		return nil, errors.New("history: this client has no transactions")
	}
	inner, err := r.begin(ctx)
	if err != nil {
		return nil, err
	}
	return &Tx{Txn: inner, r: r}, nil
}

// SettleTx implements pacht.Tx.
func (t *Tx) SettleTx(ctx context.Context, s pacht.Settlement) error {
	c := t.r.begins(settledTx)
	err := t.Txn.SettleTx(ctx, s)
	t.r.returns(c)
	e := c.event(settledTx, s.Ref)
	e.ends = s
	t.refused = t.refused || err != nil
	switch _, ok := e.refuse(err); {
	case err == nil:
		t.settles = append(t.settles, e)
	case ok:
		t.r.h.add(e, "")
	default: // nothing of it can be committed
		t.r.h.troubled(c, err)
	}
	return err
}

// Commit ends the transaction. If its answer is lost, what was settled may be so or not.
func (t *Tx) Commit(ctx context.Context) error {
	c := t.r.begins(settledTx)
	err := t.Txn.Commit(ctx)
	t.r.returns(c)
	if t.refused {
		if err == nil {
			t.r.h.mu.Lock()
			t.r.h.count++
			t.r.h.find(c.event(settledTx, pacht.Ref{}), "R4: a transaction whose settle was refused could be committed")
			t.r.h.mu.Unlock()
		}
		return err
	}
	if err != nil {
		t.r.h.troubled(c, fmt.Errorf("commit: %w", err))
	}
	for _, e := range t.settles {
		e.ret, e.at.hi = c.ret, c.at.hi
		if err != nil {
			e.open, e.ret, e.at.hi = true, forever, forever
		}
		t.r.h.add(e, "")
	}
	t.settles = nil
	return err
}

// Rollback ends the transaction. What it settled was held until then, and is not closed.
func (t *Tx) Rollback(ctx context.Context) error {
	err := t.Txn.Rollback(ctx)
	for _, e := range t.settles {
		e.verb = lockedTx
		t.r.h.add(e, "")
	}
	t.settles = nil
	return err
}
