package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pacht-queue/pacht"
)

// HandlerFunc does one held job. Nil completes it; see pacht.SettlementOf for what errors
// mean. Its context is cancelled, with the cause, before the lease ends if it cannot be
// renewed, when a cancel was requested, at the timeout, and when the worker stops. Its goroutine
// runs other handlers after it: one that calls runtime.LockOSThread must unlock the thread.
type HandlerFunc func(ctx context.Context, job *pacht.Held) error

// Middleware wraps a handler.
type Middleware func(next HandlerFunc) HandlerFunc

// Handler does the jobs of one kind; made by Handle, HandleWith or HandleKind.
type Handler struct {
	kind string
	opts HandlerOptions
	fn   HandlerFunc
}

// HandlerOptions are a kind's own; the zero value takes the worker's.
type HandlerOptions struct {
	// Timeout cancels a handler that runs longer: nil = the worker's, 0 = none; negative ones
	// are refused.
	Timeout *time.Duration
	// Retry is this kind's policy; nil = the worker's.
	Retry pacht.RetryPolicy
}

// Handle makes a handler of a function over decoded args. Args that do not decode fail the
// attempt, and are retried: during a rolling deploy another worker may know them.
func Handle[T pacht.Args](fn func(ctx context.Context, job *pacht.Job[T]) error) Handler {
	return HandleWith(HandlerOptions{}, fn)
}

// HandleWith is Handle with options.
func HandleWith[T pacht.Args](opts HandlerOptions, fn func(ctx context.Context, job *pacht.Job[T]) error) Handler {
	var zero T
	if any(zero) == nil { // an interface has no kind of its own: refused by New
		return Handler{}
	}
	if fn == nil {
		return HandleKind(zero.Kind(), opts, nil)
	}
	return HandleKind(zero.Kind(), opts, func(ctx context.Context, held *pacht.Held) error {
		job := &pacht.Job[T]{Held: held}
		if err := decode(held.JobInfo, &job.Args); err != nil {
			return err
		}
		return fn(ctx, job)
	})
}

// HandleKind makes a handler of a function over raw args: for programs that learn at run
// time which kinds they take.
func HandleKind(kind string, opts HandlerOptions, fn HandlerFunc) Handler {
	return Handler{kind: kind, opts: opts, fn: fn}
}

func (h Handler) check() error {
	if err := pacht.ValidName("kind", h.kind); err != nil {
		return err
	}
	if h.fn == nil {
		return &pacht.InvalidError{Field: "handler of kind " + h.kind, Value: "nil", Bound: "a function"}
	}
	if t := h.opts.Timeout; t != nil && *t < 0 {
		return &pacht.InvalidError{Field: "timeout of kind " + h.kind, Value: t.String(), Bound: "0 (none) or more"}
	}
	return nil
}

// decode reads exactly one JSON document. Numbers keep what the target type can hold.
func decode(job pacht.JobInfo, into any) error {
	if err := json.Unmarshal(job.Args, into); err != nil {
		return fmt.Errorf("args of job %d do not decode as kind %q expects: %w", job.ID, job.Kind, err)
	}
	return nil
}
