package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/pacht-queue/pacht"
)

// Beat implements pacht.Leaser. It goes with the renewals: a beat that waits behind a bulk
// would bring the watcher for nothing.
func (s *Store) Beat(ctx context.Context, info pacht.WorkerInfo) error {
	if err := pacht.ValidOwner(info.Owner); err != nil {
		return fmt.Errorf("beat: %w", err)
	}
	queues, err := json.Marshal(info.Queues)
	if err != nil {
		return fmt.Errorf("beat of %s: %w", info.Owner, err)
	}
	kinds, err := json.Marshal(info.Kinds)
	if err != nil {
		return fmt.Errorf("beat of %s: %w", info.Owner, err)
	}
	return s.write(ctx, "beat of "+info.Owner, true, func(ctx context.Context, w *work) error {
		_, err := w.ExecContext(ctx, s.sql.Beat, info.Owner, pacht.SafeText(info.Host, pacht.MaxOwnerBytes), info.PID,
			string(queues), string(kinds), info.BeatEvery.Milliseconds(), w.now, millis(info.LastUntil))
		if err == nil && !info.FirstUntil.IsZero() {
			_, err = w.ExecContext(ctx, s.sql.WatchSooner, info.FirstUntil.UnixMilli())
		}
		return err
	})
}

// Leave implements pacht.Leaser.
func (s *Store) Leave(ctx context.Context, owner string) error {
	return s.write(ctx, "leave of "+owner, false, func(ctx context.Context, w *work) error {
		_, err := w.ExecContext(ctx, s.sql.Leave, owner, w.now)
		return err
	})
}

// Workers implements pacht.Reader.
func (s *Store) Workers(ctx context.Context) (list []pacht.WorkerInfo, err error) {
	err = s.reading(ctx, "list workers", s.sql.Workers, nil, func(rows *sql.Rows) error {
		var w pacht.WorkerInfo
		var queues, kinds string
		var every, started, beat int64
		var last, stopped sql.NullInt64
		if err := rows.Scan(&w.Owner, &w.Host, &w.PID, &queues, &kinds, &every, &last, &started, &beat, &stopped); err != nil {
			return err
		}
		w.BeatEvery, w.LastUntil = duration(every), atNull(last)
		w.StartedAt, w.BeatAt, w.StoppedAt = at(started), at(beat), atNull(stopped)
		if err := json.Unmarshal([]byte(queues), &w.Queues); err != nil {
			return fmt.Errorf("queues of worker %s: %w", w.Owner, err)
		}
		if err := json.Unmarshal([]byte(kinds), &w.Kinds); err != nil {
			return fmt.Errorf("kinds of worker %s: %w", w.Owner, err)
		}
		list = append(list, w)
		return nil
	})
	return list, err
}

// Counts implements pacht.Reader.
func (s *Store) Counts(ctx context.Context) (list []pacht.Count, err error) {
	err = s.reading(ctx, "count jobs", s.sql.Counts, nil, func(rows *sql.Rows) error {
		var c pacht.Count
		if err := rows.Scan(&c.Queue, &c.Status, &c.Jobs, &c.Due, &c.Expired); err != nil {
			return err
		}
		list = append(list, c)
		return nil
	})
	return list, err
}

// Queues implements pacht.Reader.
func (s *Store) Queues(ctx context.Context) (list []pacht.QueueInfo, err error) {
	err = s.reading(ctx, "list queues", s.sql.Queues, nil, func(rows *sql.Rows) error {
		var q pacht.QueueInfo
		var ttl int64
		if err := rows.Scan(&q.Name, &ttl, &q.MaxAttempts, &q.MaxCrashes, &q.CrashPolicy); err != nil {
			return err
		}
		q.TTL = duration(ttl)
		list = append(list, q)
		return nil
	})
	return list, err
}

// Watch implements pacht.Reader.
func (s *Store) Watch(ctx context.Context) (info pacht.WatchInfo, err error) {
	err = s.reading(ctx, "read the watcher's state", s.sql.Watch, nil, func(rows *sql.Rows) error {
		var passed sql.NullInt64
		var by sql.NullString
		var took, next int64
		if err := rows.Scan(&passed, &by, &took, &next); err != nil {
			return err
		}
		info.PassedAt, info.PassedBy, info.Took = atNull(passed), by.String, duration(took)
		if passed.Valid {
			info.NextAt = at(next)
		}
		return nil
	})
	return info, err
}
