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
// (PostgreSQL) or 1,000 (SQLite), of fewer if they are large, one after the other; while one is on
// its way the next jobs are drawn. It returns how many it stored, not counting duplicates. Refused
// jobs do not stop the others; their errors come back joined, the first 20 of them. Any other error
// ends it, and says how far it had come by the count.
func (c *Client) EnqueueMany(ctx context.Context, jobs iter.Seq[NewJob]) (int64, error) {
	b := bulk{store: c.store}
	defer func() { _ = b.wait() }() // something is on its way then only if the iterator panicked
	var batch, next []NewJob
	most, size := c.store.BatchSize(), 0
	for j := range jobs {
		batch, size = append(batch, j), size+len(j.Args)+len(j.Metadata)
		if len(batch) < most && size < batchBytes {
			continue
		}
		size = 0
		if err := b.send(ctx, batch); err != nil {
			return b.stored, errors.Join(append(b.refused, err)...)
		}
		clear(next) // it is stored
		batch, next = next[:0], batch
	}
	err := b.wait()
	if err == nil && len(batch) > 0 {
		if err = b.send(ctx, batch); err == nil {
			err = b.wait()
		}
	}
	return b.stored, errors.Join(append(b.refused, err)...)
}

// bulk is an EnqueueMany with at most one transaction on its way.
type bulk struct {
	store   Enqueuer
	sent    chan error // nil: none is
	answers []Enqueued // of the one that is

	stored  int64
	refused []error
}

// send waits for the transaction before this one, and does not wait for this one.
func (b *bulk) send(ctx context.Context, batch []NewJob) error {
	if err := b.wait(); err != nil {
		return err
	}
	b.sent = make(chan error, 1)
	go func() {
		answers, err := b.store.Enqueue(ctx, batch)
		b.answers = answers
		b.sent <- err
	}()
	return nil
}

// wait takes in what became of the transaction that is on its way, if one is.
func (b *bulk) wait() error {
	const mostErrors = 20
	if b.sent == nil {
		return nil
	}
	err := <-b.sent
	b.sent = nil
	for _, a := range b.answers {
		switch {
		case a.Err != nil && len(b.refused) < mostErrors:
			b.refused = append(b.refused, a.Err)
		case a.Err == nil && !a.Duplicate:
			b.stored++
		}
	}
	return err
}
