package pacht

import (
	"encoding/json"
	"fmt"
	"time"
)

// Option sets one property of one enqueue. A value out of bounds is an error of the enqueue,
// never of the option.
type Option func(*NewJob)

// New makes a job of args, with the options of its kind and then the ones given here. What
// is wrong with them is reported by Validate, and so by every enqueue. Args are encoded by
// encoding/json, which replaces invalid UTF-8 in strings; the document is stored byte for byte.
func New(args Args, opts ...Option) NewJob {
	if args == nil {
		return NewJob{err: &InvalidError{Field: "args", Value: "nil", Bound: "a value with a kind"}}
	}
	j := NewJob{Kind: args.Kind()}
	raw, err := json.Marshal(args)
	if err != nil {
		j.refuse("args", err, "a value that encodes as JSON")
	}
	j.Args = raw
	if kind, ok := args.(ArgsWithOptions); ok {
		j.apply(kind.EnqueueOptions())
	}
	j.apply(opts)
	return j
}

func (j *NewJob) apply(opts []Option) {
	for _, opt := range opts {
		opt(j)
	}
}

// refuse keeps the first thing that an option found wrong. An explicit zero is refused here,
// because in the struct zero means "not said".
func (j *NewJob) refuse(field string, value any, bound string) {
	if j.err == nil {
		j.err = &InvalidError{Field: field, Value: fmt.Sprint(value), Bound: bound}
	}
}

// Queue puts the job into a queue other than DefaultQueue.
func Queue(name string) Option {
	return func(j *NewJob) {
		if name == "" {
			j.refuse("queue", `""`, namePattern)
		}
		j.Queue = name
	}
}

// Priority is 1 (first) to 4. A lower one waits while a better one is due.
func Priority(p int) Option {
	return func(j *NewJob) {
		if p == 0 {
			j.refuse("priority", p, priorityBound)
		}
		j.Priority = p
	}
}

// RunAt is the earliest time to run, up to Horizon ahead. A time that is past means now.
func RunAt(t time.Time) Option { return func(j *NewJob) { j.RunAt = t } }

// RunIn is like RunAt, counted from the database's now.
func RunIn(d time.Duration) Option { return func(j *NewJob) { j.Delay = d } }

// MaxAttempts is how often the job may run in all: 1 means never again after a failure.
func MaxAttempts(n int) Option {
	return func(j *NewJob) {
		if n == 0 {
			j.refuse("max_attempts", n, attemptsBound)
		}
		j.MaxAttempts = n
	}
}

// MaxCrashes is how many expiries in a row set the job aside as Stuck.
func MaxCrashes(n int) Option {
	return func(j *NewJob) {
		if n == 0 {
			j.refuse("max_crashes", n, crashesBound)
		}
		j.MaxCrashes = n
	}
}

// TTL is how long a lease lasts without a renewal: MinTTL to MaxTTL.
func TTL(d time.Duration) Option {
	return func(j *NewJob) {
		if d == 0 {
			j.refuse("ttl", d, ttlBound)
		}
		j.TTL = d
	}
}

// OnCrash says what an expired lease becomes.
func OnCrash(p CrashPolicy) Option {
	return func(j *NewJob) {
		if p == "" {
			j.refuse("crash_policy", `""`, policyBound)
		}
		j.CrashPolicy = p
	}
}

// IdempotencyKey makes the enqueue idempotent: the same key with the same kind and args
// answers the first job's id, with other content ErrKeyConflict. A key used up to its life's
// end stands on while its job is unfinished.
func IdempotencyKey(key string) Option {
	return func(j *NewJob) {
		if key == "" {
			j.refuse("idempotency key", `""`, keyBound)
		}
		j.Key = key
	}
}

// KeyScope separates keys of different producers or tenants. The default scope is empty.
func KeyScope(scope string) Option { return func(j *NewJob) { j.Scope = scope } }

// KeyLife is how long the idempotency key stands, instead of DefaultKeyLife.
func KeyLife(d time.Duration) Option {
	return func(j *NewJob) {
		if d == 0 {
			j.refuse("key life", d, keyLifeBound)
		}
		j.KeyLife = d
	}
}

// Metadata is a JSON object of facts about the job that are not its args: a trace id, a tenant.
func Metadata(v any) Option {
	return func(j *NewJob) {
		raw, err := json.Marshal(v)
		if err != nil {
			j.refuse("metadata", err, "a value that encodes as JSON")
		}
		j.Metadata = raw
	}
}
