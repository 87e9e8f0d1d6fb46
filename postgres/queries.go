package postgres

import (
	"embed"

	"github.com/pacht-queue/pacht/internal/sqltext"
)

//go:embed sql/*.sql
var sqlFiles embed.FS

//go:embed migrations/*.sql
var migrationFiles embed.FS

// queries are the statements, one per file in sql.
type queries struct {
	Age            string `sql:"age"`
	AnswerEffect   string `sql:"answer_effect"`
	Attempts       string `sql:"attempts"`
	Audit          string `sql:"audit"`
	Backend        string `sql:"backend"`
	Beat           string `sql:"beat"`
	Begin          string `sql:"begin"`
	BeginEffect    string `sql:"begin_effect"`
	BoundIdle      string `sql:"bound_idle"`
	BoundLease     string `sql:"bound_lease"`
	Bounds         string `sql:"bounds"`
	Break          string `sql:"break"`
	BreakAround    string `sql:"break_around"`
	BreakCounts    string `sql:"break_counts"`
	Breaks         string `sql:"breaks"`
	BreaksOf       string `sql:"breaks_of"`
	BreaksOpen     string `sql:"breaks_open"`
	Cancel         string `sql:"cancel"`
	Check          string `sql:"check"`
	Claim          string `sql:"claim"`
	ClaimID        string `sql:"claim_id"`
	Claiming       string `sql:"claiming"`
	ClaimsOver     string `sql:"claims_over"`
	Commit         string `sql:"commit"`
	Complete       string `sql:"complete"`
	CopyJobs       string `sql:"copy_jobs"`
	CopyLeases     string `sql:"copy_leases"`
	CopyNotify     string `sql:"copy_notify"`
	CopyNumber     string `sql:"copy_number"`
	Counts         string `sql:"counts"`
	Decide         string `sql:"decide"`
	Decisions      string `sql:"decisions"`
	Due            string `sql:"due"`
	Durable        string `sql:"durable"`
	Effects        string `sql:"effects"`
	Enqueue        string `sql:"enqueue"`
	Expire         string `sql:"expire"`
	Expired        string `sql:"expired"`
	Gate           string `sql:"gate"`
	Reached        string `sql:"reached"`
	HeldBy         string `sql:"held_by"`
	Job            string `sql:"job"`
	JobsAny        string `sql:"jobs_any"`
	JobsEndedBadly string `sql:"jobs_ended_badly"`
	JobsUnfinished string `sql:"jobs_unfinished"`
	Keys           string `sql:"keys"`
	LeaseStats     string `sql:"lease_stats"`
	Leave          string `sql:"leave"`
	Lineage        string `sql:"lineage"`
	Listen         string `sql:"listen"`
	LockJob        string `sql:"lock_job"`
	Notify         string `sql:"notify"`
	Now            string `sql:"now"`
	OpenEffects    string `sql:"open_effects"`
	Prune          string `sql:"prune"`
	PruneCompleted string `sql:"prune_completed"`
	PruneBadly     string `sql:"prune_ended_badly"`
	PruneKeys      string `sql:"prune_keys"`
	Queues         string `sql:"queues"`
	Release        string `sql:"release"`
	Renew          string `sql:"renew"`
	Reports        string `sql:"reports"`
	Resolve        string `sql:"resolve"`
	Retry          string `sql:"retry"`
	Rise           string `sql:"rise"`
	Rollback       string `sql:"rollback"`
	Schema         string `sql:"schema"`
	SchemaApplied  string `sql:"schema_applied"`
	SchemaFound    string `sql:"schema_found"`
	SchemaLock     string `sql:"schema_lock"`
	SchemaRecord   string `sql:"schema_record"`
	SchemaTable    string `sql:"schema_table"`
	SetQueue       string `sql:"set_queue"`
	SetStep        string `sql:"set_step"`
	Settle         string `sql:"settle"`
	Settled        string `sql:"settled"`
	Sleep          string `sql:"sleep"`
	Steps          string `sql:"steps"`
	SweepDue       string `sql:"sweep_due"`
	SweepKeys      string `sql:"sweep_keys"`
	SweepStamp     string `sql:"sweep_stamp"`
	SweepTurn      string `sql:"sweep_turn"`
	SweepWorkers   string `sql:"sweep_workers"`
	SweepFloors    string `sql:"sweep_floors"`
	Unlisten       string `sql:"unlisten"`
	Void           string `sql:"void"`
	Waiting        string `sql:"waiting"`
	Watch          string `sql:"watch"`
	WatchStamp     string `sql:"watch_stamp"`
	Workers        string `sql:"workers"`
}

// load reads them with the quoted name of the schema put in.
func (q *queries) load(quoted string) error {
	return sqltext.Fill(q, sqlFiles, "sql", schemaName, quoted)
}

// schemaName is how the files spell the schema.
const schemaName = "pacht."
