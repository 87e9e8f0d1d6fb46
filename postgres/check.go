package postgres

import (
	"context"
	"time"

	"github.com/pacht-queue/pacht"
)

// Check implements pacht.Checker.
func (s *Store) Check(ctx context.Context) ([]pacht.Violation, error) {
	return list(ctx, s, "check", s.sql.Check, nil, func(v *pacht.Violation, scan scanner) error {
		return scan(&v.Rule, &v.Job, &v.Detail)
	})
}

// Age moves every stored time back by d, as if it had passed; infinity stays. It is for tests,
// which then need not wait, and for nothing else.
func (s *Store) Age(ctx context.Context, d time.Duration) error {
	defer s.floors.reset()
	return s.again(ctx, false, "age", func() error {
		_, err := s.transact(ctx, s.pool, lockTimeout, stmt{sql: s.sql.Age, args: []any{d.Microseconds()}, whole: true})
		return err
	})
}
