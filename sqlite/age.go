package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/pacht-queue/pacht"
)

// Age is for tests only: it moves all stored times back by d, as if d had passed. Leases,
// schedules, keys, history, workers' beats and the watcher's stamp move together; infinity
// stays. Whole milliseconds count.
func (s *Store) Age(ctx context.Context, d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("age: %w", &pacht.InvalidError{Field: "age", Value: d.String(), Bound: "0 or more"})
	}
	defer s.floors.reset()
	return s.write(ctx, "age", false, func(ctx context.Context, w *work) error {
		for _, query := range []string{
			s.sql.AgeJobs, s.sql.AgeLeases, s.sql.AgeAttempts, s.sql.AgeSteps, s.sql.AgeEffects, s.sql.AgeReports,
			s.sql.AgeKeys, s.sql.AgeWorkers, s.sql.AgeAudit, s.sql.AgeWatch, s.sql.AgeSweeps,
			s.sql.AgeBreaks, s.sql.AgeDecisions,
		} {
			if _, err := w.ExecContext(ctx, query, d.Milliseconds()); err != nil {
				return err
			}
		}
		return nil
	})
}
