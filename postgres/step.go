package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/pacht-queue/pacht"
)

// SetStep implements pacht.Leaser.
func (s *Store) SetStep(ctx context.Context, ref pacht.Ref, name string, data json.RawMessage) error {
	if err := s.validStep(name, data); err != nil {
		return err
	}
	var set bool
	err := s.again(ctx, false, fmt.Sprintf("set step %q of %s", name, ref), func() error {
		set = false
		_, err := s.transact(ctx, s.own, s.timeout, stmt{sql: s.sql.SetStep, args: stepArgs(ref, name, data), each: func(scanner) error {
			set = true
			return nil
		}})
		return err
	})
	if err != nil || set {
		return err
	}
	fates, err := s.fates(ctx, []pacht.Settlement{{Ref: ref}})
	if err != nil {
		return err
	}
	return fates[0].lost(ref)
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

func stepArgs(ref pacht.Ref, name string, data json.RawMessage) []any {
	return []any{int64(ref.Job), int64(ref.Token), name, string(data)}
}

// Steps implements pacht.Leaser.
func (s *Store) Steps(ctx context.Context, id pacht.ID) ([]pacht.Step, error) {
	return listOn(ctx, s, s.own, "steps of job "+id.String(), s.sql.Steps, []any{int64(id)}, func(step *pacht.Step, scan scanner) error {
		var data document
		err := scan(&step.Token, &step.Name, &data, &step.At)
		step.Data, step.At = json.RawMessage(data), step.At.UTC()
		return err
	})
}
