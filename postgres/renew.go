package postgres

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/pacht-queue/pacht"
)

// Renew implements pacht.Leaser. It may be repeated, and is: a renewal changes no token.
func (s *Store) Renew(ctx context.Context, refs []pacht.Ref) (pacht.Renewals, error) {
	if len(refs) > pacht.MaxBatch {
		return pacht.Renewals{}, tooMany("renewals", len(refs))
	}
	jobs, tokens := make([]int64, len(refs)), make([]int64, len(refs))
	for i, r := range refs {
		jobs[i], tokens[i] = int64(r.Job), int64(r.Token)
	}
	var all pacht.Renewals
	err := s.again(ctx, true, fmt.Sprintf("renew %d leases", len(refs)), func() error {
		rows := make([]pacht.Renewed, len(refs))
		for i, r := range refs {
			rows[i].Ref = r
		}
		var stamped time.Time
		now, err := s.transact(ctx, s.renewal, lockTimeout, stmt{sql: s.sql.Renew, args: []any{jobs, tokens}, each: func(scan scanner) error {
			var place, state int
			var until *time.Time
			var cancel bool
			if err := scan(&place, &state, &until, &cancel, &stamped); err != nil {
				return err
			}
			row := &rows[place-1]
			row.State, row.LeaseUntil, row.CancelRequested = pacht.RenewState(state), when(until), cancel
			return nil
		}})
		if stamped.After(now) {
			now = stamped.UTC()
		}
		all = pacht.Renewals{Now: now, Rows: rows}
		return err
	})
	if err != nil {
		return pacht.Renewals{}, err
	}
	return all, nil
}

func tooMany(what string, n int) error {
	return &pacht.InvalidError{Field: what, Value: strconv.Itoa(n), Bound: fmt.Sprintf("at most %d in one call", pacht.MaxBatch)}
}
