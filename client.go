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

// batchSize is how many jobs EnqueueMany stores in one transaction.
const batchSize = 1000

// EnqueueMany stores jobs from an iterator in constant memory, in transactions of 1,000. It
// returns how many it stored, not counting duplicates. Refused jobs do not stop the others;
// their errors come back joined, the first 20 of them. Any other error ends it, and says how
// far it had come by the count.
func (c *Client) EnqueueMany(ctx context.Context, jobs iter.Seq[NewJob]) (int64, error) {
	const mostErrors = 20
	var stored int64
	var refused []error
	batch := make([]NewJob, 0, batchSize)
	flush := func() error {
		answers, err := c.store.Enqueue(ctx, batch)
		for _, a := range answers {
			switch {
			case a.Err != nil && len(refused) < mostErrors:
				refused = append(refused, a.Err)
			case a.Err == nil && !a.Duplicate:
				stored++
			}
		}
		batch = batch[:0]
		return err
	}
	for j := range jobs {
		if batch = append(batch, j); len(batch) < batchSize {
			continue
		}
		if err := flush(); err != nil {
			return stored, errors.Join(append(refused, err)...)
		}
	}
	if len(batch) > 0 {
		refused = append(refused, flush())
	}
	return stored, errors.Join(refused...)
}
