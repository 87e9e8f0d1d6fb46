package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/pacht-queue/pacht"
)

// SetStep implements pacht.Leaser.
func (s *Store) SetStep(ctx context.Context, ref pacht.Ref, name string, data json.RawMessage) error {
	if err := s.validStep(name, data); err != nil {
		return fmt.Errorf("step of %s: %w", ref, err)
	}
	return s.write(ctx, "set step", false, func(ctx context.Context, w *work) error {
		return s.setStep(ctx, w, w.now, ref, name, data)
	})
}

func (s *Store) validStep(name string, data json.RawMessage) error {
	if err := pacht.ValidName("step", name); err != nil {
		return err
	}
	if len(data) == 0 {
		return nil
	}
	return s.limits.ValidJSON("step data", data)
}

// setStep is fenced as a settle is (R3).
func (s *Store) setStep(ctx context.Context, r runner, now int64, ref pacht.Ref, name string, data json.RawMessage) error {
	n, err := changed(ctx, r, s.sql.StepSet, ref.Job, ref.Token, now, name, text(data))
	if err != nil {
		return fmt.Errorf("step %s of %s: %w", name, ref, err)
	}
	if n == 0 {
		return s.refusal(ctx, r, ref)
	}
	return nil
}

// Steps implements pacht.Leaser.
func (s *Store) Steps(ctx context.Context, id pacht.ID) (steps []pacht.Step, err error) {
	err = s.reading(ctx, fmt.Sprintf("steps of job %d", id), s.sql.Steps, []any{id}, func(rows *sql.Rows) error {
		var st pacht.Step
		var data sql.NullString
		var ms int64
		if err := rows.Scan(&st.Token, &st.Name, &data, &ms); err != nil {
			return err
		}
		st.Data, st.At = document(data), at(ms)
		steps = append(steps, st)
		return nil
	})
	return steps, err
}
