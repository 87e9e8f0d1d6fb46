package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
)

// Due implements pacht.Waker.
func (s *Store) Due(ctx context.Context, queues, kinds []string) (pacht.Due, error) {
	now, err := s.Now(ctx)
	if err != nil {
		return pacht.Due{}, fmt.Errorf("look for due jobs: %w", err)
	}
	queueList, err := json.Marshal(queues)
	if err != nil {
		return pacht.Due{}, fmt.Errorf("look for due jobs: %w", err)
	}
	kindList, err := json.Marshal(kinds)
	if err != nil {
		return pacht.Due{}, fmt.Errorf("look for due jobs: %w", err)
	}
	began := clock.Now()
	var due pacht.Due
	err = s.reading(ctx, "look for due jobs", s.sql.Due, []any{string(queueList), string(kindList), now.UnixMilli()}, func(rows *sql.Rows) error {
		var queue string
		err := rows.Scan(&queue)
		due.Queues = append(due.Queues, queue)
		return err
	})
	due.Took = began.Elapsed()
	return due, err
}
