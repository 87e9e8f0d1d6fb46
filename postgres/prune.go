package postgres

import (
	"context"

	"github.com/pacht-queue/pacht"
)

// Prune implements pacht.Operator. It may be repeated.
func (s *Store) Prune(ctx context.Context, req pacht.PruneRequest) (int, error) {
	if err := req.Validate(); err != nil {
		return 0, err
	}
	var pruned int
	err := s.again(ctx, true, "prune "+string(req.Status)+" jobs", func() error {
		var ids []int64
		_, err := s.interactive(ctx, s.pool, lockTimeout, func(on session) error {
			find := []any{string(req.Status), req.OlderThan.Microseconds(), int64(req.Limit)}
			err := on.query(ctx, s.sql.PruneFind, find, func(scan scanner) error {
				var id int64
				err := scan(&id)
				ids = append(ids, id)
				return err
			})
			if err != nil {
				return err
			}
			// A statement of its own sees what was committed before the jobs were locked.
			if err := on.query(ctx, s.sql.Prune, []any{append([]int64{}, ids...), string(req.Status)}, func(scan scanner) error { return scan(&pruned) }); err != nil {
				return err
			}
			return on.query(ctx, s.sql.PruneKeys, []any{int64(req.Limit)}, nil)
		})
		return err
	})
	if err != nil {
		return 0, err
	}
	return pruned, nil
}
