package pacht

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Reader answers questions. Reads see only what is committed, and decide nothing.
type Reader interface {
	// Now is the database's clock.
	Now(ctx context.Context) (time.Time, error)
	// Job is one job with its args and lease; ErrNotFound if there is none.
	Job(ctx context.Context, id ID) (JobInfo, error)
	// Jobs lists jobs without args and metadata, newest id first. Cheap for unfinished, Dead and Cancelled
	// ones whatever the history; a kind or queue that is rare among Completed ones is slow.
	Jobs(ctx context.Context, f Filter) ([]JobInfo, error)
	// Attempts is the ledger of one job, oldest first.
	Attempts(ctx context.Context, id ID) ([]Attempt, error)
	// Reports is what came too late for one job, oldest first.
	Reports(ctx context.Context, id ID) ([]Report, error)
	// Audit is what was done by hand to one job, oldest first; with id 0 to queues.
	Audit(ctx context.Context, id ID) ([]AuditEntry, error)
	// Counts counts unfinished, Dead and Cancelled jobs by queue and status. Completed ones
	// are not counted: that would read the whole history.
	Counts(ctx context.Context) ([]Count, error)
	// Waiting counts the due Pending jobs by queue and kind, in this order.
	Waiting(ctx context.Context) ([]Waiting, error)
	// Workers lists worker processes, the running ones first, then newest first.
	Workers(ctx context.Context) ([]WorkerInfo, error)
	// Queues lists the queues that have settings of their own.
	Queues(ctx context.Context) ([]QueueInfo, error)
	// Watch says when the Stuck Watcher last made a pass.
	Watch(ctx context.Context) (WatchInfo, error)
	// LeaseStats measures the newest closed leases, at most n, by kind.
	LeaseStats(ctx context.Context, n int) ([]LeaseStats, error)
}

// Filter selects jobs. The zero value lists the newest of all.
type Filter struct {
	Status  Status // "" = any
	Kind    string // "" = any
	Queue   string // "" = any
	Owner   string // held by this owner now
	Expired bool   // only Processing past lease_until
	Before  ID     // only ids before this one: the next page. 0 = from the newest
	Limit   int    // 1 to 1000, 0 = 50
}

// Validate checks a filter, and fills in the limit.
func (f *Filter) Validate() error {
	if f.Limit == 0 {
		f.Limit = 50
	}
	if f.Limit < 1 || f.Limit > 1000 {
		return &InvalidError{Field: "limit", Value: strconv.Itoa(f.Limit), Bound: "1 to 1000"}
	}
	if f.Status != "" && !slices.Contains(Statuses, f.Status) {
		return &InvalidError{Field: "status", Value: clip(string(f.Status)), Bound: "Pending, Processing, Stuck, Completed, Dead or Cancelled"}
	}
	for _, each := range [][2]string{{"kind", f.Kind}, {"queue", f.Queue}} {
		if each[1] == "" {
			continue
		}
		if err := ValidName(each[0], each[1]); err != nil {
			return err
		}
	}
	if f.Owner != "" {
		if err := ValidOwner(f.Owner); err != nil {
			return err
		}
	}
	if f.Before < 0 {
		return &InvalidError{Field: "before", Value: f.Before.String(), Bound: "0 (from the newest) or more"}
	}
	return nil
}

// AuditEntry is one act by hand.
type AuditEntry struct {
	At     time.Time `json:"at"`
	By     string    `json:"by"`
	Act    string    `json:"act"` // retry, cancel, cancel request, release, resolve, set queue
	Job    ID        `json:"job,omitzero"`
	Queue  string    `json:"queue,omitempty"`
	Reason string    `json:"reason"`
}

// Count is the number of jobs of one queue in one status.
type Count struct {
	Queue  string `json:"queue"`
	Status Status `json:"status"`
	Jobs   int64  `json:"jobs"`
	// Due is how many of the Pending are due now; Expired how many of the Processing are past
	// lease_until.
	Due     int64 `json:"due,omitempty"`
	Expired int64 `json:"expired,omitempty"`
}

// Waiting is how many jobs of one queue and kind are due, and since when the oldest is.
type Waiting struct {
	Queue string    `json:"queue"`
	Kind  string    `json:"kind"`
	Jobs  int64     `json:"jobs"`
	Since time.Time `json:"since"` // the oldest run_at
}

// QueueInfo is a queue with settings of its own.
type QueueInfo struct {
	Name string `json:"name"`
	QueueSettings
}

