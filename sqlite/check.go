package sqlite

import (
	"context"
	"database/sql"

	"github.com/pacht-queue/pacht"
)

// Check implements pacht.Checker: one statement, so one snapshot.
func (s *Store) Check(ctx context.Context) (list []pacht.Violation, err error) {
	err = s.reading(ctx, "check", s.sql.Check, nil, func(rows *sql.Rows) error {
		var v pacht.Violation
		if err := rows.Scan(&v.Rule, &v.Job, &v.Detail); err != nil {
			return err
		}
		list = append(list, v)
		return nil
	})
	return list, err
}

// ClaimSQL implements pacht.Checker.
func (s *Store) ClaimSQL() string { return s.sql.Claim }
