package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pacht-queue/pacht"
)

// Goroutines that enqueue one job each at the same time share a transaction: a statement, a
// commit and a notice for all of them. Nobody waits for a timer: a group goes out as soon as
// one of groupsAtOnce has room, with what has gathered by then. Jobs with keys go alone; so
// does, once more, whatever was in a group that the server refused.
const (
	groupsAtOnce = 2
	groupLimit   = 500
)

// group gathers single jobs without key.
type group struct {
	mu      sync.Mutex
	waiting []*member
	running int
	ended   sync.WaitGroup
	ctx     context.Context // ends with the store
	end     context.CancelFunc
}

// member is one call's job in a group.
type member struct {
	job  pacht.NewJob
	done chan struct{}

	answer pacht.Enqueued
	err    error
}

// errAlone says that a group wrote nothing, and that the job has to be tried alone.
var errAlone = errors.New("not stored in a group")

// enqueueGrouped stores one job together with those of other goroutines. It may return errAlone.
func (s *Store) enqueueGrouped(ctx context.Context, job pacht.NewJob) (pacht.Enqueued, error) {
	g := &s.group
	m := &member{job: job, done: make(chan struct{})}
	g.mu.Lock()
	if g.ctx.Err() != nil {
		g.mu.Unlock()
		return pacht.Enqueued{}, errAlone // which says that the store is closed
	}
	g.waiting = append(g.waiting, m)
	if g.running < groupsAtOnce {
		g.running++
		g.ended.Go(func() { s.sendGroups() })
	}
	g.mu.Unlock()
	select {
	case <-m.done:
		return m.answer, m.err
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, other := range g.waiting {
		if other == m {
			g.waiting = append(g.waiting[:i], g.waiting[i+1:]...)
			return pacht.Enqueued{}, fmt.Errorf("enqueue: %w", context.Cause(ctx))
		}
	}
	select {
	case <-m.done:
		return m.answer, m.err
	default:
		return pacht.Enqueued{}, fmt.Errorf("enqueue: %w", &unknownError{context.Cause(ctx)})
	}
}

// sendGroups sends groups until nothing waits. A connection is taken first and the group
// gathered then, so that whoever gives up meanwhile has sent nothing.
func (s *Store) sendGroups() {
	for {
		conn, _, release, err := s.acquire(s.group.ctx, s.pool)
		batch := s.group.take()
		if err == nil {
			if len(batch) > 0 {
				err = s.sendGroup(conn, batch)
			}
			release()
		}
		if len(batch) == 0 {
			return
		}
		for _, m := range batch {
			switch {
			case errors.Is(err, pacht.ErrUnknown):
				m.err = fmt.Errorf("enqueue: %w", err)
			case err != nil:
				m.err = errAlone
			}
			close(m.done)
		}
	}
}

// take answers what has gathered; nothing ends the caller.
func (g *group) take() []*member {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := min(len(g.waiting), groupLimit)
	batch := g.waiting[:n:n]
	g.waiting = g.waiting[n:]
	if n == 0 {
		g.running--
		g.waiting = nil
	}
	return batch
}

func (s *Store) sendGroup(conn *pgxpool.Conn, batch []*member) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.patience(s.pool)) // Close waits
	defer cancel()
	e := enqueuer{of: s, jobs: make([]pacht.NewJob, len(batch)), answers: make([]pacht.Enqueued, len(batch))}
	all := make([]int, len(batch))
	for i, m := range batch {
		e.jobs[i], all[i] = m.job, i
	}
	_, read := e.reader(all)
	_, err := s.transactOn(ctx, conn, s.pool, s.timeout, stmt{sql: s.sql.Enqueue, args: e.args(all), each: read})
	for i, m := range batch {
		m.answer = e.answers[i]
	}
	return err
}

// close waits for the groups that are on their way.
func (g *group) close() {
	g.mu.Lock()
	g.end()
	g.mu.Unlock()
	g.ended.Wait()
}
