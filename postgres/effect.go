package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/pacht-queue/pacht"
)

// BeginEffect implements pacht.EffectLog. It is never repeated after a lost answer: whether this
// very intent was written could not be told from what stands there then.
func (s *Store) BeginEffect(ctx context.Context, ref pacht.Ref, intent pacht.EffectIntent) (pacht.EffectBegun, error) {
	verb := fmt.Sprintf("begin effect %s of %s", intent.Name, ref)
	if err := intent.Validate(); err != nil {
		return pacht.EffectBegun{}, err
	}
	if len(intent.Request) > 0 {
		if err := s.limits.ValidJSON("effect request", intent.Request); err != nil {
			return pacht.EffectBegun{}, err
		}
	}
	args := []any{int64(ref.Job), int64(ref.Token), intent.Name, intent.Key, intent.Reference, string(intent.Request), intent.Again}
	var begun pacht.EffectBegun
	var held bool
	err := s.again(ctx, false, verb, func() error {
		begun, held = pacht.EffectBegun{}, false
		_, err := s.transact(ctx, s.own, s.timeout,
			stmt{sql: s.sql.BeginEffect, args: args, each: func(scan scanner) error {
				held = true
				return scan(&begun.Now, &begun.LeaseUntil, &begun.Begun)
			}},
			// A statement of its own sees an intent that another of this holder's calls has
			// committed while this one waited.
			s.oneEffect(ref.Job, intent.Name, &begun.Effect))
		return err
	})
	if err != nil {
		return pacht.EffectBegun{}, err
	}
	if !held {
		fates, err := s.fates(ctx, []pacht.Settlement{{Ref: ref}})
		if err != nil {
			return pacht.EffectBegun{}, err
		}
		return pacht.EffectBegun{}, fates[0].lost(ref)
	}
	begun.Now, begun.LeaseUntil = begun.Now.UTC(), begun.LeaseUntil.UTC()
	return begun, nil
}

// AnswerEffect implements pacht.EffectLog. It may be repeated.
func (s *Store) AnswerEffect(ctx context.Context, a pacht.EffectAnswer) (pacht.Effect, error) {
	verb := fmt.Sprintf("answer effect %s of job %d", a.Name, a.Job)
	if err := a.Validate(); err != nil {
		return pacht.Effect{}, err
	}
	if len(a.Answer) > 0 {
		if err := s.limits.ValidJSON("effect answer", a.Answer); err != nil {
			return pacht.Effect{}, err
		}
	}
	args := []any{
		int64(a.Job), a.Name, a.Rev, string(a.State), string(a.Answer),
		pacht.SafeText(a.Error, pacht.MaxErrorBytes), a.Wait.Microseconds(),
	}
	var e pacht.Effect
	var changed bool
	err := s.again(ctx, true, verb, func() error {
		e, changed = pacht.Effect{}, false
		_, err := s.transact(ctx, s.own, s.timeout,
			stmt{sql: s.sql.AnswerEffect, args: args, each: func(scan scanner) error {
				var rev int64
				changed = true
				return scan(&rev)
			}},
			s.oneEffect(a.Job, a.Name, &e))
		if err == nil && !changed {
			_, err = s.transact(ctx, s.own, s.timeout, s.durable()) // what stands there may still wait for a standby
		}
		return err
	})
	switch {
	case err != nil:
		return pacht.Effect{}, err
	case e.Name == "":
		return pacht.Effect{}, fmt.Errorf("%s: %w", verb, pacht.ErrNotFound)
	case !changed && e.State != a.State:
		return e, &pacht.EffectError{Effect: e, Asked: a.State}
	}
	return e, nil
}

// oneEffect reads one effect in the transaction that may have changed it.
func (s *Store) oneEffect(id pacht.ID, name string, into *pacht.Effect) stmt {
	return stmt{sql: s.sql.Effects, args: []any{int64(id)}, each: func(scan scanner) error {
		var e pacht.Effect
		err := readEffect(&e, scan)
		if e.Name == name {
			*into = e
		}
		return err
	}}
}

// Effects implements pacht.EffectLog. Handlers ask it too, which may hold the whole pool.
func (s *Store) Effects(ctx context.Context, id pacht.ID) ([]pacht.Effect, error) {
	return listOn(ctx, s, s.own, "effects of job "+id.String(), s.sql.Effects, []any{int64(id)}, readEffect)
}

// OpenEffects implements pacht.EffectLog.
func (s *Store) OpenEffects(ctx context.Context, after pacht.EffectCursor, limit int) ([]pacht.Effect, error) {
	if limit < 1 || limit > 1000 {
		return nil, &pacht.InvalidError{Field: "limit", Value: strconv.Itoa(limit), Bound: "1 to 1000"}
	}
	return listOn(ctx, s, s.own, "open effects", s.sql.OpenEffects, []any{int64(after.Job), after.Name, int64(limit)}, readEffect)
}

func readEffect(e *pacht.Effect, scan scanner) error {
	var request, answer document
	var answered, notBefore *time.Time
	err := scan(&e.Job, &e.Name, &e.State, &e.Rev, &e.Key, &e.Reference, &request, &e.Token, &e.Calls, &answer, &e.Error,
		&e.FirstCalledAt, &e.CalledAt, &answered, &notBefore)
	e.Request, e.Answer = json.RawMessage(request), json.RawMessage(answer)
	e.FirstCalledAt, e.CalledAt = e.FirstCalledAt.UTC(), e.CalledAt.UTC()
	e.AnsweredAt, e.NotBefore = when(answered), when(notBefore)
	return err
}
