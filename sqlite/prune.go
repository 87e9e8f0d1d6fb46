package sqlite

import (
	"context"
	"fmt"
	"slices"

	"github.com/pacht-queue/pacht"
)

// pruneChunk is how many jobs one transaction deletes: renewals wait no longer than that.
const pruneChunk = 500

// Prune implements pacht.Operator. It looks for candidates before it takes the write lock,
// looks again under it, and deletes in transactions of at most 500 jobs; if one fails, the
// answer says how many the ones before it deleted.
func (s *Store) Prune(ctx context.Context, req pacht.PruneRequest) (int, error) {
	if err := req.Validate(); err != nil {
		return 0, fmt.Errorf("prune: %w", err)
	}
	if err := s.fits(ctx); err != nil {
		return 0, fmt.Errorf("prune: %w", err)
	}
	now, err := s.Now(ctx)
	if err != nil {
		return 0, fmt.Errorf("prune: %w", err)
	}
	before := now.Add(-req.OlderThan).UnixMilli()
	found, err := ids(ctx, s.read, s.sql.PruneFound, string(req.Status), before, req.Limit)
	if err != nil {
		return 0, fmt.Errorf("prune: %w", err)
	}
	pruned := 0
	for chunk := range slices.Chunk(found, pruneChunk) {
		n, err := s.pruneJobs(ctx, chunk, req.Status, before)
		pruned += n
		if err != nil {
			return pruned, err
		}
	}
	return pruned, s.write(ctx, "prune keys", false, func(ctx context.Context, w *work) error {
		_, err := w.ExecContext(ctx, s.sql.PruneKeys, w.now, req.Limit)
		return err
	})
}

// pruneJobs deletes jobs with all their history: the highest token never goes alone.
func (s *Store) pruneJobs(ctx context.Context, chunk []pacht.ID, status pacht.Status, before int64) (n int, err error) {
	err = s.write(ctx, "prune", false, func(ctx context.Context, w *work) error {
		gone, err := ids(ctx, w, s.sql.Prune, idList(chunk), string(status), before)
		if err != nil {
			return err
		}
		n = len(gone)
		for _, query := range []string{s.sql.PruneAttempts, s.sql.PruneSteps, s.sql.PruneReports} {
			if _, err := w.ExecContext(ctx, query, idList(gone)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}
