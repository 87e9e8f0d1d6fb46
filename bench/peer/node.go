package peer

import (
	"context"
	"errors"
)

// nodePeer is a queue of Node.js. Its script speaks the same lines as a child of this program.
type nodePeer struct{ about About }

func (p nodePeer) About() About { return p.about }

var errScript = errors.New("it is run by Node.js")

func (nodePeer) Prepare(context.Context, Target) error         { return errScript }
func (nodePeer) Open(context.Context, Target) (Session, error) { return nil, errScript }

var graphile = nodePeer{About{
	Name: "graphile-worker", Title: "graphile-worker, tuned", Script: "graphile-worker", Module: "graphile-worker",
	Settings:  "as its page on performance: concurrentJobs 24, maxPoolSize 25, local queue 500, batched completion with delay 0; bulk by addJobs, 1,000 at a time",
	Keeps:     "nothing",
	Acts:      []Act{Single, Bulk, Drain, Pickup},
	Snapshot:  true,
	Processes: true, Kilobyte: true,
	Unfinished: "FROM graphile_worker._private_jobs",
}}

const pgBossSettings = "2 consumers with batchSize 2,000, burstWhenBatchFull"

var pgBoss = nodePeer{About{
	Name: "pg-boss", Title: "pg-boss, tuned", Script: "pg-boss", Module: "pg-boss",
	Settings:  pgBossSettings + ", poll 0.5 s (its least); bulk by insert, 1,000 at a time",
	Keeps:     "the job's row, updated, for 7 days",
	Acts:      []Act{Single, Bulk, Drain, Pickup},
	Snapshot:  true,
	Processes: true, Kilobyte: true,
	Unfinished: pgBossUnfinished,
}}

// A notification in each insert makes its pickup fast and its inserts slow.
var pgBossNotify = nodePeer{About{
	Name: "pg-boss-notify", Title: "pg-boss, LISTEN/NOTIFY", Script: "pg-boss-notify", Module: "pg-boss",
	Settings:   pgBossSettings + ", useListenNotify, and notify on the queue",
	Keeps:      "the job's row, updated, for 7 days",
	Acts:       []Act{Single, Pickup},
	Unfinished: pgBossUnfinished,
}}

const pgBossUnfinished = "FROM pgboss.job WHERE name = 'bench' AND state < 'completed'"
