package postgres

import (
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pacht-queue/pacht"
)

// jobReader reads the columns that all statements answering with jobs but claim.sql have in this
// order, row by row into the same place: hundreds come at once, and all they need of their own is
// args.
type jobReader struct {
	job                                      pacht.JobInfo
	kind, queue, status, policy, owner       word
	args, metadata                           document
	ttl                                      int64
	created, runAt, claimed, until, finished pgtype.Timestamptz
	columns                                  []any
}

func newJobReader() *jobReader {
	r := &jobReader{}
	j := &r.job
	r.columns = []any{
		&j.ID, &r.kind, &r.queue, &j.Priority, &r.args, &r.metadata,
		&r.status, &j.Attempt, &j.MaxAttempts, &j.Crashes, &j.MaxCrashes, &j.Token, &r.ttl, &r.policy,
		&r.created, &r.runAt, &r.owner, &r.claimed, &r.until, &j.CancelRequested, &r.finished,
	}
	return r
}

// newClaimReader reads what claim.sql answers: not what the caller knows, whose claim it is and of
// which queue.
func newClaimReader(req pacht.ClaimRequest) *jobReader {
	r := &jobReader{queue: word(req.Queue), owner: word(req.Owner), status: word(pacht.Processing)}
	j := &r.job
	r.columns = []any{
		&j.ID, &r.kind, &j.Priority, &r.args, &r.metadata,
		&j.Attempt, &j.MaxAttempts, &j.Crashes, &j.MaxCrashes, &j.Token, &r.ttl, &r.policy,
		&r.created, &r.runAt, &r.claimed, &r.until, &j.CancelRequested,
	}
	return r
}

func (r *jobReader) read(scan scanner) (pacht.JobInfo, error) {
	if err := scan(r.columns...); err != nil {
		return pacht.JobInfo{}, err
	}
	j := r.job
	j.Kind, j.Queue, j.LeaseOwner = string(r.kind), string(r.queue), string(r.owner)
	j.Status, j.CrashPolicy = pacht.Status(r.status), pacht.CrashPolicy(r.policy)
	j.Args, j.Metadata = json.RawMessage(r.args), json.RawMessage(r.metadata)
	j.TTL = time.Duration(r.ttl) * time.Millisecond
	j.CreatedAt, j.RunAt = utc(r.created), utc(r.runAt)
	j.ClaimedAt, j.LeaseUntil, j.FinishedAt = utc(r.claimed), utc(r.until), utc(r.finished)
	return j, nil
}

func (r *jobReader) into(j *pacht.JobInfo, scan scanner) (err error) {
	*j, err = r.read(scan)
	return err
}

// word is a text of which one row often has the same as the row before it.
type word string

// ScanBytes implements pgtype.BytesScanner.
func (w *word) ScanBytes(src []byte) error {
	if string(src) != string(*w) {
		*w = word(src)
	}
	return nil
}

// document is stored JSON; nil if there was none.
type document json.RawMessage

// ScanBytes implements pgtype.BytesScanner.
func (d *document) ScanBytes(src []byte) error {
	*d = nil
	if len(src) > 0 {
		*d = append(document(nil), src...)
	}
	return nil
}

// utc is a stored time; zero if there was none, or infinity.
func utc(t pgtype.Timestamptz) time.Time {
	if !t.Valid || t.InfinityModifier != pgtype.Finite {
		return time.Time{}
	}
	return t.Time.UTC()
}

// when is a stored time in UTC; zero if there was none.
func when(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// microseconds spells a time for the statements; 0 is none.
func microseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}
