package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
)

const (
	// A notice that the store sends itself must be back by then. It is sent once before Listen
	// says that it works, and from then on regularly: a connection may go dead without a sign.
	// To send it may take longer: the connections for that have other work.
	proofWithin = 2 * time.Second
	proofEvery  = 30 * time.Second
	proofSent   = 10 * time.Second
	// Between two connections. One that brings no notices is likely to be a pooler's.
	listenAgain, listenAgainMost = 100 * time.Millisecond, 10 * time.Second
	silentAgain, silentAgainMost = time.Second, time.Minute

	listenConnect = 10 * time.Second
)

var errSilent = errors.New("a notice that was sent for a trial did not arrive; through a pooler in transaction mode none does")

// listens are the calls of Listen that are under way.
type listens struct {
	mu     sync.Mutex
	closed bool
	ended  context.Context // with the store
	end    context.CancelFunc
	all    sync.WaitGroup
	proofs atomic.Int64
	// As the constants are, but in tests.
	within, every, sent time.Duration
}

func (l *listens) open() {
	l.ended, l.end = context.WithCancel(context.Background())
	l.within, l.every, l.sent = proofWithin, proofEvery, proofSent
}

func (l *listens) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.all.Add(1)
	}
	return !l.closed
}

func (l *listens) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.end()
	l.all.Wait()
}

// Listen implements pacht.Waker.
func (s *Store) Listen(ctx context.Context, owner string, l pacht.Listener) error {
	if err := pacht.ValidOwner(owner); err != nil {
		return err
	}
	if !s.listens.begin() {
		return fmt.Errorf("listen of %s: %w", owner, pacht.ErrClosed)
	}
	defer s.listens.all.Done()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(s.listens.ended, stop)()
	pool, err := s.privatePool(1)
	if err != nil {
		return fmt.Errorf("listen of %s: %w", owner, err)
	}
	defer pool.Close()
	for wait := time.Duration(0); ; {
		worked, err := s.listen(ctx, pool, owner, l)
		if s.listens.ended.Err() != nil {
			return fmt.Errorf("listen of %s: %w", owner, pacht.ErrClosed)
		}
		if ctx.Err() != nil {
			return nil
		}
		l.Works(false, err)
		if worked {
			wait = 0
		}
		if wait = min(max(2*wait, listenAgain), listenAgainMost); errors.Is(err, errSilent) {
			wait = min(max(2*wait, silentAgain), silentAgainMost)
		}
		_ = clock.Sleep(ctx, clock.Jitter(wait)) // the end of ctx shows in the next round
	}
}

// listen hears the notices of one connection until it breaks or ctx ends, and says whether it
// ever worked. Every round opens a connection of its own: the name may lead to another server
// by now.
func (s *Store) listen(ctx context.Context, pool *pgxpool.Pool, owner string, l pacht.Listener) (worked bool, err error) {
	connecting, cancel := context.WithTimeout(ctx, listenConnect)
	defer cancel()
	conn, err := pool.Acquire(connecting)
	if err != nil {
		return false, fmt.Errorf("open a connection to listen on: %w", telling(err))
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if errors.Is(err, errSilent) {
			_, _ = conn.Exec(closing, s.onChannel(s.sql.Unlisten), pgx.QueryExecModeSimpleProtocol) // it is being closed anyway
		}
		_ = conn.Conn().Close(closing)
		conn.Release()
	}()
	if _, err := conn.Exec(connecting, s.onChannel(s.sql.Listen), pgx.QueryExecModeSimpleProtocol); err != nil {
		return false, fmt.Errorf("listen: %w", err)
	}
	reading, stop := context.WithCancelCause(ctx)
	var prover sync.WaitGroup
	defer prover.Wait()
	defer stop(nil)
	var works atomic.Bool
	proofs := make(chan string, 1)
	mine := proofMark + owner + " "
	prover.Go(func() {
		stop(s.prove(reading, owner, proofs, func() {
			if !works.Swap(true) {
				l.Works(true, nil)
			}
		}))
	})
	for {
		notice, err := conn.Conn().WaitForNotification(reading)
		switch {
		case reading.Err() != nil:
			return works.Load(), context.Cause(reading)
		case err != nil:
			return works.Load(), fmt.Errorf("the connection to listen on broke: %w", err)
		case strings.HasPrefix(notice.Payload, mine):
			select {
			case proofs <- notice.Payload:
			default: // nobody waits for it any more
			}
		case strings.HasPrefix(notice.Payload, proofMark): // somebody else's
		default:
			l.Wake(notice.Payload)
		}
	}
}

// proofMark begins no queue's name.
const proofMark = "?"

// prove sends notices over another connection, and says why it has given up: one that the
// listening connection sent itself would come back even through a pooler.
func (s *Store) prove(ctx context.Context, owner string, arrived <-chan string, works func()) error {
	for {
		proof := fmt.Sprintf("%s%s %d", proofMark, owner, s.listens.proofs.Add(1))
		sending, cancel := context.WithTimeout(ctx, s.listens.sent)
		err := s.write(sending, "send a notice for a trial", s.sql.Notify, []any{s.channel, proof})
		cancel()
		if err != nil {
			return err
		}
		late := time.NewTimer(s.listens.within)
		for came := ""; came != proof; {
			select {
			case came = <-arrived:
			case <-late.C:
				return errSilent
			case <-ctx.Done():
				late.Stop()
				return context.Cause(ctx)
			}
		}
		late.Stop()
		works()
		if err := clock.Sleep(ctx, clock.Jitter(s.listens.every)); err != nil {
			return err
		}
	}
}

// onChannel puts the channel's name in, which is of letters, digits and _ alone.
func (s *Store) onChannel(sql string) string {
	return strings.ReplaceAll(sql, "pacht_channel", s.channel)
}
