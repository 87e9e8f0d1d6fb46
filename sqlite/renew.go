package sqlite

import (
	"context"
	"fmt"
	"strconv"

	"github.com/pacht-queue/pacht"
)

// Renew implements pacht.Leaser. It goes before all other work in the writer's queue, so that
// no bulk can make a lease run out.
func (s *Store) Renew(ctx context.Context, refs []pacht.Ref) (answer pacht.Renewals, err error) {
	if err := checkBatch("renew", len(refs)); err != nil {
		return answer, err
	}
	if len(refs) == 0 {
		answer.Now, err = s.Now(ctx)
		return answer, err
	}
	err = s.write(ctx, "renew", true, func(ctx context.Context, w *work) error {
		answer = pacht.Renewals{Now: at(w.now), Rows: make([]pacht.Renewed, len(refs))}
		for i, ref := range refs {
			row := pacht.Renewed{Ref: ref}
			var until int64
			found, err := one(ctx, w, s.sql.Renew, []any{ref.Job, ref.Token, w.now}, &until, &row.CancelRequested)
			if err != nil {
				return fmt.Errorf("%s: %w", ref, err)
			}
			if found {
				row.State, row.LeaseUntil = pacht.RenewExtended, at(until)
			}
			answer.Rows[i] = row
		}
		return nil
	})
	if err != nil {
		return pacht.Renewals{}, err
	}
	return answer, nil
}

func checkBatch(verb string, n int) error {
	if n > pacht.MaxBatch {
		return fmt.Errorf("%s: %w", verb, &pacht.InvalidError{
			Field: "rows", Value: strconv.Itoa(n), Bound: fmt.Sprintf("at most %d in one call", pacht.MaxBatch)})
	}
	return nil
}
