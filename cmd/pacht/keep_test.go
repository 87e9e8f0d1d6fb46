package main

import (
	"errors"
	"testing"

	"github.com/pacht-queue/pacht"
)

func TestWatchDeletesFinishedJobsOnlyIfToldHowLongToKeepThem(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	db := s.store()
	id := s.enqueue("k")
	w := s.work("true", "--kind", "k")
	becomes(t, db, id, pacht.Completed)
	w.stop()
	n, err := pacht.ParseID(id)
	if err != nil {
		t.Fatal(err)
	}
	cancelled := s.enqueue("k")
	s.ok("jobs", "cancel", cancelled, "--by", "ann", "--reason", "test")
	gone := func(id pacht.ID) bool {
		_, err := db.Job(t.Context(), id)
		return errors.Is(err, pacht.ErrNotFound)
	}
	sweeper := s.start("watch", "--keep-dead", "1s", "--keep-cancelled", "1s")
	until(t, "the cancelled job goes", func() bool { return gone(n + 1) })
	sweeper.stop()
	if gone(n) {
		t.Fatal("a completed job was deleted though nobody who sweeps has said so")
	}
	sweeper = s.start("watch", "--keep-completed", "1s")
	until(t, "the completed job goes", func() bool { return gone(n) })
	sweeper.stop()
}
