package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/pacht-queue/pacht"
)

// Enqueue implements pacht.Enqueuer.
func (s *Store) Enqueue(ctx context.Context, jobs []pacht.NewJob) ([]pacht.Enqueued, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	var answers []pacht.Enqueued
	err := s.write(ctx, "enqueue", false, func(ctx context.Context, w *work) (err error) {
		answers, err = s.enqueue(ctx, w, w.now, jobs)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.ears.tell(jobs, answers)
	return answers, nil
}

// EnqueueInTurn implements pacht.Enqueuer: there is one writer, so nothing is begun ahead.
func (s *Store) EnqueueInTurn(ctx context.Context, jobs []pacht.NewJob, _ *pacht.Turn) ([]pacht.Enqueued, error) {
	return s.Enqueue(ctx, jobs)
}

// BatchSize implements pacht.Enqueuer: so many take a few hundredths of a second, in which nobody else
// writes.
func (s *Store) BatchSize() int { return 1000 }

// enqueue stores jobs and answers row by row. The caller holds the write lock: so a key that
// was not found is free until the commit (R11).
func (s *Store) enqueue(ctx context.Context, r runner, now int64, jobs []pacht.NewJob) ([]pacht.Enqueued, error) {
	answers := make([]pacht.Enqueued, len(jobs))
	settings := map[string]pacht.QueueSettings{}
	for i, j := range jobs {
		if err := j.Validate(s.limits, at(now)); err != nil {
			answers[i].Err = err
			continue
		}
		if j.Queue == "" {
			j.Queue = pacht.DefaultQueue
		}
		own, known := settings[j.Queue]
		if !known {
			var err error
			if own, err = s.queueSettings(ctx, r, j.Queue); err != nil {
				return nil, fmt.Errorf("settings of queue %s: %w", j.Queue, err)
			}
			settings[j.Queue] = own
		}
		var err error
		if answers[i], err = s.enqueueOne(ctx, r, now, filled(j, own)); err != nil {
			return nil, fmt.Errorf("job %d of %d, kind %s: %w", i+1, len(jobs), j.Kind, err)
		}
	}
	return answers, nil
}

// filled puts in what the enqueue did not say: the queue's own settings, else the defaults (R6).
func filled(j pacht.NewJob, own pacht.QueueSettings) pacht.NewJob {
	j.TTL = first(j.TTL, own.TTL, pacht.DefaultTTL)
	j.MaxAttempts = first(j.MaxAttempts, own.MaxAttempts, pacht.DefaultMaxAttempts)
	j.MaxCrashes = first(j.MaxCrashes, own.MaxCrashes, pacht.DefaultMaxCrashes)
	j.CrashPolicy = first(j.CrashPolicy, own.CrashPolicy, pacht.DefaultCrashPolicy)
	j.Priority = first(j.Priority, pacht.DefaultPriority)
	j.KeyLife = first(j.KeyLife, pacht.DefaultKeyLife)
	return j
}

func first[T comparable](values ...T) T {
	var zero T
	for _, v := range values {
		if v != zero {
			return v
		}
	}
	return zero
}

func (s *Store) enqueueOne(ctx context.Context, r runner, now int64, j pacht.NewJob) (pacht.Enqueued, error) {
	var fingerprint []byte
	if j.Key != "" {
		fingerprint = j.Fingerprint()
		var id pacht.ID
		var same bool
		found, err := one(ctx, r, s.sql.KeyFind, []any{j.Scope, j.Key, fingerprint, now}, &id, &same)
		switch {
		case err != nil:
			return pacht.Enqueued{}, err
		case found && same:
			return pacht.Enqueued{ID: id, Duplicate: true}, nil
		case found:
			return pacht.Enqueued{Err: &pacht.KeyConflictError{Key: j.Key, Job: id}}, nil
		}
	}
	runAt := max(now, now+j.Delay.Milliseconds())
	if !j.RunAt.IsZero() {
		runAt = max(now, j.RunAt.UnixMilli())
	}
	res, err := r.ExecContext(ctx, s.sql.Enqueue, now, runAt, j.TTL.Milliseconds(), j.MaxAttempts, j.MaxCrashes,
		j.Priority, string(j.CrashPolicy), j.Queue, j.Kind, string(j.Args), text(j.Metadata))
	if err != nil {
		return pacht.Enqueued{}, err
	}
	id, err := res.LastInsertId()
	if err != nil {
		return pacht.Enqueued{}, err
	}
	if _, err := r.ExecContext(ctx, s.sql.EnqueueLease, id, runAt, j.TTL.Milliseconds(), j.MaxAttempts, j.MaxCrashes,
		j.Priority, string(j.CrashPolicy), j.Queue, j.Kind); err != nil {
		return pacht.Enqueued{}, err
	}
	if j.Key != "" {
		if _, err := r.ExecContext(ctx, s.sql.KeyStore, j.Scope, j.Key, fingerprint, id, now+j.KeyLife.Milliseconds()); err != nil {
			return pacht.Enqueued{}, err
		}
	}
	return pacht.Enqueued{ID: pacht.ID(id)}, nil
}

func (s *Store) queueSettings(ctx context.Context, r runner, queue string) (q pacht.QueueSettings, err error) {
	var ttl int64
	_, err = one(ctx, r, s.sql.Queue, []any{queue}, &ttl, &q.MaxAttempts, &q.MaxCrashes, &q.CrashPolicy)
	q.TTL = time.Duration(ttl) * time.Millisecond
	return q, err
}
