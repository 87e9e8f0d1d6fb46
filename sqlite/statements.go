package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"time"

	"github.com/pacht-queue/pacht"
)

// statements holds the text of sql/*.sql with the configured prefix, one field for each file.
type statements struct {
	Begin            string `sql:"begin"`
	Commit           string `sql:"commit"`
	Rollback         string `sql:"rollback"`
	Savepoint        string `sql:"savepoint"`
	SavepointUndo    string `sql:"savepoint_undo"`
	SavepointRelease string `sql:"savepoint_release"`
	Now              string `sql:"now"`
	DataVersion      string `sql:"data_version"`
	Pragmas          string `sql:"pragmas"`

	SchemaCreate  string `sql:"schema_table"`
	SchemaExists  string `sql:"schema_found"`
	SchemaApplied string `sql:"schema_applied"`
	SchemaRecord  string `sql:"schema_record"`

	KeyFind      string `sql:"key_find"`
	KeyStore     string `sql:"key_store"`
	Enqueue      string `sql:"enqueue"`
	EnqueueLease string `sql:"enqueue_lease"`
	Claim        string `sql:"claim"`
	ClaimLook    string `sql:"claim_look"`
	ClaimedFacts string `sql:"claimed_facts"`
	ClaimIDClose string `sql:"claim_id_close"`
	ClaimID      string `sql:"claim_id"`
	Claimed      string `sql:"claimed"`
	HeldBy       string `sql:"held_by"`
	Renew        string `sql:"renew"`
	Settle       string `sql:"settle"`
	SettleDone   string `sql:"settle_done"`
	FinishDone   string `sql:"finish_done"`
	Vacate       string `sql:"vacate"`
	Finish       string `sql:"finish"`
	Lost         string `sql:"lost"`
	Report       string `sql:"report"`
	StepSet      string `sql:"set_step"`
	BeginEffect  string `sql:"begin_effect"`
	AnswerEffect string `sql:"answer_effect"`
	Beat         string `sql:"beat"`
	Leave        string `sql:"leave"`

	WatchDue    string `sql:"watch_due"`
	WatchStamp  string `sql:"watch_stamp"`
	WatchSooner string `sql:"watch_sooner"`
	Expired     string `sql:"expired"`
	ExpiredNext string `sql:"expired_next"`
	ExpireFacts string `sql:"expire_facts"`
	Expire      string `sql:"expire"`

	AuditAdd      string `sql:"audit_add"`
	RetryParked   string `sql:"retry_parked"`
	RetryFinished string `sql:"retry_finished"`
	CancelRequest string `sql:"cancel_request"`
	TakeAndClose  string `sql:"take_and_close"`
	QueueSet      string `sql:"set_queue"`

	Decide      string `sql:"decide"`
	DecideNote  string `sql:"decide_note"`
	Breaks      string `sql:"breaks"`
	BreaksOpen  string `sql:"breaks_open"`
	BreaksOf    string `sql:"breaks_of"`
	Decisions   string `sql:"decisions"`
	BreakCounts string `sql:"break_counts"`

	PruneCompleted string `sql:"prune_completed"`
	PruneBadly     string `sql:"prune_ended_badly"`
	Prune          string `sql:"prune"`
	PruneAttempts  string `sql:"prune_attempts"`
	PruneSteps     string `sql:"prune_steps"`
	PruneReports   string `sql:"prune_reports"`
	PruneEffects   string `sql:"prune_effects"`
	PruneKeysFound string `sql:"prune_keys_find"`
	PruneKeys      string `sql:"prune_keys"`
	SweepTurn      string `sql:"sweep_turn"`
	SweepStamp     string `sql:"sweep_stamp"`
	SweepWorkers   string `sql:"sweep_workers"`

	Job            string `sql:"job"`
	Jobs           string `sql:"jobs_any"`
	JobsUnfinished string `sql:"jobs_unfinished"`
	JobsEndedBadly string `sql:"jobs_ended_badly"`
	Attempts       string `sql:"attempts"`
	Steps          string `sql:"steps"`
	Effects        string `sql:"effects"`
	OpenEffects    string `sql:"open_effects"`
	Reports        string `sql:"reports"`
	Audit          string `sql:"audit"`
	Counts         string `sql:"counts"`
	Waiting        string `sql:"waiting"`
	Due            string `sql:"due"`
	Workers        string `sql:"workers"`
	Queue          string `sql:"queue"`
	Queues         string `sql:"queues"`
	Watch          string `sql:"watch"`
	LeaseStats     string `sql:"lease_stats"`
	Check          string `sql:"check"`

	AgeJobs      string `sql:"age_jobs"`
	AgeLeases    string `sql:"age_leases"`
	AgeAttempts  string `sql:"age_attempts"`
	AgeSteps     string `sql:"age_steps"`
	AgeEffects   string `sql:"age_effects"`
	AgeReports   string `sql:"age_reports"`
	AgeKeys      string `sql:"age_keys"`
	AgeWorkers   string `sql:"age_workers"`
	AgeAudit     string `sql:"age_audit"`
	AgeWatch     string `sql:"age_watch"`
	AgeSweeps    string `sql:"age_sweeps"`
	AgeBreaks    string `sql:"age_breaks"`
	AgeDecisions string `sql:"age_decisions"`
}

// runner runs statements: the writer's prepared ones, a caller's transaction, or a reader.
type runner interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// one reads the first row into dest, and says whether there was one. The statement runs to
// its end, as a write with RETURNING must.
func one(ctx context.Context, r runner, query string, args []any, dest ...any) (bool, error) {
	rows, err := r.QueryContext(ctx, query, args...)
	if err != nil {
		return false, err
	}
	found := rows.Next()
	if found {
		err = rows.Scan(dest...)
	}
	for err == nil && rows.Next() {
		err = errors.New("more than one row")
	}
	return found, errors.Join(err, rows.Err(), rows.Close())
}

// each reads all rows with scan.
func each(ctx context.Context, r runner, query string, args []any, scan func(*sql.Rows) error) error {
	rows, err := r.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	for err == nil && rows.Next() {
		err = scan(rows)
	}
	return errors.Join(err, rows.Err(), rows.Close())
}

// ids runs a statement that answers job ids.
func ids(ctx context.Context, r runner, query string, args ...any) (list []pacht.ID, err error) {
	err = each(ctx, r, query, args, func(rows *sql.Rows) error {
		var id pacht.ID
		if err := rows.Scan(&id); err != nil {
			return err
		}
		list = append(list, id)
		return nil
	})
	return list, err
}

// idList is a JSON array of numbers: what json_each takes.
func idList(ids []pacht.ID) string {
	b := make([]byte, 0, 8*len(ids)+2)
	b = append(b, '[')
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(id), 10)
	}
	return string(append(b, ']'))
}

// changed runs a write and says how many rows it changed.
func changed(ctx context.Context, r runner, query string, args ...any) (int64, error) {
	res, err := r.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// millis is a time as it is stored, whole milliseconds; NULL for the zero time.
func millis(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMilli()
}

// at is a stored time.
func at(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// atNull is a stored time that may be NULL.
func atNull(ms sql.NullInt64) time.Time {
	if !ms.Valid {
		return time.Time{}
	}
	return at(ms.Int64)
}

// duration is stored in whole milliseconds too.
func duration(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// text is NULL for nothing.
func text[T ~string | ~[]byte](s T) any {
	if len(s) == 0 {
		return nil
	}
	return string(s)
}
