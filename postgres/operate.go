package postgres

import (
	"context"
	"fmt"

	"github.com/pacht-queue/pacht"
)

// act runs one statement of something done by hand behind a lock on the job, and looks at the
// job after it, all in one round trip. It answers the status that the statement did, "" if it
// did nothing; then the fate says what the job is.
func (s *Store) act(ctx context.Context, verb string, ref pacht.Ref, sql string, args []any) (pacht.Status, fate, error) {
	var status pacht.Status
	var fates []fate
	var found bool
	err := s.again(ctx, false, verb, func() error {
		status, found = "", false
		var each func(scanner) error
		fates, each = fateReader(1)
		_, err := s.transact(ctx, s.pool, lockTimeout,
			stmt{sql: s.sql.LockJob, args: []any{int64(ref.Job)}, each: func(scanner) error { found = true; return nil }},
			stmt{sql: sql, args: args, each: func(scan scanner) error { return scan(&status) }},
			stmt{sql: s.sql.Settled, args: fateArgs([]pacht.Settlement{{Ref: ref}}, false), each: each},
		)
		return err
	})
	if err == nil && !found {
		err = fmt.Errorf("%s: %w", verb, pacht.ErrNotFound)
	}
	if err != nil {
		return "", fate{}, err
	}
	return status, fates[0], nil
}

// Retry implements pacht.Operator.
func (s *Store) Retry(ctx context.Context, id pacht.ID, act pacht.Act) error {
	if err := act.Validate(); err != nil {
		return err
	}
	verb := fmt.Sprintf("retry job %d", id)
	done, now, err := s.act(ctx, verb, pacht.Ref{Job: id}, s.sql.Retry, []any{int64(id), act.By, act.Reason})
	switch {
	case err != nil || done != "":
		return err
	case now.status == pacht.Stuck || now.status == pacht.Dead || now.status == pacht.Cancelled:
		return fmt.Errorf("%s: %w", verb, pacht.ErrBusy)
	}
	return &pacht.StatusError{Job: id, Status: now.status, Act: "retry", Allow: "only Stuck, Dead and Cancelled jobs are retried"}
}

// Cancel implements pacht.Operator.
func (s *Store) Cancel(ctx context.Context, id pacht.ID, act pacht.Act) (pacht.Status, error) {
	if err := act.Validate(); err != nil {
		return "", err
	}
	verb := fmt.Sprintf("cancel job %d", id)
	done, now, err := s.act(ctx, verb, pacht.Ref{Job: id}, s.sql.Cancel, []any{int64(id), act.By, act.Reason})
	switch {
	case err != nil || done != "":
		return done, err
	case !now.status.Finished():
		return "", fmt.Errorf("%s: %w", verb, pacht.ErrBusy)
	}
	return "", &pacht.StatusError{Job: id, Status: now.status, Act: "cancel", Allow: "only unfinished jobs are cancelled"}
}

// Release implements pacht.Operator.
func (s *Store) Release(ctx context.Context, ref pacht.Ref, act pacht.Act) (pacht.Status, error) {
	if err := act.Validate(); err != nil {
		return "", err
	}
	verb := fmt.Sprintf("release %s", ref)
	defer s.floors.reset() // a released job keeps its place, which is behind them
	done, now, err := s.act(ctx, verb, ref, s.sql.Release, []any{int64(ref.Job), int64(ref.Token), act.By, act.Reason})
	switch {
	case err != nil || done != "":
		return done, err
	case now.open(ref):
		return "", fmt.Errorf("%s: %w", verb, pacht.ErrBusy)
	case now.status == pacht.Processing || now.outcome != "" || now.token != ref.Token:
		return "", now.lost(ref)
	}
	return "", &pacht.StatusError{Job: ref.Job, Status: now.status, Act: "release", Allow: "only Processing jobs are released"}
}

// Resolve implements pacht.Operator.
func (s *Store) Resolve(ctx context.Context, ref pacht.Ref, res pacht.Resolution, act pacht.Act) error {
	if err := act.Validate(); err != nil {
		return err
	}
	if err := res.Validate(); err != nil {
		return err
	}
	verb := fmt.Sprintf("resolve %s", ref)
	done, now, err := s.act(ctx, verb, ref, s.sql.Resolve, s.resolveArgs(ref, res, act))
	if err != nil || done != "" {
		return err
	}
	return now.unresolved(verb, ref)
}

func (s *Store) resolveArgs(ref pacht.Ref, res pacht.Resolution, act pacht.Act) []any {
	return []any{
		int64(ref.Job), int64(ref.Token), string(res.Status), pacht.SafeText(res.Error, pacht.MaxErrorBytes),
		string(pacht.SafeJSON(res.Output, s.limits)), act.By, act.Reason,
	}
}

// unresolved says why a lease could not be taken and closed.
func (f fate) unresolved(verb string, ref pacht.Ref) error {
	switch {
	case f.token != ref.Token:
		return f.lost(ref)
	case f.status == pacht.Pending || f.status == pacht.Stuck:
		return fmt.Errorf("%s: %w", verb, pacht.ErrBusy)
	}
	return &pacht.StatusError{Job: ref.Job, Status: f.status, Act: "resolve", Allow: "only Pending and Stuck jobs are resolved; release a Processing one first"}
}

// SetQueue implements pacht.Operator.
func (s *Store) SetQueue(ctx context.Context, queue string, set pacht.QueueSettings, act pacht.Act) error {
	if err := act.Validate(); err != nil {
		return err
	}
	if err := set.Validate(queue); err != nil {
		return err
	}
	args := []any{
		queue, int32(set.TTL.Milliseconds()), int32(set.MaxAttempts), int32(set.MaxCrashes), string(set.CrashPolicy),
		act.By, act.Reason,
	}
	return s.again(ctx, false, "set queue "+queue, func() error {
		_, err := s.transact(ctx, s.pool, lockTimeout, stmt{sql: s.sql.SetQueue, args: args})
		return err
	})
}
