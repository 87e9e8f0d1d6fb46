package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"

	"github.com/pacht-queue/pacht"
)

// errNoEffect: the row is not there; the job may have been pruned.
var errNoEffect = fmt.Errorf("%w with such an effect", pacht.ErrNotFound)

// BeginEffect implements pacht.EffectLog. Renewal and intent are one transaction on the only
// writer, so nothing comes in between.
func (s *Store) BeginEffect(ctx context.Context, ref pacht.Ref, intent pacht.EffectIntent) (begun pacht.EffectBegun, err error) {
	verb := fmt.Sprintf("begin effect %s of %s", intent.Name, ref)
	if err := intent.Validate(); err != nil {
		return begun, fmt.Errorf("%s: %w", verb, err)
	}
	if len(intent.Request) > 0 {
		if err := s.limits.ValidJSON("effect request", intent.Request); err != nil {
			return begun, fmt.Errorf("%s: %w", verb, err)
		}
	}
	err = s.write(ctx, verb, false, func(ctx context.Context, w *work) error {
		var until int64
		var cancel bool
		begun = pacht.EffectBegun{Now: at(w.now)}
		held, err := one(ctx, w, s.sql.Renew, []any{ref.Job, ref.Token, w.now}, &until, &cancel)
		if err != nil {
			return err
		}
		if !held {
			return s.refusal(ctx, w, ref)
		}
		begun.LeaseUntil = at(until)
		n, err := changed(ctx, w, s.sql.BeginEffect, ref.Job, ref.Token, w.now, intent.Name, intent.Key, intent.Reference,
			text(intent.Request), intent.Again)
		if err != nil {
			return err
		}
		begun.Begun = n == 1
		begun.Effect, err = s.effect(ctx, w, ref.Job, intent.Name)
		return err
	})
	if err != nil {
		return pacht.EffectBegun{}, err
	}
	return begun, nil
}

// AnswerEffect implements pacht.EffectLog.
func (s *Store) AnswerEffect(ctx context.Context, a pacht.EffectAnswer) (e pacht.Effect, err error) {
	verb := fmt.Sprintf("answer effect %s of job %d", a.Name, a.Job)
	if err := a.Validate(); err != nil {
		return e, fmt.Errorf("%s: %w", verb, err)
	}
	if len(a.Answer) > 0 {
		if err := s.limits.ValidJSON("effect answer", a.Answer); err != nil {
			return e, fmt.Errorf("%s: %w", verb, err)
		}
	}
	var n int64
	err = s.write(ctx, verb, false, func(ctx context.Context, w *work) error {
		n, err = changed(ctx, w, s.sql.AnswerEffect, a.Job, a.Name, w.now, a.Rev, string(a.State),
			text(a.Answer), text(pacht.SafeText(a.Error, pacht.MaxErrorBytes)), a.Wait.Milliseconds())
		if err != nil {
			return err
		}
		e, err = s.effect(ctx, w, a.Job, a.Name)
		return err
	})
	switch {
	case err != nil:
		return pacht.Effect{}, err
	case n == 0 && e.State != a.State:
		return e, &pacht.EffectError{Effect: e, Asked: a.State}
	}
	return e, nil
}

// Effects implements pacht.EffectLog.
func (s *Store) Effects(ctx context.Context, id pacht.ID) (list []pacht.Effect, err error) {
	err = s.reading(ctx, fmt.Sprintf("effects of job %d", id), s.sql.Effects, []any{id}, into(&list))
	return list, err
}

// OpenEffects implements pacht.EffectLog.
func (s *Store) OpenEffects(ctx context.Context, after pacht.EffectCursor, limit int) (list []pacht.Effect, err error) {
	if limit < 1 || limit > 1000 {
		return nil, fmt.Errorf("open effects: %w", &pacht.InvalidError{Field: "limit", Value: strconv.Itoa(limit), Bound: "1 to 1000"})
	}
	now, err := s.Now(ctx)
	if err != nil {
		return nil, fmt.Errorf("open effects: %w", err)
	}
	args := []any{after.Job, after.Name, limit, now.UnixMilli()}
	err = s.reading(ctx, "open effects", s.sql.OpenEffects, args, into(&list))
	return list, err
}

// effect reads one effect in the transaction that may have changed it.
func (s *Store) effect(ctx context.Context, r runner, id pacht.ID, name string) (pacht.Effect, error) {
	var list []pacht.Effect
	if err := each(ctx, r, s.sql.Effects, []any{id}, into(&list)); err != nil {
		return pacht.Effect{}, err
	}
	for _, e := range list {
		if e.Name == name {
			return e, nil
		}
	}
	return pacht.Effect{}, errNoEffect
}

// into reads effects into a list.
func into(list *[]pacht.Effect) func(*sql.Rows) error {
	return func(rows *sql.Rows) error {
		var e pacht.Effect
		var request, answer, message sql.NullString
		var first, called int64
		var answered, notBefore sql.NullInt64
		err := rows.Scan(&e.Job, &e.Name, &e.State, &e.Rev, &e.Key, &e.Reference, &request, &e.Token, &e.Calls, &answer, &message,
			&first, &called, &answered, &notBefore)
		e.Request, e.Answer, e.Error = document(request), document(answer), message.String
		e.FirstCalledAt, e.CalledAt, e.AnsweredAt, e.NotBefore = at(first), at(called), atNull(answered), atNull(notBefore)
		*list = append(*list, e)
		return err
	}
}
