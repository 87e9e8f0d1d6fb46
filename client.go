package pacht

import (
	"context"
	"errors"
	"iter"
)

// Client enqueues jobs, and looks at and steers them. It holds no state of its own.
type Client struct {
	Reader
	Operator
	store Enqueuer
}

// NewClient makes a client of a store.
func NewClient(s Store) *Client { return &Client{Reader: s, Operator: s, store: s} }

// Enqueue stores one job, durably when it returns. With an idempotency key it may be
// repeated; without one, an error that is ErrUnknown means that it may have been stored.
func (c *Client) Enqueue(ctx context.Context, args Args, opts ...Option) (Enqueued, error) {
	return single(c.store.Enqueue(ctx, []NewJob{New(args, opts...)}))
}

// EnqueueTx stores one job in the caller's transaction: both commit, or neither. A refused
// job leaves the transaction usable.
func (c *Client) EnqueueTx(ctx context.Context, tx Tx, args Args, opts ...Option) (Enqueued, error) {
	return single(tx.EnqueueTx(ctx, []NewJob{New(args, opts...)}))
}

func single(answers []Enqueued, err error) (Enqueued, error) {
	if err != nil {
		return Enqueued{}, err
	}
	return answers[0], answers[0].Err
}

// batchBytes is from how much on, of args and metadata, what was drawn is stored.
const batchBytes = 4 << 20

// EnqueueMany stores jobs from an iterator in constant memory, in transactions of 5,000
// (PostgreSQL) or 1,000 (SQLite), of fewer if they are large. They are committed in the order of
// the iterator and without a gap; while one transaction is on its way the next jobs are drawn, and
// may be on their way too. It returns how many it stored, not counting duplicates. Refused
// jobs do not stop the others; their errors come back joined, the first 20 of them. Any other error
// ends it, and says how far it had come by the count.
func (c *Client) EnqueueMany(ctx context.Context, jobs iter.Seq[NewJob]) (int64, error) {
	b := bulk{store: c.store}
	defer func() { _ = b.wait(0) }() // something is on its way then only if the iterator panicked
	var batch []NewJob
	most, size := c.store.BatchSize(), 0
	for j := range jobs {
		batch, size = append(batch, j), size+len(j.Args)+len(j.Metadata)
		if len(batch) < most && size < batchBytes {
			continue
		}
		size = 0
		var err error
		if batch, err = b.send(ctx, batch); err != nil {
			return b.stored, errors.Join(append(b.refused, err)...)
		}
	}
	var err error
	if len(batch) > 0 {
		_, err = b.send(ctx, batch)
	}
	if err == nil {
		err = b.wait(0)
	}
	return b.stored, errors.Join(append(b.refused, err)...)
}

// bulk is an EnqueueMany with at most two transactions on their way, which are committed in order.
type bulk struct {
	store Enqueuer
	last  *Turn
	sent  []*flight // oldest first
	free  [][]NewJob

	stored  int64
	refused []error
}

type flight struct {
	batch   []NewJob
	answers []Enqueued
	landed  chan error
}

// send waits until at most one transaction is on its way, does not wait for the one that it
// sends, and answers where the next jobs may be put.
func (b *bulk) send(ctx context.Context, batch []NewJob) (next []NewJob, err error) {
	if err := b.wait(1); err != nil {
		return nil, err
	}
	turn, f := b.last.next(), &flight{batch: batch, landed: make(chan error, 1)}
	b.last, b.sent = turn, append(b.sent, f)
	go func() {
		f.landed <- turn.run(func() (err error) {
			f.answers, err = b.store.EnqueueInTurn(ctx, batch, turn)
			return err
		})
	}()
	if last := len(b.free) - 1; last >= 0 {
		next, b.free = b.free[last], b.free[:last]
	}
	return next, nil
}

// wait takes in what became of the oldest transactions, until at most n are on their way. After
// an error nothing is on its way: what came after was not committed.
func (b *bulk) wait(n int) (err error) {
	for len(b.sent) > n || (err != nil && len(b.sent) > 0) {
		f := b.sent[0]
		b.sent = b.sent[1:]
		if landed := <-f.landed; err == nil {
			err = landed
			b.count(f.answers)
		}
		clear(f.batch)
		b.free = append(b.free, f.batch[:0])
	}
	return err
}

func (b *bulk) count(answers []Enqueued) {
	const mostErrors = 20
	for _, a := range answers {
		switch {
		case a.Err != nil && len(b.refused) < mostErrors:
			b.refused = append(b.refused, a.Err)
		case a.Err == nil && !a.Duplicate:
			b.stored++
		}
	}
}