// WatchInfo is the state of the Stuck Watcher.
type WatchInfo struct {
	PassedAt time.Time     `json:"passed_at,omitzero"` // zero: never
	PassedBy string        `json:"passed_by,omitempty"`
	Took     time.Duration `json:"took_ns"`
	NextAt   time.Time     `json:"next_at,omitzero"`
}

// LeaseStats is what the newest closed leases of one kind say about its TTL. Expired ones are
// counted and not measured: they last as long as they were left alone.
type LeaseStats struct {
	Kind   string        `json:"kind"`
	Leases int64         `json:"leases"`
	P50    time.Duration `json:"p50_ns"` // how long they were held
	P99    time.Duration `json:"p99_ns"`
	Max    time.Duration `json:"max_ns"`
	MinTTL time.Duration `json:"min_ttl_ns"`
	// LongerThanTTL were held longer than their TTL, which only renewals or nobody's looking
	// make possible; Renewed are those of them that were still in time at the end.
	LongerThanTTL int64 `json:"longer_than_ttl"`
	Renewed       int64 `json:"renewed"`
	Expired       int64 `json:"expired"`
	Late          int64 `json:"late"`
}

// Checker verifies on stored data what the rules promise.
type Checker interface {
	// Check reads the tables from end to end and lists what no rule allows; empty is good.
	// It answers for one snapshot, and may run beside workers.
	Check(ctx context.Context) ([]Violation, error)
	// Schema says which version the tables have and which this program wants.
	Schema(ctx context.Context) (found, wanted int, err error)
	// ClaimSQL is the statement that Claim runs, for people to read.
	ClaimSQL() string
}

// Violation is a stored fact that no rule allows.
type Violation struct {
	Rule   string `json:"rule"` // "R4", or "schema"
	Job    ID     `json:"job,omitzero"`
	Detail string `json:"detail"`
}

// Migration is one numbered step of the schema.
type Migration struct {
	Version   int       `json:"version"`
	Name      string    `json:"name"`
	AppliedAt time.Time `json:"applied_at,omitzero"` // zero: not yet
}

// Migrator brings the schema up. Both stores have it; workers only check the version.
type Migrator interface {
	// MigrateUp applies what is missing, under a lock that holds across processes, each
	// migration in a transaction of its own, and returns what it applied. Safe to call from
	// several processes at once and to be killed in the middle. It refuses a schema that is
	// newer than this program, or whose applied migrations have other checksums.
	MigrateUp(ctx context.Context) ([]Migration, error)
	// Migrations lists all that this program knows, with when they were applied.
	Migrations(ctx context.Context) ([]Migration, error)
	// MigrationSQL is the SQL of all of them, to read or to apply by other means.
	MigrationSQL() string
}

// WhyNotRunning says in one line why a job does not run now, or that it does.
func WhyNotRunning(j JobInfo, workers []WorkerInfo, now time.Time) string {
	at := func(t time.Time) string {
		return fmt.Sprintf("%s (%s)", t.UTC().Format(time.RFC3339), relative(t.Sub(now)))
	}
	switch j.Status {
	case Completed, Dead, Cancelled:
		return fmt.Sprintf("it is finished: %s since %s", j.Status, at(j.FinishedAt))
	case Stuck:
		return "it is parked for a person or the reconciler: see its last attempt, then retry, resolve or cancel it"
	case Processing:
		if now.After(j.LeaseUntil) {
			return fmt.Sprintf("its lease, held by %s, ended %s; the next pass of a watcher closes it", j.LeaseOwner, at(j.LeaseUntil))
		}
		return fmt.Sprintf("it runs: held by %s until %s", j.LeaseOwner, at(j.LeaseUntil))
	}
	if j.RunAt.After(now) {
		why := "it waits for its time"
		if j.Attempt > 0 {
			why = "it waits for its next attempt"
		}
		return fmt.Sprintf("%s, %s", why, at(j.RunAt))
	}
	live := 0
	for _, w := range workers {
		if !w.StoppedAt.IsZero() || w.Missed(now) || !slices.Contains(w.Queues, j.Queue) {
			continue
		}
		if slices.Contains(w.Kinds, j.Kind) {
			return fmt.Sprintf("it is due since %s; workers are busy with jobs before it, or about to take it", at(j.RunAt))
		}
		live++
	}
	if live > 0 {
		return fmt.Sprintf("no running worker handles kind %q (%d handle other kinds of queue %q)", j.Kind, live, j.Queue)
	}
	return fmt.Sprintf("no running worker serves queue %q", j.Queue)
}

func relative(d time.Duration) string {
	if d < 0 {
		return (-d).Round(time.Second).String() + " ago"
	}
	return "in " + d.Round(time.Second).String()
}
