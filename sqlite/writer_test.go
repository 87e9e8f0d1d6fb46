package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
)

// gather holds the file's write lock while fill puts parts into the writer's queue, and lets
// go when all of them wait: so they go into one transaction.
func gather(t *testing.T, s *Store, parts int, fill func()) {
	t.Helper()
	s.writer.groupTime = time.Hour
	tx := mustBegin(t, s)
	fill()
	eventually(t, "all parts wait", func() bool {
		s.writer.mu.Lock()
		defer s.writer.mu.Unlock()
		return len(s.writer.urgent)+len(s.writer.normal) == parts
	})
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
}

// R12: one part that fails leaves the others of its transaction alone.
func TestAFailingPartOfAGroupLeavesTheOthersAlone(t *testing.T) {
	s := newStore(t)
	const parts = 9
	refused := errors.New("refused")
	errs := make([]error, parts)
	groups := map[clock.Instant]bool{} // by the commit before them
	var running sync.WaitGroup
	gather(t, s, parts, func() {
		for i := range parts {
			running.Go(func() {
				errs[i] = s.write(context.Background(), "part", false, func(ctx context.Context, w *work) error {
					answers, err := s.enqueue(ctx, w, w.now, []pacht.NewJob{newJob(i)})
					if err != nil || answers[0].Err != nil {
						return errors.Join(err, answers[0].Err)
					}
					if i%3 == 0 {
						_, err := w.ExecContext(ctx, s.sql.Finish, answers[0].ID, 0, false)
						return errors.Join(err, refused)
					}
					groups[s.writer.committed] = true
					return nil
				})
			})
		}
	})
	running.Wait()
	for i, err := range errs {
		if (i%3 == 0) != errors.Is(err, refused) {
			t.Errorf("part %d: %v", i, err)
		}
	}
	if len(groups) != 1 {
		t.Errorf("the parts went into %d transactions", len(groups))
	}
	if jobs := mustClaim(t, s, "a", 100); len(jobs) != 6 {
		t.Errorf("%d jobs, want those of the 6 parts that did not fail", len(jobs))
	}
	mustCheck(t, s)
}

func TestRenewalsGoBeforeOtherWork(t *testing.T) {
	s := newStore(t)
	var order []bool
	var running sync.WaitGroup
	gather(t, s, 8, func() {
		for i := range 8 {
			urgent := i >= 4
			running.Go(func() {
				if err := s.write(context.Background(), "part", urgent, func(context.Context, *work) error {
					order = append(order, urgent)
					return nil
				}); err != nil {
					t.Error(err)
				}
			})
		}
	})
	running.Wait()
	if want := []bool{true, true, true, true, false, false, false, false}; !slices.Equal(order, want) {
		t.Errorf("urgent parts ran in the order %v", order)
	}
}

func TestACallerWhoGivesUpInTheQueueWritesNothing(t *testing.T) {
	s := newStore(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	gaveUp := errors.New("gave up")
	failed := make(chan error, 1)
	tx := mustBegin(t, s)
	go func() {
		_, err := s.Enqueue(ctx, []pacht.NewJob{newJob(1)})
		failed <- err
	}()
	eventually(t, "the call waits", s.writer.waiting)
	cancel(gaveUp)
	if err := <-failed; !errors.Is(err, gaveUp) {
		t.Errorf("%v, want the cause", err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	mustEnqueue(t, s, 1)
	if jobs := mustClaim(t, s, "a", 10); len(jobs) != 1 {
		t.Errorf("%d jobs, want only the second", len(jobs))
	}
}

func TestCloseEndsCallsThatWait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pacht.db")
	openStore(t, path, Config{}, true)
	c := startChild(t, "hold the lock", path)
	s, err := Open(path, Config{})
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() {
		_, err := s.Enqueue(context.Background(), []pacht.NewJob{newJob(1)})
		failed <- err
	}()
	eventually(t, "the call waits", s.writer.waiting)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-failed; !errors.Is(err, pacht.ErrClosed) {
		t.Errorf("%v, want %v", err, pacht.ErrClosed)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	if _, err := s.Enqueue(context.Background(), []pacht.NewJob{newJob(1)}); err == nil {
		t.Error("a closed store took a job")
	}
	c.kill()
}

// S058: a full disk yields a clear error and no half-written state, for everybody in the
// group, and the store works on once there is room.
func TestAFullDiskIsAClearErrorAndLeavesNoHalfWrittenState(t *testing.T) {
	s := newStore(t)
	mustEnqueue(t, s, 10)
	limit := func(pages string) {
		t.Helper()
		err := s.writer.do(t.Context(), "limit", false, func(ctx context.Context, w *work) error {
			_, err := texts(ctx, w, "PRAGMA max_page_count = "+pages)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	limit("1") // means: as large as it is now
	big := newJob(1)
	big.Args = []byte(`"` + strings.Repeat("x", 100_000) + `"`)
	_, err := s.Enqueue(t.Context(), []pacht.NewJob{newJob(0), big, newJob(2)})
	if err == nil || !strings.Contains(err.Error(), "the disk is full, nothing was written") {
		t.Fatalf("%v, want an error that says so", err)
	}
	mustCheck(t, s)
	limit("1000000")
	if _, err := s.Enqueue(t.Context(), []pacht.NewJob{big}); err != nil {
		t.Errorf("when there is room again: %v", err)
	}
	if jobs := mustClaim(t, s, "a", 100); len(jobs) != 11 {
		t.Errorf("%d jobs, want 11", len(jobs))
	}
	mustCheck(t, s)
}
