// Package peer adapts job queues to the benchmark, one file each: every queue is set up as its
// own documentation says, and does the same work.
package peer

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
)

// Act is something to measure. What a queue cannot do is absent from its acts, not faked.
type Act string

// The acts.
const (
	Single Act = "single" // enqueue one job in one transaction, 8 at the same time
	Bulk   Act = "bulk"   // enqueue many, by the fastest documented way
	Drain  Act = "drain"  // run a backlog
	Pickup Act = "pickup" // run single jobs as they come, when idle
)

// Peer is a job queue with one way of configuring it.
type Peer interface {
	About() About
	// Prepare makes the queue's tables in an empty database.
	Prepare(ctx context.Context, at Target) error
	// Open connects. The session implements an interface for each act that About names.
	Open(ctx context.Context, at Target) (Session, error)
}

// About says what a peer is.
type About struct {
	Name     string // as --only takes it
	Title    string // as tables show it
	Module   string // whose version is reported
	Version  string // if it is not that of a module
	Settings string // what differs from the defaults
	Keeps    string // what is left of a finished job
	SQLite   bool   // a file instead of a PostgreSQL database
	Floor    bool   // raw SQL, no queue
	Script   string // of Node.js, instead of Prepare and Open
	Acts     []Act
	// Share is the part of the jobs of a full run that a slow queue gets, so that a run ends:
	// 0 = all. Figures per job hardly depend on it.
	Share float64
	// Unfinished is the FROM and WHERE of a query that finds jobs which are not finished.
	Unfinished string
	// Extra scenarios that are run with this peer beside those of its acts; see package run.
	Snapshot, Processes, Kilobyte bool
}

// Can says whether the peer does this.
func (a About) Can(act Act) bool { return slices.Contains(a.Acts, act) }

// Target is a database: a URL of PostgreSQL, or the path of a SQLite file.
type Target struct {
	URL         string `json:"url"`
	Synchronous string `json:"synchronous,omitempty"` // of SQLite: FULL or NORMAL
}

// Session is an open connection to a queue.
type Session interface {
	Close(ctx context.Context) error
}

// Enqueuer stores one job, durably when it returns. It is called from 8 goroutines.
type Enqueuer interface {
	Enqueue(ctx context.Context, p Payload) error
}

// BulkEnqueuer stores n jobs with the numbers 0 to n-1.
type BulkEnqueuer interface {
	EnqueueBulk(ctx context.Context, n, bytes int) error
}

// Worker runs jobs until ctx ends, calls handle with each job's number, and returns when all it
// started has ended. It may be called again.
type Worker interface {
	Work(ctx context.Context, handle func(number int)) error
}

// Payload is the args of every job.
type Payload struct {
	Number int    `json:"number"`
	Pad    string `json:"pad"`
}

// NewPayload makes args that are this long as JSON.
func NewPayload(number, bytes int) Payload {
	p := Payload{Number: number}
	empty := len(`{"number":,"pad":""}`) + len(fmt.Sprint(number))
	p.Pad = padding[:min(max(0, bytes-empty), len(padding))]
	return p
}

// JSON is the document, written by hand so that no peer pays more for its encoding than others.
func (p Payload) JSON() []byte {
	return fmt.Appendf(nil, `{"number":%d,"pad":"%s"}`, p.Number, p.Pad)
}

var padding = strings.Repeat("abcdefghijklmnopqrstuvwxyz012345", 4096/32)

// batches calls fn for each batch of payloads 0 to n-1.
func batches(n, bytes, size int, fn func([]Payload) error) error {
	batch := make([]Payload, 0, size)
	for i := range n {
		batch = append(batch, NewPayload(i, bytes))
		if len(batch) < size && i < n-1 {
			continue
		}
		if err := fn(batch); err != nil {
			return err
		}
		batch = batch[:0]
	}
	return nil
}

// All lists the peers in the order of the report.
func All() []Peer {
	return []Peer{
		pachtPeer{}, river{tuned: true}, river{}, graphile, pgBoss, pgBossNotify, gue{}, goqite{}, neoqPeer{}, neoqPeer{backlog: true},
		floor{update: true}, floor{}, leaseFloor{},
		pachtPeer{sqlite: true}, riverSQLite{}, goqite{sqlite: true},
	}
}

// Find is the peer of that name.
func Find(name string) (Peer, error) {
	for _, p := range All() {
		if p.About().Name == name {
			return p, nil
		}
	}
	return nil, fmt.Errorf("there is no peer %q", name)
}

// VersionOf is the version of a module that this program was built with.
func VersionOf(module string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, d := range info.Deps {
		if d.Path == module {
			return strings.TrimPrefix(d.Version, "v")
		}
	}
	return ""
}
