package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pacht-queue/pacht"
)

// Goroutines that enqueue one job each at the same time share a transaction: a statement, a
// commit and a notice for all of them. Nobody waits for a timer: a group goes out as soon as none
// is on its way, or one that carries a single job, with what has gathered by then; and behind one of
// several jobs, once those have had the CPU whose jobs these were. More at once
// would be smaller, and cost more. One that takes long is not waited for: behind a connection that
// has gone silent others would stand for nothing. Jobs with keys and large ones go alone; so does,
// once more, whatever was in a group that the server refused. On pools whose hooks look at the
// caller's context all go alone.
const (
	groupsAtOnce = 2
	groupLimit   = 500
	groupArgs    = 64 << 10 // bytes of a job that may go with others
	groupSlow    = 100 * time.Millisecond
	groupConnect = 3 * time.Second // the wait for a connection, before everybody tries alone
	gatherRounds = 4               // turns that others have on the CPU
)

// group gathers single jobs without key.
type group struct {
	off       bool
	mu        sync.Mutex
	waiting   []*member
	running   int // senders that are not slow
	flying    int // jobs that these have sent
	gathering int // senders that let others come before they go on
	ended     sync.WaitGroup
	ctx       context.Context // ends with the store
	end       context.CancelFunc
}

// member is one call's job in a group.
type member struct {
	job    pacht.NewJob
	done   chan struct{}
	answer pacht.Enqueued
	err    error
}

// errAlone says that a group wrote nothing, and that the job has to be tried alone.
var errAlone = errors.New("not stored in a group")

// configure decides whether calls may share transactions on this pool.
func (g *group) configure(cfg *pgxpool.Config) {
	g.ctx, g.end = context.WithCancel(context.Background())
	//lint:ignore SA1019 a pool may still have it
	g.off = cfg.BeforeAcquire != nil || cfg.PrepareConn != nil || cfg.ConnConfig.Tracer != nil
}

// enqueueGrouped stores one job together with those of other goroutines. It may return errAlone.
func (s *Store) enqueueGrouped(ctx context.Context, job pacht.NewJob) (pacht.Enqueued, error) {
	g := &s.group
	if g.off || ctx.Err() != nil || len(job.Args)+len(job.Metadata) > groupArgs {
		return pacht.Enqueued{}, errAlone
	}
	// Its caller may have gone, and use these again, before the group is sent.
	job.Args, job.Metadata = bytes.Clone(job.Args), bytes.Clone(job.Metadata)
	m := &member{job: job, done: make(chan struct{})}
	g.mu.Lock()
	if g.ctx.Err() != nil {
		g.mu.Unlock()
		return pacht.Enqueued{}, errAlone // which says that the store is closed
	}
	g.waiting = append(g.waiting, m)
	s.startSender()
	g.mu.Unlock()
	select {
	case <-m.done:
		return m.answer, m.err
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.waiting, m); i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
		return pacht.Enqueued{}, fmt.Errorf("enqueue: %w", inVain(s.pool, context.Cause(ctx)))
	}
	select {
	case <-m.done:
		return m.answer, m.err
	default:
		return pacht.Enqueued{}, fmt.Errorf("enqueue: %w", &unknownError{context.Cause(ctx)})
	}
}

// startSender starts another sender if there is room and something waits. Called with the lock
// held.
func (s *Store) startSender() {
	g := &s.group
	if g.mayGo() && g.running < groupsAtOnce && len(g.waiting) > 0 && g.ctx.Err() == nil {
		g.running++
		g.ended.Go(s.sendGroups)
	}
}

// mayGo says whether another group is worth its transaction. Called with the lock held.
func (g *group) mayGo() bool {
	return g.flying <= 1 && g.gathering == 0 || len(g.waiting) >= groupLimit
}

// load is what one sender has on its way.
type load struct {
	jobs int
	slow bool // it does not count any more
}

// sendGroups sends groups until nothing waits, or one took long and others have taken over. A
// connection is taken first and the group then, so that whoever gives up meanwhile
// has sent nothing.
func (s *Store) sendGroups() {
	last := 0
	for fast := true; fast; {
		if last > 1 {
			s.group.gather()
		}
		var l load
		slow := time.AfterFunc(groupSlow, func() {
			s.group.mu.Lock()
			defer s.group.mu.Unlock()
			l.slow = true
			s.group.flying -= l.jobs
			s.group.running--
			s.startSender()
		})
		wait, cancel := context.WithTimeout(s.group.ctx, groupConnect)
		conn, _, release, err := s.acquire(wait, s.pool)
		cancel()
		batch := s.group.take(&l)
		if err == nil {
			if len(batch) > 0 {
				err = s.sendGroup(conn, batch)
			}
			release()
		}
		if fast, last = slow.Stop(), l.jobs; fast {
			s.group.landed(l)
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
		if fast && len(batch) == 0 {
			s.group.mu.Lock()
			defer s.group.mu.Unlock()
			s.group.running--
			s.startSender() // for what has come since
			return
		}
	}
}

// gather lets those come who were just answered and have more, as long as they do, but not for long:
// else half of the callers would always miss the group that the other half is in. No other sender
// starts with the first of them meanwhile.
func (g *group) gather() {
	for before, n, rounds := -1, 0, 0; before < n && n < groupLimit && rounds < gatherRounds; rounds++ {
		before = n
		runtime.Gosched()
		g.mu.Lock()
		n = len(g.waiting)
		g.mu.Unlock()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gathering--
}

// take answers what has gathered, at most groupLimit times groupArgs bytes; nothing if another sender
// is on its way with a group.
func (g *group) take(l *load) []*member {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !l.slow && !g.mayGo() {
		return nil
	}
	n := min(len(g.waiting), groupLimit)
	batch := slices.Clone(g.waiting[:n])
	g.waiting = slices.Delete(g.waiting, 0, n)
	if !l.slow {
		l.jobs = n
		g.flying += n
	}
	return batch
}

// landed takes in that a group was answered in time. Its sender goes on with gather if it was of several.
func (g *group) landed(l load) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.flying -= l.jobs
	if l.jobs > 1 {
		g.gathering++
	}
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

// close waits for the groups that are on their way. Whoever still waits behind a slow one then
// tries alone, and hears that the store is closed.
func (g *group) close() {
	g.mu.Lock()
	g.end()
	g.mu.Unlock()
	g.ended.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range g.waiting {
		m.err = errAlone
		close(m.done)
	}
	g.waiting = nil
}
