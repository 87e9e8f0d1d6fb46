package pacht

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
// may be on their way too. What was drawn is stored when there are enough for a transaction, or
// the iterator has ended. Between two jobs is looked whether ctx has ended or a transaction failed:
// an iterator that waits for its jobs has to watch ctx itself, and hears of the other with the next one.
//
// It returns how many it stored, not counting duplicates, which are also those jobs with keys that it has
// itself stored in a transaction whose answer was lost. Refused jobs do not stop the others: the
// errors of the first 20 come back joined, each with the number of its job in the iterator, from 1,
// and how many more there were. Any other error ends it, and says of how many jobs everything is known,
// stored, duplicates and refused ones: all after them are not stored, or in doubt (ErrUnknown).
func (c *Client) EnqueueMany(ctx context.Context, jobs iter.Seq[NewJob]) (int64, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	b := bulk{store: c.store, stop: stop}
	defer func() { _ = b.wait(0) }() // something is on its way then only if the iterator panicked
	var batch []NewJob
	most, size := c.store.BatchSize(), 0
	for j := range jobs {
		if ctx.Err() != nil {
			return b.end(ended(ctx))
		}
		batch, size = append(batch, j), size+len(j.Args)+len(j.Metadata)
		if len(batch) < most && size < batchBytes {
			continue
		}
		size = 0
		var err error
		if batch, err = b.send(ctx, batch); err != nil {
			return b.end(err)
		}
	}
	err := ended(ctx) // the iterator may have watched it
	if err == nil && len(batch) > 0 {
		_, err = b.send(ctx, batch)
	}
	return b.end(err)
}

// ended is why ctx has ended, nil if it has not.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if err == nil || errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// bulk is an EnqueueMany with at most two transactions on their way, which are committed in order.
type bulk struct {
	store Enqueuer
	stop  context.CancelCauseFunc // ends what is on its way behind one that failed, and the drawing
	last  *Turn
	sent  []*flight // oldest first
	free  [][]NewJob

	known   int64 // jobs of which is known what became of them
	stored  int64
	refused int64
	errs    []error // of the first that were refused
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
		err := turn.run(func() (err error) {
			f.answers, err = b.store.EnqueueInTurn(ctx, batch, turn)
			return err
		})
		if err != nil {
			b.stop(err)
		}
		f.landed <- err
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
		landed := <-f.landed
		if err == nil && landed == nil {
			b.count(f.answers)
		}
		err = cmp.Or(err, landed)
		clear(f.batch)
		b.free = append(b.free, f.batch[:0])
	}
	return err
}

func (b *bulk) count(answers []Enqueued) {
	const mostErrors = 20
	for _, a := range answers {
		b.known++
		switch {
		case a.Err != nil:
			b.refused++
			if len(b.errs) < mostErrors {
				b.errs = append(b.errs, fmt.Errorf("job %d: %w", b.known, a.Err))
			}
		case !a.Duplicate:
			b.stored++
		}
	}
}

// end waits for what is on its way and answers what became of all. err is why no more was sent; nil
// if there are no more jobs.
func (b *bulk) end(err error) (int64, error) {
	err = cmp.Or(b.wait(0), err)
	errs := b.errs
	if more := b.refused - int64(len(errs)); more > 0 {
		errs = append(errs, fmt.Errorf("%d more jobs were refused", more))
	}
	if err != nil {
		errs = append(errs, fmt.Errorf("ended after job %d: %w", b.known, err))
	}
	return b.stored, errors.Join(errs...)
}
