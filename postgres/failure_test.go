package postgres

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/pgtest"
)

func TestVerbWhoseOutcomeIsUnknownIsRepeatedOnlyIfItMayBe(t *testing.T) { // R4, R11
	s, _ := newStore(t)
	// What PgBouncer says when it drops a client, also after a COMMIT was sent.
	dropped := sent(&pgconn.PgError{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: "08P01", Message: "query_timeout"})
	for repeatable, want := range map[bool]int{false: 1, true: 2} {
		calls := 0
		err := s.again(t.Context(), repeatable, "verb", func() error {
			if calls++; calls == 1 {
				return dropped
			}
			return nil
		})
		if calls != want || repeatable != (err == nil) || !repeatable && !errors.Is(err, pacht.ErrUnknown) {
			t.Errorf("repeatable %t: %d calls, %v", repeatable, calls, err)
		}
	}
}

func TestVerbThatWasInDoubtOnceIsSoUntilItIsAnswered(t *testing.T) { // R4, R11
	s, _ := newStore(t)
	calls := 0
	err := s.again(t.Context(), true, "verb", func() error {
		if calls++; calls == 1 {
			return &unknownError{net.ErrClosed}
		}
		return &pgconn.ConnectError{}
	})
	var connect *pgconn.ConnectError
	if calls != 2 || !errors.Is(err, pacht.ErrUnknown) || !errors.As(err, &connect) {
		t.Errorf("%d calls, %v", calls, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = s.again(ctx, true, "verb", func() error {
		time.AfterFunc(time.Millisecond, cancel) // in the pause, or in a later try
		return &unknownError{net.ErrClosed}
	})
	if !errors.Is(err, pacht.ErrUnknown) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// The driver may answer that it wrote to a connection which it has itself closed.
func TestCallThatItsContextEndedSaysSo(t *testing.T) {
	s, _ := newStore(t)
	why := errors.New("given up")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	for _, unknown := range []bool{false, true} {
		err := s.again(ctx, false, "verb", func() error {
			cancel(why)
			if unknown {
				return &unknownError{net.ErrClosed}
			}
			return net.ErrClosed
		})
		if !errors.Is(err, why) || !errors.Is(err, context.Canceled) || !errors.Is(err, net.ErrClosed) || errors.Is(err, pacht.ErrUnknown) != unknown {
			t.Error(err)
		}
	}
	refused := &pgconn.PgError{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: "22021"}
	if err := s.again(ctx, false, "verb", func() error { return refused }); errors.Is(err, why) || !errors.Is(err, refused) {
		t.Error(err)
	}
}

func TestEnqueueWhoseCommitAPoolerCutsOffIsNotRepeated(t *testing.T) { // R11
	database := pgtest.Database(t)
	pool := poolAt(t, database)
	s, _ := storeAt(t, pgtest.Bouncer(t, database, "query_timeout = 1"), Config{}, mode(modes[1]))
	enqueue(t, s, 1)
	execute(t, pool, `CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(4); RETURN NULL; END';
		CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON pacht.jobs DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow()`)
	if _, err := s.Enqueue(t.Context(), []pacht.NewJob{pacht.New(charge{1})}); !errors.Is(err, pacht.ErrUnknown) {
		t.Errorf("enqueue: %v", err)
	}
	execute(t, pool, "DROP TRIGGER slow ON pacht.jobs") // waits for what is still being committed
	if n := value(t, pool, "SELECT count(*) FROM pacht.jobs"); n != "1" && n != "2" {
		t.Errorf("%s jobs are stored: it was repeated", n)
	}
}
