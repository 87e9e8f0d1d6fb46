package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/pacht-queue/pacht"
)

// reading runs a read and wraps its error.
func (s *Store) reading(ctx context.Context, verb, query string, args []any, scan func(*sql.Rows) error) error {
	if err := s.fits(ctx); err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	if err := each(ctx, s.read, query, args, scan); err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	return nil
}

// Now implements pacht.Reader.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	if s.closed.Load() {
		return time.Time{}, pacht.ErrClosed
	}
	var ms int64
	if _, err := one(ctx, s.read, s.sql.Now, nil, &ms); err != nil {
		return time.Time{}, fmt.Errorf("read the database's clock: %w", err)
	}
	return at(ms), nil
}

// Job implements pacht.Reader.
func (s *Store) Job(ctx context.Context, id pacht.ID) (pacht.JobInfo, error) {
	if err := s.fits(ctx); err != nil {
		return pacht.JobInfo{}, fmt.Errorf("job %d: %w", id, err)
	}
	jobs, err := s.list(ctx, s.read, s.sql.Job, id)
	switch {
	case err != nil:
		return pacht.JobInfo{}, fmt.Errorf("job %d: %w", id, err)
	case len(jobs) == 0:
		return pacht.JobInfo{}, fmt.Errorf("job %d: %w", id, pacht.ErrNotFound)
	}
	return jobs[0], nil
}

// Jobs implements pacht.Reader. Unfinished, Dead and Cancelled jobs are found by the table of
// leases and the partial index of the ledger, whatever the history.
func (s *Store) Jobs(ctx context.Context, f pacht.Filter) ([]pacht.JobInfo, error) {
	if err := f.Validate(); err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	if err := s.fits(ctx); err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	if f.Before <= 0 {
		f.Before = math.MaxInt64
	}
	args := []any{string(f.Status), f.Kind, f.Queue, f.Before, f.Limit}
	query := s.sql.Jobs
	switch {
	case f.Owner != "" || f.Expired || f.Status != "" && !f.Status.Finished():
		query, args = s.sql.JobsUnfinished, append(args, f.Owner, f.Expired)
	case f.Status == pacht.Dead || f.Status == pacht.Cancelled:
		query = s.sql.JobsEndedBadly
	}
	jobs, err := s.list(ctx, s.read, query, args...)
	if err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	return jobs, nil
}

// list reads jobs; all statements that answer jobs have the same columns.
func (s *Store) list(ctx context.Context, r runner, query string, args ...any) (jobs []pacht.JobInfo, err error) {
	err = each(ctx, r, query, args, func(rows *sql.Rows) error {
		j, err := scanJob(rows)
		if err == nil {
			jobs = append(jobs, j)
		}
		return err
	})
	return jobs, err
}

func scanJob(rows *sql.Rows) (j pacht.JobInfo, err error) {
	var args, metadata, owner sql.NullString
	var runAt, claimed, until, finished sql.NullInt64
	var ttl, created int64
	err = rows.Scan(&j.ID, &j.Kind, &j.Queue, &j.Priority, &args, &metadata,
		&j.Status, &j.Attempt, &j.MaxAttempts, &j.Crashes, &j.MaxCrashes, &j.Token, &ttl, &j.CrashPolicy,
		&created, &runAt, &owner, &claimed, &until, &j.CancelRequested, &finished)
	j.Args, j.Metadata = document(args), document(metadata)
	j.TTL, j.CreatedAt, j.LeaseOwner = duration(ttl), at(created), owner.String
	j.RunAt, j.ClaimedAt, j.LeaseUntil, j.FinishedAt = atNull(runAt), atNull(claimed), atNull(until), atNull(finished)
	return j, err
}

// document is stored JSON; nil for NULL.
func document(s sql.NullString) json.RawMessage {
	if !s.Valid {
		return nil
	}
	return json.RawMessage(s.String)
}
