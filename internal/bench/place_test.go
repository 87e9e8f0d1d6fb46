package bench

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/pacht-queue/pacht"
)

func TestDatabaseWithWorkIsRefusedUnlessForced(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		db := openStore(t, url)
		enqueue := func(jobs ...pacht.NewJob) pacht.ID {
			answers, err := db.Enqueue(t.Context(), jobs)
			if err != nil {
				t.Fatal(err)
			}
			return answers[0].ID
		}
		theirs := enqueue(pacht.NewJob{Kind: "k", Args: []byte("{}")})
		enqueue(pacht.New(noop{N: 1}, pacht.Queue(queue))) // left by one that was killed
		_, err := Open(t.Context(), Where{URL: url})
		var invalid *pacht.InvalidError
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), "2 unfinished") || !strings.Contains(err.Error(), "--force") {
			t.Fatalf("%v", err)
		}
		p, err := Open(t.Context(), Where{URL: url, Force: true})
		if err != nil {
			t.Fatal(err)
		}
		d := small()
		d.State = State{Parked: 2, Held: 2, Foreign: 2, Finished: 2}
		if res, err := d.Run(t.Context(), p); err != nil || !res.ExactlyOnce {
			t.Errorf("%+v, %v", res, err)
		}
		later := enqueue(pacht.NewJob{Kind: "k", Args: []byte("{}"), Queue: queue})
		if err := p.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		left, err := db.Jobs(t.Context(), pacht.Filter{})
		if err != nil || len(left) != 2 || left[0].ID != later || left[1].ID != theirs {
			t.Errorf("left are %+v, %v; want the user's two jobs, %d and %d", left, err, theirs, later)
		}
		if workers, err := db.Workers(t.Context()); err != nil || len(workers) != 0 {
			t.Errorf("left are %+v, %v", workers, err)
		}
		if found, err := db.Check(t.Context()); err != nil || len(found) > 0 {
			t.Errorf("check: %+v, %v", found, err)
		}
	})
}

func TestDatabaseWithoutTablesIsNotMigrated(t *testing.T) {
	url := "sqlite:" + t.TempDir() + "/p.db"
	openStore(t, url)
	if _, err := Open(t.Context(), Where{URL: url}); !errors.Is(err, pacht.ErrSchema) {
		t.Errorf("%v", err)
	}
}

func TestFreshFileIsRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	p, err := Open(t.Context(), Where{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := small().Run(t.Context(), p); err != nil {
		t.Error(err)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestWhatOnlyOneDatabaseHasIsRefusedOnTheOther(t *testing.T) {
	p := open(t, Where{})
	for _, d := range []Drain{{Snapshot: true}, {State: State{StaleStatistics: true}}} {
		d.Jobs, d.ArgsBytes, d.Concurrency, d.Workers, d.Rounds = 1, 1, 1, 1, 1
		var invalid *pacht.InvalidError
		if _, err := d.Run(t.Context(), p); !errors.As(err, &invalid) || !strings.Contains(err.Error(), "--postgres") {
			t.Errorf("%+v: %v", d, err)
		}
	}
}
