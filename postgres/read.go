package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pacht-queue/pacht"
)

// Job implements pacht.Reader.
func (s *Store) Job(ctx context.Context, id pacht.ID) (pacht.JobInfo, error) {
	jobs, err := list(ctx, s, "job "+id.String(), s.sql.Job, []any{int64(id)}, newJobReader().into)
	switch {
	case err != nil:
		return pacht.JobInfo{}, err
	case len(jobs) == 0:
		return pacht.JobInfo{}, fmt.Errorf("job %d: %w", id, pacht.ErrNotFound)
	}
	return jobs[0], nil
}

// Jobs implements pacht.Reader, by three statements: what is unfinished or ended badly is
// found without reading the history.
func (s *Store) Jobs(ctx context.Context, f pacht.Filter) ([]pacht.JobInfo, error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	before, limit := int64(f.Before), int64(f.Limit)
	var sql string
	var args []any
	switch held := f.Owner != "" || f.Expired; {
	case held && f.Status != "" && f.Status != pacht.Processing:
		return nil, nil
	case held, f.Status != "" && !f.Status.Finished():
		sql = s.sql.JobsUnfinished
		args = []any{string(f.Status), f.Kind, f.Queue, f.Owner, f.Expired, before, limit}
	case f.Status == pacht.Dead, f.Status == pacht.Cancelled:
		sql = s.sql.JobsEndedBadly
		args = []any{string(f.Status), f.Kind, f.Queue, before, limit}
	default:
		sql = s.sql.JobsAny
		args = []any{string(f.Status), f.Kind, f.Queue, before, limit}
	}
	return list(ctx, s, "jobs", sql, args, newJobReader().into)
}

// Attempts implements pacht.Reader. Workers ask it too, whose handlers may hold the whole pool.
func (s *Store) Attempts(ctx context.Context, id pacht.ID) ([]pacht.Attempt, error) {
	return listOn(ctx, s, s.own, "attempts of job "+id.String(), s.sql.Attempts, []any{int64(id)}, func(a *pacht.Attempt, scan scanner) error {
		var output document
		var next *time.Time
		err := scan(&a.Job, &a.Token, &a.Attempt, &a.Owner, &a.ClaimedAt, &a.EndedAt, &a.Late, &a.Outcome, &a.NextStatus, &next, &a.Error, &output)
		a.ClaimedAt, a.EndedAt, a.NextRunAt, a.Output = a.ClaimedAt.UTC(), a.EndedAt.UTC(), when(next), json.RawMessage(output)
		return err
	})
}

// Reports implements pacht.Reader.
func (s *Store) Reports(ctx context.Context, id pacht.ID) ([]pacht.Report, error) {
	return list(ctx, s, "reports of job "+id.String(), s.sql.Reports, []any{int64(id)}, func(r *pacht.Report, scan scanner) error {
		err := scan(&r.Job, &r.Token, &r.At, &r.Owner, &r.Outcome, &r.Error)
		r.At = r.At.UTC()
		return err
	})
}

// Audit implements pacht.Reader.
func (s *Store) Audit(ctx context.Context, id pacht.ID) ([]pacht.AuditEntry, error) {
	return list(ctx, s, "audit of job "+id.String(), s.sql.Audit, []any{int64(id)}, func(a *pacht.AuditEntry, scan scanner) error {
		err := scan(&a.At, &a.By, &a.Act, &a.Job, &a.Queue, &a.Reason)
		a.At = a.At.UTC()
		return err
	})
}

// Counts implements pacht.Reader.
func (s *Store) Counts(ctx context.Context) ([]pacht.Count, error) {
	return list(ctx, s, "counts", s.sql.Counts, nil, func(c *pacht.Count, scan scanner) error {
		return scan(&c.Queue, &c.Status, &c.Jobs, &c.Due, &c.Expired)
	})
}

// Workers implements pacht.Reader.
func (s *Store) Workers(ctx context.Context) ([]pacht.WorkerInfo, error) {
	return list(ctx, s, "workers", s.sql.Workers, nil, func(w *pacht.WorkerInfo, scan scanner) error {
		var every int64
		var started, beat, until, stopped *time.Time
		err := scan(&w.Owner, &w.Host, &w.PID, &w.Queues, &w.Kinds, &every, &started, &beat, &until, &stopped)
		w.BeatEvery = time.Duration(every) * time.Millisecond
		w.StartedAt, w.BeatAt, w.LastUntil, w.StoppedAt = when(started), when(beat), when(until), when(stopped)
		return err
	})
}

// Queues implements pacht.Reader.
func (s *Store) Queues(ctx context.Context) ([]pacht.QueueInfo, error) {
	return list(ctx, s, "queues", s.sql.Queues, nil, scanQueue)
}

func scanQueue(q *pacht.QueueInfo, scan scanner) error {
	var ttl int64
	err := scan(&q.Name, &ttl, &q.MaxAttempts, &q.MaxCrashes, &q.CrashPolicy)
	q.TTL = time.Duration(ttl) * time.Millisecond
	return err
}

// LeaseStats implements pacht.Reader.
func (s *Store) LeaseStats(ctx context.Context, n int) ([]pacht.LeaseStats, error) {
	if n < 1 {
		return nil, &pacht.InvalidError{Field: "leases", Value: strconv.Itoa(n), Bound: "1 or more"}
	}
	return list(ctx, s, "lease statistics", s.sql.LeaseStats, []any{int64(n)}, func(l *pacht.LeaseStats, scan scanner) error {
		var p50, p99, most, ttl int64
		err := scan(&l.Kind, &l.Leases, &p50, &p99, &most, &ttl, &l.LongerThanTTL, &l.Renewed, &l.Expired, &l.Late)
		l.P50, l.P99, l.Max = time.Duration(p50)*time.Microsecond, time.Duration(p99)*time.Microsecond, time.Duration(most)*time.Microsecond
		l.MinTTL = time.Duration(ttl) * time.Millisecond
		return err
	})
}

// list reads rows into values, and starts afresh if it has to be repeated.
func list[T any](ctx context.Context, s *Store, verb, sql string, args []any, read func(*T, scanner) error) ([]T, error) {
	return listOn(ctx, s, s.pool, verb, sql, args, read)
}

func listOn[T any](ctx context.Context, s *Store, pool *pgxpool.Pool, verb, sql string, args []any, read func(*T, scanner) error) ([]T, error) {
	var all []T
	err := s.again(ctx, true, verb, func() error {
		all = nil
		return s.readOnce(ctx, pool, sql, args, func(scan scanner) error {
			var one T
			err := read(&one, scan)
			all = append(all, one)
			return err
		})
	})
	return all, err
}
