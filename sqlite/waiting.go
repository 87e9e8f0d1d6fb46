package sqlite

import (
	"context"
	"database/sql"

	"github.com/pacht-queue/pacht"
)

// Waiting implements pacht.Reader.
func (s *Store) Waiting(ctx context.Context) (list []pacht.Waiting, err error) {
	err = s.reading(ctx, "count due jobs by kind", s.sql.Waiting, nil, func(rows *sql.Rows) error {
		var w pacht.Waiting
		var since int64
		if err := rows.Scan(&w.Queue, &w.Kind, &w.Jobs, &since); err != nil {
			return err
		}
		w.Since = at(since)
		list = append(list, w)
		return nil
	})
	return list, err
}
