package postgres

import (
	"encoding/json"
	"time"

	"github.com/pacht-queue/pacht"
)

// scanJob reads the columns that all statements answering with jobs have in this order.
func scanJob(scan scanner) (pacht.JobInfo, error) {
	var j pacht.JobInfo
	var args, metadata string
	var ttl int64
	var created, runAt, claimed, until, finished *time.Time
	err := scan(
		&j.ID, &j.Kind, &j.Queue, &j.Priority, &args, &metadata,
		&j.Status, &j.Attempt, &j.MaxAttempts, &j.Crashes, &j.MaxCrashes, &j.Token, &ttl, &j.CrashPolicy,
		&created, &runAt, &j.LeaseOwner, &claimed, &until, &j.CancelRequested, &finished,
	)
	j.Args, j.Metadata = document(args), document(metadata)
	j.TTL = time.Duration(ttl) * time.Millisecond
	j.CreatedAt, j.RunAt = when(created), when(runAt)
	j.ClaimedAt, j.LeaseUntil, j.FinishedAt = when(claimed), when(until), when(finished)
	return j, err
}

// document is stored JSON; empty if there was none.
func document(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
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
