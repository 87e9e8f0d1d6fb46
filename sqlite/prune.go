package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/sweeping"
)

// pruneChunk is how many jobs one transaction deletes: renewals wait no longer than that.
const pruneChunk = 500

// Prune implements pacht.Operator. It looks for candidates before it takes the write lock,
// looks again under it, and deletes in transactions of at most 500 jobs; if one fails, the
// answer says how many the ones before it deleted. The next call goes on from where this one
// got to.
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
	from := s.pruned.From(string(req.Status))
	begun, pruned := from, 0
	for {
		page, due, err := s.pruneLook(ctx, req.Status, from, before, pruneChunk, req.Limit-pruned)
		if err != nil {
			return pruned, fmt.Errorf("prune: %w", err)
		}
		var n int
		err = s.write(ctx, "prune", false, func(ctx context.Context, w *work) error {
			n, err = s.pruneJobs(ctx, w, due, req.Status, before)
			return err
		})
		if err != nil {
			return pruned, err
		}
		pruned += n
		from = page.Last
		s.pruned.Reached(string(req.Status), from)
		switch {
		case pruned == req.Limit:
			return pruned, nil
		case page.Ended && begun != (sweeping.Place{}):
			begun, from = sweeping.Place{}, sweeping.Place{} // what is behind, or was asked for with another age
		case page.Ended:
			keys, err := s.expiredKeys(ctx, now.UnixMilli(), req.Limit)
			if err != nil {
				return pruned, fmt.Errorf("prune keys: %w", err)
			}
			return pruned, s.write(ctx, "prune keys", false, func(ctx context.Context, w *work) error {
				_, err := s.pruneKeys(ctx, w, keys, w.now)
				return err
			})
		}
	}
}

// pruneLook looks at the next page, without the write lock: how far it came, and what is due.
func (s *Store) pruneLook(ctx context.Context, status pacht.Status, after sweeping.Place, before int64, visit, most int) (page sweeping.Page, due []pacht.ID, err error) {
	query, args := s.sql.PruneCompleted, []any{after.ID, visit, before}
	if status != pacht.Completed {
		query, args = s.sql.PruneBadly, []any{string(status), after.Us, after.ID, visit, before}
	}
	page.Last = after
	seen := 0
	err = each(ctx, s.read, query, args, func(rows *sql.Rows) error {
		var at sweeping.Place
		var old, isDue bool
		if err := rows.Scan(&at.ID, &at.Us, &old, &isDue); err != nil {
			return err
		}
		if seen++; !old {
			page.Ended = true
		}
		// Behind a young one, and behind the last that may be deleted, the next look begins.
		if page.Ended || len(due) == most {
			return nil
		}
		page.Last = at
		if isDue {
			due = append(due, pacht.ID(at.ID))
		}
		return nil
	})
	page.Ended = (page.Ended || seen < visit) && len(due) < most
	return page, due, err
}

// pruneJobs deletes jobs with all their history: the highest token never goes alone.
func (s *Store) pruneJobs(ctx context.Context, w *work, due []pacht.ID, status pacht.Status, before int64) (int, error) {
	if len(due) == 0 {
		return 0, nil
	}
	gone, err := ids(ctx, w, s.sql.Prune, idList(due), string(status), before)
	if err != nil {
		return 0, err
	}
	for _, query := range []string{s.sql.PruneAttempts, s.sql.PruneSteps, s.sql.PruneEffects, s.sql.PruneReports} {
		if _, err := w.ExecContext(ctx, query, idList(gone)); err != nil {
			return 0, err
		}
	}
	return len(gone), nil
}

// expiredKeys reads the table from end to end if few have expired: without the write lock.
func (s *Store) expiredKeys(ctx context.Context, before int64, limit int) (keys [][2]string, err error) {
	err = each(ctx, s.read, s.sql.PruneKeysFound, []any{before, limit}, func(rows *sql.Rows) error {
		var key [2]string
		err := rows.Scan(&key[0], &key[1])
		keys = append(keys, key)
		return err
	})
	return keys, err
}

func (s *Store) pruneKeys(ctx context.Context, w *work, keys [][2]string, before int64) (int, error) {
	if len(keys) == 0 {
		return 0, nil
	}
	list, err := json.Marshal(keys)
	if err != nil {
		return 0, err
	}
	n, err := changed(ctx, w, s.sql.PruneKeys, string(list), before)
	return int(n), err
}
