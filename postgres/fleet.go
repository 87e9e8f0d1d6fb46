package postgres

import (
	"context"
	"time"

	"github.com/pacht-queue/pacht"
)

// Beat implements pacht.Leaser.
func (s *Store) Beat(ctx context.Context, w pacht.WorkerInfo) error {
	if err := pacht.ValidOwner(w.Owner); err != nil {
		return err
	}
	if w.BeatEvery < time.Millisecond || w.BeatEvery > 24*time.Hour {
		return &pacht.InvalidError{Field: "beat period", Value: w.BeatEvery.String(), Bound: "1ms to 24h"}
	}
	args := []any{
		w.Owner, pacht.SafeText(w.Host, pacht.MaxOwnerBytes), int32(w.PID), append([]string{}, w.Queues...),
		append([]string{}, w.Kinds...), int32(w.BeatEvery.Milliseconds()), microseconds(w.LastUntil), microseconds(w.FirstUntil),
	}
	return s.write(ctx, "beat of "+w.Owner, s.sql.Beat, args)
}

// Leave implements pacht.Leaser.
func (s *Store) Leave(ctx context.Context, owner string) error {
	return s.write(ctx, "leave of "+owner, s.sql.Leave, []any{owner})
}

// write runs one statement that may be repeated.
func (s *Store) write(ctx context.Context, verb, sql string, args []any) error {
	return s.again(ctx, true, verb, func() error {
		_, err := s.transact(ctx, s.own, lockTimeout, stmt{sql: sql, args: args})
		return err
	})
}
