package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
)

// Fuzz feeds what the validators accept to a store: it must come back byte for byte (R11, S073,
// S075), also as the error and the output of an attempt, once they are made safe (R12, S071), and
// what they refuse must not reach the database. An error of the database itself is a fault: the
// validator has let through what only one of the databases can store.
func Fuzz(f *testing.F, store pacht.Store) {
	f.Add("charge", "default", "k1", "", "{}", "", "it failed", `{"ok":true}`, int64(0), int64(0))
	f.Add("a/b:c.d", "q-1", "ключ", "scope", ` [1, 9007199254740993, 1e400, "💥"] `, ` {"a" : "\u00e9"} `, "zażółć\x00\xff", "not json", int64(90061), int64(-5))
	f.Add("k", "", "", "", "\"\\ud83d\\ude00\"", "", strings.Repeat("ż", 9000), "\"\\u0000\"", int64(100), int64(1<<62))
	f.Add("k", "q", "'; DROP TABLE jobs; --", "%s", `"\\u0000"`, "", "\u2028\x1b[31m", "\ufeff{}", int64(1000), int64(-62135596801))
	f.Add("k", "q", "a\x00", "\xff", `"\u0000"`, "[]", "", `"\ud800"`, int64(1), int64(1))
	f.Fuzz(func(t *testing.T, kind, queue, key, scope, args, metadata, failure, output string, ttl, at int64) {
		ctx := context.Background()
		now, err := store.Now(ctx)
		if err != nil {
			t.Fatal(err)
		}
		j := pacht.NewJob{
			Kind: kind, Queue: queue, Key: key, Scope: scope, Args: json.RawMessage(args), Metadata: json.RawMessage(metadata),
			TTL: time.Duration(ttl) * time.Millisecond, CrashPolicy: pacht.CrashHold,
		}
		if at != 0 {
			j.RunAt = time.Unix(at, 0)
		}
		refused := j.Validate(pacht.Limits{}, now)
		answers, err := store.Enqueue(ctx, []pacht.NewJob{j})
		if err != nil {
			t.Fatalf("%+v, which Validate finds %v: %v", j, refused, err)
		}
		var invalid *pacht.InvalidError
		switch a := answers[0]; {
		case errors.As(a.Err, &invalid):
			if refused == nil {
				t.Errorf("%+v: the store refuses what Validate does not: %v", j, a.Err)
			}
			return
		case refused != nil:
			t.Fatalf("%+v: the store takes what Validate refuses: %v", j, refused)
		case errors.Is(a.Err, pacht.ErrKeyConflict) && key != "":
			return // stored by an earlier input
		case a.Err != nil:
			t.Fatalf("%+v: %v", j, a.Err)
		}
		found, err := store.Job(ctx, answers[0].ID)
		if err != nil {
			t.Fatalf("%+v: %v", j, err)
		}
		if found.Kind != kind || string(found.Args) != args {
			t.Fatalf("stored %q with args %q, found %q, %q", kind, args, found.Kind, found.Args)
		}
		if answers[0].Duplicate {
			return
		}
		compareStored(t, j, found, now)
		settleStored(ctx, t, store, found.ID, failure, output)
	})
}

// compareStored looks at all that an enqueue says, but for what the database's own clock gives.
func compareStored(t *testing.T, j pacht.NewJob, found pacht.JobInfo, now time.Time) {
	t.Helper()
	queue := j.Queue
	if queue == "" {
		queue = pacht.DefaultQueue
	}
	ttl := j.TTL
	if ttl == 0 {
		ttl = pacht.DefaultTTL
	}
	if found.Queue != queue || string(found.Metadata) != string(j.Metadata) || found.TTL != ttl || found.CrashPolicy != j.CrashPolicy || found.Status != pacht.Pending {
		t.Errorf("stored %+v, found %+v", j, found)
	}
	// A time that is past means now.
	early, late := now.Add(-time.Millisecond), now.Add(10*time.Minute)
	if j.RunAt.After(late) {
		early, late = j.RunAt.Truncate(time.Millisecond), j.RunAt
	}
	if found.RunAt.Before(early) || found.RunAt.After(late) {
		t.Errorf("stored run_at %s at %s, found %s", j.RunAt, now, found.RunAt)
	}
}

// settleStored closes the job's lease with an error and an output, and reads them from the ledger.
func settleStored(ctx context.Context, t *testing.T, store pacht.Store, id pacht.ID, failure, output string) {
	t.Helper()
	job, ok, err := store.ClaimID(ctx, "fuzz", id)
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		return // not due yet
	}
	s := pacht.Settlement{Ref: job.Ref(), Outcome: pacht.OutcomeFailed, Permanent: true, Error: failure, Output: json.RawMessage(output)}
	settled, err := store.Settle(ctx, []pacht.Settlement{s})
	if err != nil || settled[0].Err != nil || settled[0].Status != pacht.Dead {
		t.Fatalf("settle %+v: %+v, %v", s, settled, err)
	}
	attempts, err := store.Attempts(ctx, id)
	if err != nil || len(attempts) != 1 {
		t.Fatalf("attempts of %d: %+v, %v", id, attempts, err)
	}
	if want := pacht.SafeText(failure, pacht.MaxErrorBytes); attempts[0].Error != want {
		t.Errorf("error %q was stored as %q, want %q", failure, attempts[0].Error, want)
	}
	if want := pacht.SafeJSON(json.RawMessage(output), pacht.Limits{}); string(attempts[0].Output) != string(want) {
		t.Errorf("output %q was stored as %q, want %q", output, attempts[0].Output, want)
	}
}
