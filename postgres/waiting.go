package postgres

import (
	"context"

	"github.com/pacht-queue/pacht"
)

// Waiting implements pacht.Reader.
func (s *Store) Waiting(ctx context.Context) ([]pacht.Waiting, error) {
	return list(ctx, s, "due jobs by kind", s.sql.Waiting, nil, func(w *pacht.Waiting, scan scanner) error {
		err := scan(&w.Queue, &w.Kind, &w.Jobs, &w.Since)
		w.Since = w.Since.UTC()
		return err
	})
}
