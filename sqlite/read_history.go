package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/pacht-queue/pacht"
)

// Attempts implements pacht.Reader.
func (s *Store) Attempts(ctx context.Context, id pacht.ID) (list []pacht.Attempt, err error) {
	err = s.reading(ctx, fmt.Sprintf("attempts of job %d", id), s.sql.Attempts, []any{id}, func(rows *sql.Rows) error {
		var a pacht.Attempt
		var claimed, ended int64
		var next sql.NullInt64
		var message, output sql.NullString
		if err := rows.Scan(&a.Job, &a.Token, &a.Attempt, &a.Owner, &claimed, &ended, &a.Late, &a.Outcome,
			&a.NextStatus, &next, &message, &output); err != nil {
			return err
		}
		a.ClaimedAt, a.EndedAt, a.NextRunAt = at(claimed), at(ended), atNull(next)
		a.Error, a.Output = message.String, document(output)
		list = append(list, a)
		return nil
	})
	return list, err
}

// Reports implements pacht.Reader.
func (s *Store) Reports(ctx context.Context, id pacht.ID) (list []pacht.Report, err error) {
	err = s.reading(ctx, fmt.Sprintf("reports of job %d", id), s.sql.Reports, []any{id}, func(rows *sql.Rows) error {
		var r pacht.Report
		var ms int64
		var message sql.NullString
		if err := rows.Scan(&r.Job, &r.Token, &ms, &r.Owner, &r.Outcome, &message); err != nil {
			return err
		}
		r.At, r.Error = at(ms), message.String
		list = append(list, r)
		return nil
	})
	return list, err
}

// Audit implements pacht.Reader.
func (s *Store) Audit(ctx context.Context, id pacht.ID) (list []pacht.AuditEntry, err error) {
	job := any(id)
	if id == 0 {
		job = nil
	}
	err = s.reading(ctx, fmt.Sprintf("audit of job %d", id), s.sql.Audit, []any{job}, func(rows *sql.Rows) error {
		var e pacht.AuditEntry
		var ms int64
		var job sql.NullInt64
		var queue sql.NullString
		if err := rows.Scan(&ms, &e.By, &e.Act, &job, &queue, &e.Reason); err != nil {
			return err
		}
		e.At, e.Job, e.Queue = at(ms), pacht.ID(job.Int64), queue.String
		list = append(list, e)
		return nil
	})
	return list, err
}

// LeaseStats implements pacht.Reader.
func (s *Store) LeaseStats(ctx context.Context, n int) (list []pacht.LeaseStats, err error) {
	err = s.reading(ctx, "lease statistics", s.sql.LeaseStats, []any{max(n, 0)}, func(rows *sql.Rows) error {
		var l pacht.LeaseStats
		var p50, p99, longest, ttl int64
		if err := rows.Scan(&l.Kind, &l.Leases, &p50, &p99, &longest, &ttl, &l.LongerThanTTL, &l.Renewed, &l.Expired, &l.Late); err != nil {
			return err
		}
		l.P50, l.P99, l.Max, l.MinTTL = duration(p50), duration(p99), duration(longest), duration(ttl)
		list = append(list, l)
		return nil
	})
	return list, err
}
