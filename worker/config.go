package worker

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/watch"
)

// Config is a worker's configuration. Queues and Handlers must be given; the zero value of
// everything else works. There is no setting for renewals: each lease is renewed after a
// third of its own TTL, so the two cannot be put in a wrong order.
type Config struct {
	// Queues says how many jobs of each queue may run at once: 1 to 100,000. So many are leased
	// at most, and while the outcomes of 50 or more are being stored, as many more.
	Queues map[string]int
	// Handlers are the kinds this worker takes, one handler each. Others are left alone.
	Handlers []Handler
	// Middleware wraps every handler, the first outermost.
	Middleware []Middleware

	// Timeout cancels a handler that runs longer; 0 = none. A kind may have its own.
	Timeout time.Duration
	// TimeoutGrace is how much longer a handler may take to return once it was cancelled by
	// its timeout, before its job is not renewed any more and its slot counts as wedged;
	// 0 = 10s.
	TimeoutGrace time.Duration
	// StopWhenWedged ends Run, with an UnfinishedError, once every slot is blocked by a handler
	// that ignores its context, so that a supervisor can start the process anew.
	StopWhenWedged bool
	// Grace is how long Run lets handlers run on once its context has ended, before it
	// cancels them; 0 = 10s. What still runs Unwind later is left to expire and named in
	// Run's error; 0 = 5s. Their sum should be less than the time an orchestrator gives
	// before it kills.
	Grace  time.Duration
	Unwind time.Duration

	// Poll is how often idle queues are asked for due jobs, all by one look: each Poll or up to
	// a fifth later; 1ms to 1h, 0 = 1s. It bounds how late a job starts of which no notice told:
	// because its time has come, or the store or a pooler brings none.
	Poll time.Duration
	// NoListen makes the worker find jobs by polling alone. It has no connection to listen on,
	// and no transaction that enqueues for it sends a notice: for programs that enqueue in
	// transactions which they then prepare (PREPARE TRANSACTION refuses those that notified).
	NoListen bool
	// Retry is the policy of failed jobs whose kind has none; nil = pacht.Exponential{}.
	Retry pacht.RetryPolicy
	// Watch configures the Stuck Watcher that runs in each worker, unless NoWatch is set,
	// because somebody else runs "pacht watch".
	Watch   watch.Config
	NoWatch bool
	// Retention says how long finished jobs are kept; the zero value: for ever. Every worker
	// brings a sweeper, which also deletes expired idempotency keys and rows of workers that
	// ended a day ago, unless NoSweep is set, which is refused together with a Retention. Where
	// workers have different ones, the shortest counts.
	Retention pacht.Retention
	NoSweep   bool

	// Name stands for the host in the owner's name; "" = the host's name.
	Name string
	// Logger gets what a person should see; nil = slog.Default(). Args are never logged.
	Logger *slog.Logger
	// OnEvent is called after what it tells of is committed, from one goroutine, in order.
	// Events are best effort: if it is slow they are dropped and counted, work never waits.
	OnEvent func(Event)
}

func (c *Config) check() error {
	for name, n := range c.Queues {
		if err := pacht.ValidName("queue", name); err != nil {
			return err
		}
		if n < 1 || n > 100_000 {
			return &pacht.InvalidError{Field: "concurrency of queue " + name, Value: strconv.Itoa(n), Bound: "1 to 100000"}
		}
	}
	if len(c.Queues) == 0 {
		return &pacht.InvalidError{Field: "queues", Bound: "at least one queue with its concurrency"}
	}
	if len(c.Handlers) == 0 {
		return &pacht.InvalidError{Field: "handlers", Bound: "at least one handler"}
	}
	seen := map[string]bool{}
	for _, h := range c.Handlers {
		if err := h.check(); err != nil {
			return err
		}
		if seen[h.kind] {
			return &pacht.InvalidError{Field: "handlers", Value: strconv.Quote(h.kind), Bound: "one handler for each kind"}
		}
		seen[h.kind] = true
	}
	for _, m := range c.Middleware {
		if m == nil {
			return &pacht.InvalidError{Field: "middleware", Value: "nil", Bound: "functions"}
		}
	}
	for _, d := range []struct {
		field    string
		value    *time.Duration
		standard time.Duration
		least    time.Duration
		bound    string
	}{
		{"timeout", &c.Timeout, 0, 0, "0 (none) or more"},
		{"timeout grace", &c.TimeoutGrace, 10 * time.Second, 0, "0 (10s) or more"},
		{"grace", &c.Grace, 10 * time.Second, 0, "0 (10s) or more"},
		{"unwind", &c.Unwind, 5 * time.Second, 0, "0 (5s) or more"},
		{"poll", &c.Poll, time.Second, time.Millisecond, "1ms to 1h"},
	} {
		if *d.value == 0 {
			*d.value = d.standard
		}
		if *d.value < d.least || d.field == "poll" && *d.value > time.Hour {
			return &pacht.InvalidError{Field: d.field, Value: d.value.String(), Bound: d.bound}
		}
	}
	if c.NoSweep && c.Retention != (pacht.Retention{}) {
		return &pacht.InvalidError{Field: "retention", Value: "together with NoSweep", Bound: "one of the two: who does not sweep deletes nothing"}
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Watch.Logger == nil {
		c.Watch.Logger = c.Logger
	}
	return nil
}

func (c *Config) queues() []string { return slices.Sorted(maps.Keys(c.Queues)) }

func (c *Config) kinds() []string {
	kinds := make([]string, len(c.Handlers))
	for i, h := range c.Handlers {
		kinds[i] = h.kind
	}
	slices.Sort(kinds)
	return kinds
}

// UnfinishedError is what Run returns when handlers had not returned by the end, or their
// outcome could not be stored: these leases are left to expire.
type UnfinishedError struct {
	Jobs []Unfinished
}

// Unfinished is a job that Run left behind.
type Unfinished struct {
	Ref        pacht.Ref
	Kind       string
	LeaseUntil time.Time // by the database's clock; the job is free afterwards
	Returned   bool      // its handler did return, but the database did not take its outcome
}

func (e *UnfinishedError) Error() string {
	const most = 20
	names := make([]string, 0, most+1)
	for i, j := range e.Jobs {
		if i == most {
			names = append(names, fmt.Sprintf("and %d more", len(e.Jobs)-i))
			break
		}
		why := "its handler had not returned"
		if j.Returned {
			why = "its outcome could not be stored"
		}
		names = append(names, fmt.Sprintf("%s (%s): %s, lease until %s", j.Ref, j.Kind, why, j.LeaseUntil.UTC().Format(time.RFC3339)))
	}
	return fmt.Sprintf("%d jobs were not finished when the worker stopped and are left to expire: %s", len(e.Jobs), strings.Join(names, "; "))
}
