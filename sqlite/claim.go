package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/pacht-queue/pacht"
)

// Claim implements pacht.Leaser.
func (s *Store) Claim(ctx context.Context, req pacht.ClaimRequest) (claims pacht.Claims, err error) {
	if err := req.Validate(); err != nil {
		return claims, fmt.Errorf("claim: %w", err)
	}
	kinds, err := json.Marshal(req.Kinds)
	if err != nil {
		return claims, fmt.Errorf("claim: %w", err)
	}
	if err := s.fits(ctx); err != nil {
		return claims, fmt.Errorf("claim: %w", err)
	}
	if claims.Now, err = s.Now(ctx); err != nil {
		return claims, err
	}
	due, err := ids(ctx, s.read, s.sql.ClaimDue, req.Queue, string(kinds), claims.Now.UnixMilli())
	if err != nil {
		return claims, fmt.Errorf("claim: %w", err)
	}
	if len(due) == 0 { // most claims of an idle worker end here, without asking for the write lock
		return claims, nil
	}
	err = s.write(ctx, "claim", false, func(ctx context.Context, w *work) error {
		ids, err := ids(ctx, w, s.sql.Claim, req.Owner, req.Queue, string(kinds), req.Limit, w.now)
		if err != nil {
			return err
		}
		claims.Now = at(w.now)
		claims.Jobs, err = s.claimed(ctx, w, ids)
		return err
	})
	if err != nil {
		return pacht.Claims{}, err
	}
	return claims, nil
}

// ClaimID implements pacht.Leaser.
func (s *Store) ClaimID(ctx context.Context, owner string, id pacht.ID) (job pacht.JobInfo, ok bool, err error) {
	if err := pacht.ValidOwner(owner); err != nil {
		return job, false, fmt.Errorf("claim job %d: %w", id, err)
	}
	var jobs []pacht.JobInfo
	err = s.write(ctx, fmt.Sprintf("claim job %d", id), false, func(ctx context.Context, w *work) error {
		if _, err := w.ExecContext(ctx, s.sql.ClaimIDClose, id, w.now); err != nil {
			return err
		}
		ids, err := ids(ctx, w, s.sql.ClaimID, id, w.now, owner)
		if err != nil {
			return err
		}
		jobs, err = s.claimed(ctx, w, ids)
		return err
	})
	if err != nil || len(jobs) == 0 {
		return pacht.JobInfo{}, false, err
	}
	return jobs[0], true, nil
}

// claimed reads what a claim of this transaction took, with args.
func (s *Store) claimed(ctx context.Context, r runner, ids []pacht.ID) ([]pacht.JobInfo, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return s.list(ctx, r, s.sql.Claimed, idList(ids))
}

// HeldBy implements pacht.Leaser.
func (s *Store) HeldBy(ctx context.Context, owner string) (claims pacht.Claims, err error) {
	if err := pacht.ValidOwner(owner); err != nil {
		return claims, fmt.Errorf("held by: %w", err)
	}
	if err := s.fits(ctx); err != nil {
		return claims, fmt.Errorf("held by %s: %w", owner, err)
	}
	// The clock is read first: what the answer says was held then or later.
	if claims.Now, err = s.Now(ctx); err != nil {
		return claims, err
	}
	if claims.Jobs, err = s.list(ctx, s.read, s.sql.HeldBy, owner); err != nil {
		return claims, fmt.Errorf("held by %s: %w", owner, err)
	}
	return claims, nil
}

// ids runs a statement that answers job ids.
func ids(ctx context.Context, r runner, query string, args ...any) (list []pacht.ID, err error) {
	err = each(ctx, r, query, args, func(rows *sql.Rows) error {
		var id pacht.ID
		if err := rows.Scan(&id); err != nil {
			return err
		}
		list = append(list, id)
		return nil
	})
	return list, err
}

// idList is a JSON array of numbers: what json_each takes.
func idList(ids []pacht.ID) string {
	b := make([]byte, 0, 8*len(ids)+2)
	b = append(b, '[')
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, id.String()...)
	}
	return string(append(b, ']'))
}
