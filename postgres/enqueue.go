package postgres

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
)

// One statement stores at most so many jobs, and about so many bytes of them.
const (
	chunkJobs  = 5000
	chunkBytes = 16 << 20
)

// horizon is how far ahead a job may be. A caller's clock that is a little ahead is no reason to
// refuse what it has allowed.
const horizon = pacht.Horizon + time.Minute

// Enqueue implements pacht.Enqueuer.
func (s *Store) Enqueue(ctx context.Context, jobs []pacht.NewJob) ([]pacht.Enqueued, error) {
	if len(jobs) == 1 && jobs[0].Key == "" && !s.unprepared.Load() {
		if answers, todo := s.vet(jobs); len(todo) == 0 {
			return answers, nil
		}
		answer, err := s.enqueueGrouped(ctx, jobs[0])
		switch {
		case err == nil:
			return []pacht.Enqueued{answer}, nil
		case !errors.Is(err, errAlone):
			return nil, err
		}
	}
	return s.EnqueueInTurn(ctx, jobs, nil)
}

// EnqueueInTurn implements pacht.Enqueuer. Only what goes by COPY begins ahead of its turn: with keys,
// two batches could wait for each other.
func (s *Store) EnqueueInTurn(ctx context.Context, jobs []pacht.NewJob, turn *pacht.Turn) ([]pacht.Enqueued, error) {
	answers, todo := s.vet(jobs)
	if len(todo) == 0 {
		return answers, nil
	}
	// Only with a key on every job can a lost answer be asked for again (R11).
	keyed, keys := true, false
	for _, i := range todo {
		keyed = keyed && jobs[i].Key != ""
		keys = keys || jobs[i].Key != ""
	}
	fast := len(todo) == 1 || (!keys && fits(jobs, todo))
	err := s.again(ctx, keyed, fmt.Sprintf("enqueue %d jobs", len(todo)), func() error {
		if fast && len(todo) >= copyLeast && !s.unprepared.Load() {
			return s.enqueueCopy(ctx, jobs, todo, answers, turn)
		}
		if err := turn.Wait(ctx); err != nil {
			return err
		}
		e := enqueuer{of: s, jobs: jobs, answers: answers}
		left := todo
		if fast {
			var err error
			if left, err = e.storeAtOnce(ctx, todo); err != nil || len(left) == 0 {
				return err
			}
		}
		_, err := s.interactive(ctx, s.pool, s.timeout, false, func(on session) error {
			e.on = on
			return e.store(ctx, left)
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return answers, nil
}

// BatchSize implements pacht.Enqueuer: as many as one COPY takes.
func (s *Store) BatchSize() int { return chunkJobs }

// vet answers what is refused at the edge, and lists the rest.
func (s *Store) vet(jobs []pacht.NewJob) (answers []pacht.Enqueued, todo []int) {
	answers = make([]pacht.Enqueued, len(jobs))
	now := clock.Now().Time()
	for i, j := range jobs {
		if answers[i].Err = j.Validate(s.limits, now); answers[i].Err == nil {
			todo = append(todo, i)
		}
	}
	return answers, todo
}

func fits(jobs []pacht.NewJob, which []int) bool {
	size := 0
	for _, i := range which {
		size += len(jobs[i].Args) + len(jobs[i].Metadata)
	}
	return len(which) <= chunkJobs && size <= chunkBytes
}

// enqueuer stores the jobs of one call.
type enqueuer struct {
	of      *Store
	on      session
	jobs    []pacht.NewJob
	answers []pacht.Enqueued
	known   map[scopedKey]keyOwner // keys that this call has met
}

type scopedKey struct{ scope, key string }

// keyOwner is what a key stands for.
type keyOwner struct {
	job         pacht.ID
	fingerprint string // in hex
}

// store stores jobs in an open transaction, chunk by chunk. A taken key is looked up; if it
// turns out to be free by then, its job is tried again.
func (e *enqueuer) store(ctx context.Context, todo []int) error {
	const mostIdle = 10 // rounds in which nothing was answered
	e.known = map[scopedKey]keyOwner{}
	for idle := 0; len(todo) > 0; {
		chunk, rest := e.chunk(todo)
		taken, read := e.reader(chunk)
		if len(chunk) > 0 {
			if err := e.on.query(ctx, e.of.sql.Enqueue, e.args(chunk), read); err != nil {
				return err
			}
		}
		again, err := e.lookUp(ctx, *taken)
		if err != nil {
			return err
		}
		if idle++; len(again)+len(rest) < len(todo) {
			idle = 0
		}
		if idle == mostIdle {
			return fmt.Errorf("%w: the idempotency key %q was taken and freed by others again and again", pacht.ErrBusy, e.jobs[again[0]].Key)
		}
		todo = append(again, rest...)
	}
	return nil
}

// storeAtOnce stores one chunk with its commit in one round trip, and answers whose key is
// taken.
func (e *enqueuer) storeAtOnce(ctx context.Context, chunk []int) ([]int, error) {
	taken, read := e.reader(chunk)
	_, err := e.of.transact(ctx, e.of.pool, e.of.timeout, stmt{sql: e.of.sql.Enqueue, args: e.args(chunk), each: read})
	return *taken, err
}

// chunk takes as many as one statement may store, each key once: the others with that key
// come after it, and are answered here if it is known by then.
func (e *enqueuer) chunk(todo []int) (chunk, rest []int) {
	size := 0
	seen := map[scopedKey]bool{}
	for n, i := range todo {
		j := &e.jobs[i]
		key := scopedKey{j.Scope, j.Key}
		if owner, ok := e.known[key]; ok && j.Key != "" {
			e.answer(i, owner)
			continue
		}
		if j.Key != "" && seen[key] {
			rest = append(rest, i)
			continue
		}
		if size += len(j.Args) + len(j.Metadata); len(chunk) == chunkJobs || (size > chunkBytes && len(chunk) > 0) {
			return chunk, append(rest, todo[n:]...)
		}
		seen[key] = true
		chunk = append(chunk, i)
	}
	return chunk, rest
}

// reader takes in the answers to one chunk, and collects whose key is taken.
func (e *enqueuer) reader(chunk []int) (taken *[]int, read func(scanner) error) {
	taken = new([]int)
	return taken, func(scan scanner) error {
		var place int
		var id pacht.ID
		var tooFar bool
		if err := scan(&place, &id, &tooFar); err != nil {
			return err
		}
		i := chunk[place-1]
		switch j := &e.jobs[i]; {
		case id != 0:
			e.answers[i] = pacht.Enqueued{ID: id}
			if j.Key != "" && e.known != nil {
				e.known[scopedKey{j.Scope, j.Key}] = keyOwner{id, hex.EncodeToString(j.Fingerprint())}
			}
		case tooFar:
			e.answers[i].Err = tooFarAhead(j)
		default:
			*taken = append(*taken, i)
		}
		return nil
	}
}

func tooFarAhead(j *pacht.NewJob) error {
	return &pacht.InvalidError{Field: "run_at", Value: j.RunAt.Format(time.RFC3339), Bound: "at most 10 years ahead of the database's clock"}
}

// lookUp answers jobs whose key is taken, and returns those whose key is free by now.
func (e *enqueuer) lookUp(ctx context.Context, taken []int) (again []int, err error) {
	if len(taken) == 0 {
		return nil, nil
	}
	scopes, keys := make([]string, len(taken)), make([]string, len(taken))
	for n, i := range taken {
		scopes[n], keys[n] = e.jobs[i].Scope, e.jobs[i].Key
	}
	err = e.on.query(ctx, e.of.sql.Keys, []any{scopes, keys}, func(scan scanner) error {
		var place int
		var owner keyOwner
		if err := scan(&place, &owner.job, &owner.fingerprint); err != nil {
			return err
		}
		i := taken[place-1]
		if owner.job == 0 {
			again = append(again, i)
			return nil
		}
		e.known[scopedKey{scopes[place-1], keys[place-1]}] = owner
		e.answer(i, owner)
		return nil
	})
	if err != nil || len(again) == len(taken) {
		return again, err
	}
	durable := e.of.durable() // what an answer that was lost had not said yet
	return again, e.on.query(ctx, durable.sql, durable.args, durable.each)
}

func (e *enqueuer) answer(i int, owner keyOwner) {
	if hex.EncodeToString(e.jobs[i].Fingerprint()) == owner.fingerprint {
		e.answers[i] = pacht.Enqueued{ID: owner.job, Duplicate: true}
		return
	}
	e.answers[i] = pacht.Enqueued{Err: &pacht.KeyConflictError{Key: e.jobs[i].Key, Job: owner.job}}
}

// sequence is the name of the sequence of job ids.
func (s *Store) sequence() string { return pgx.Identifier{s.schema, "jobs_job_id_seq"}.Sanitize() }

// args are the columns of one chunk, in the order of enqueue.sql.
func (e *enqueuer) args(chunk []int) []any {
	n := len(chunk)
	text := func() []string { return make([]string, n) }
	kinds, args, metadata, queues, policies := text(), text(), text(), text(), text()
	keys, scopes, fingerprints := text(), text(), text()
	priorities := make([]int16, n)
	runAt, delays, lives := make([]int64, n), make([]int64, n), make([]int64, n)
	attempts, crashes, ttls := make([]int32, n), make([]int32, n), make([]int32, n)
	for at, i := range chunk {
		j := &e.jobs[i]
		kinds[at], args[at], metadata[at] = j.Kind, string(j.Args), string(j.Metadata)
		queues[at], policies[at] = cmp.Or(j.Queue, pacht.DefaultQueue), string(j.CrashPolicy)
		priorities[at] = int16(cmp.Or(j.Priority, pacht.DefaultPriority))
		// A time before 1970 is past like any other, and need not be one that SQL can spell.
		runAt[at], delays[at] = max(microseconds(j.RunAt), 0), max(j.Delay, 0).Microseconds()
		attempts[at], crashes[at], ttls[at] = int32(j.MaxAttempts), int32(j.MaxCrashes), int32(j.TTL.Milliseconds())
		if j.Key != "" {
			keys[at], scopes[at] = j.Key, j.Scope
			fingerprints[at] = hex.EncodeToString(j.Fingerprint())
			lives[at] = cmp.Or(j.KeyLife, pacht.DefaultKeyLife).Microseconds()
		}
	}
	return []any{
		kinds, args, metadata, queues, priorities, runAt, delays, attempts, crashes, ttls, policies,
		keys, scopes, fingerprints, lives,
		int32(pacht.DefaultMaxAttempts), int32(pacht.DefaultMaxCrashes), int32(pacht.DefaultTTL.Milliseconds()), string(pacht.DefaultCrashPolicy),
		horizon.Microseconds(), e.of.sequence(),
	}
}
