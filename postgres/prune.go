package postgres

import (
	"context"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/sweeping"
)

// prunePage is how many jobs one transaction of Prune looks at: locks and turns are short.
const prunePage = 1000

// Prune implements pacht.Operator. It may be repeated. It works in pages, each in a transaction
// of its own; if one fails, the answer says how many the ones before it deleted. The next call
// goes on from where this one got to.
func (s *Store) Prune(ctx context.Context, req pacht.PruneRequest) (int, error) {
	if err := req.Validate(); err != nil {
		return 0, err
	}
	from := s.pruned.From(string(req.Status))
	begun, pruned := from, 0
	for {
		var page sweeping.Page
		var n int
		err := s.again(ctx, true, "prune "+string(req.Status)+" jobs", func() error {
			_, err := s.interactive(ctx, s.pool, lockTimeout, false, func(on session) error {
				look := pruneLook{status: req.Status, after: from, visit: prunePage, older: req.OlderThan.Microseconds(), most: req.Limit - pruned}
				var err error
				page, n, err = s.pruneJobs(ctx, on, look)
				return err
			})
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
			return pruned, s.write(ctx, "prune keys", s.sql.PruneKeys, []any{int64(req.Limit)})
		}
	}
}

// pruneLook is which jobs a page is about.
type pruneLook struct {
	status pacht.Status
	after  sweeping.Place
	visit  int   // look at so many
	older  int64 // microseconds
	most   int   // delete so many
	over   bool  // delete nothing
}

// pruneJobs looks at one page in an open transaction, locks what is due, and deletes it with
// all its history.
func (s *Store) pruneJobs(ctx context.Context, on session, look pruneLook) (page sweeping.Page, pruned int, err error) {
	sql, args := s.sql.PruneCompleted, []any{look.after.ID, int64(look.visit), look.older, int64(look.most)}
	if look.status != pacht.Completed {
		sql, args = s.sql.PruneBadly, []any{string(look.status), look.after.Us, look.after.ID, int64(look.visit), look.older, int64(look.most)}
	}
	page.Last = look.after
	ids := []int64{}
	var seen, due int
	err = on.query(ctx, sql, args, func(scan scanner) error {
		var at sweeping.Place
		var old, isDue, locked bool
		if err := scan(&at.ID, &at.Us, &old, &isDue, &locked); err != nil {
			return err
		}
		if seen++; !old {
			page.Ended = true
		}
		// Behind a young one, and behind the last that may be deleted, the next look begins.
		if page.Ended || due == look.most {
			return nil
		}
		page.Last = at
		if isDue {
			due++
		}
		if locked {
			ids = append(ids, at.ID)
		}
		return nil
	})
	if err != nil {
		return page, 0, err
	}
	page.Ended = (page.Ended || seen < look.visit) && due < look.most
	if len(ids) == 0 || look.over {
		return page, 0, nil
	}
	// A statement of its own sees what was committed before the jobs were locked.
	err = on.query(ctx, s.sql.Prune, []any{ids, string(look.status), look.older}, func(scan scanner) error { return scan(&pruned) })
	return page, pruned, err
}
