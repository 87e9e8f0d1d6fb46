package pacht_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
)

// S074: JavaScript's numbers end at 2^53, so ids and tokens are strings in JSON.
func TestIDsAndTokensAreStringsInJSON(t *testing.T) {
	ref := pacht.Ref{Job: math.MaxInt64, Token: 9007199254740993}
	out, err := json.Marshal(ref)
	if err != nil || string(out) != `{"job":"9223372036854775807","token":"9007199254740993"}` {
		t.Fatalf("%s, %v", out, err)
	}
	for _, in := range []string{string(out), `{"job":9223372036854775807,"token":9007199254740993}`} {
		var back pacht.Ref
		if err := json.Unmarshal([]byte(in), &back); err != nil || back != ref {
			t.Errorf("%s: %v, %v", in, back, err)
		}
	}
	for _, in := range []string{`"9223372036854775808"`, `1.5`, `1e3`, `"abc"`, `""`, `true`, `{}`, `[1]`, `" 1"`} {
		var id pacht.ID
		var token pacht.Token
		if err := json.Unmarshal([]byte(in), &id); err == nil {
			t.Errorf("job id %s was read as %d", in, id)
		}
		if err := json.Unmarshal([]byte(in), &token); err == nil {
			t.Errorf("token %s was read as %d", in, token)
		}
	}
}

func TestParseIDTakesDigitsGreaterThanZero(t *testing.T) {
	if id, err := pacht.ParseID("9223372036854775807"); err != nil || id != math.MaxInt64 {
		t.Errorf("%d, %v", id, err)
	}
	for _, s := range []string{"", "0", "-1", "+1", "1.0", "0x10", "1_000", " 1", "9223372036854775808", strings.Repeat("9", 1000)} {
		_, err := pacht.ParseID(s)
		refused(t, s, err, "job id", "greater than zero")
	}
}

func TestErrorsSayWhatAReaderNeeds(t *testing.T) {
	ref := pacht.Ref{Job: 7, Token: 2}
	until := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		err  error
		is   error
		want string
	}{
		{&pacht.LeaseLostError{Ref: ref}, pacht.ErrLeaseLost, "lease lost: job 7, token 2: the job is gone"},
		{&pacht.LeaseLostError{Ref: ref, Status: "Completed", Token: 2, Outcome: "Completed"}, pacht.ErrLeaseLost,
			"lease lost: job 7, token 2 was closed as Completed; the job is Completed"},
		{&pacht.LeaseLostError{Ref: ref, Status: "Processing", Token: 3, Owner: "b", Until: until, Outcome: "Expired"}, pacht.ErrLeaseLost,
			"lease lost: job 7, token 2 was closed as Expired; the job is Processing, held by b with token 3 until 2026-01-02T03:04:05Z"},
		{&pacht.KeyConflictError{Key: `a"b`, Job: 7}, pacht.ErrKeyConflict, `idempotency key "a\"b" already stands for job 7 with another kind or other args`},
		{&pacht.StatusError{Job: 7, Status: "Completed", Act: "retry", Allow: "it is done"}, pacht.ErrWrongStatus, "cannot retry job 7: it is Completed; it is done"},
		{&pacht.SchemaError{Wanted: 2}, pacht.ErrSchema, `schema: no tables of pacht in this database: run "pacht migrate up"`},
		{&pacht.SchemaError{Found: 1, Wanted: 2}, pacht.ErrSchema, `schema: the database has version 1, this program needs 2: run "pacht migrate up"`},
		{&pacht.SchemaError{Found: 3, Wanted: 2}, pacht.ErrSchema, "schema: the database has version 3, this program knows only up to 2: use a newer program"},
		{&pacht.SchemaError{Detail: "odd"}, pacht.ErrSchema, "schema: odd"},
	} {
		if c.err.Error() != c.want || !errors.Is(fmt.Errorf("settle: %w", c.err), c.is) {
			t.Errorf("got  %s\nwant %s", c.err, c.want)
		}
	}
}

func TestAWorkerMissedItsBeatAfterThreePeriods(t *testing.T) {
	w := pacht.WorkerInfo{BeatAt: now, BeatEvery: time.Second}
	for after, want := range map[time.Duration]bool{0: false, 3 * time.Second: false, 3*time.Second + 1: true} {
		if got := w.Missed(now.Add(after)); got != want {
			t.Errorf("after %s: %v", after, got)
		}
	}
	w.StoppedAt = now
	if w.Missed(now.Add(time.Hour)) {
		t.Error("one that ended in order")
	}
}

func TestWhyNotRunningNamesTheReason(t *testing.T) {
	worker := func(queue, kind string, beat time.Time) pacht.WorkerInfo {
		return pacht.WorkerInfo{Queues: []string{queue}, Kinds: []string{kind}, BeatEvery: time.Second, BeatAt: beat}
	}
	due := pacht.JobInfo{Status: "Pending", Queue: "q", Kind: "k", RunAt: now.Add(-time.Minute)}
	with := func(change func(*pacht.JobInfo)) pacht.JobInfo {
		j := due
		change(&j)
		return j
	}
	stopped := worker("q", "k", now)
	stopped.StoppedAt = now
	for _, c := range []struct {
		name    string
		job     pacht.JobInfo
		workers []pacht.WorkerInfo
		want    string
	}{
		{"done", with(func(j *pacht.JobInfo) { j.Status, j.FinishedAt = "Dead", now }), nil, "finished: Dead since 2026-01-02T03:04:05Z"},
		{"parked", with(func(j *pacht.JobInfo) { j.Status = "Stuck" }), nil, "parked"},
		{"held", with(func(j *pacht.JobInfo) {
			j.Status, j.LeaseOwner, j.LeaseUntil = "Processing", "w7", now.Add(time.Minute)
		}), nil,
			"held by w7 until 2026-01-02T03:05:05Z (in 1m0s)"},
		{"expired", with(func(j *pacht.JobInfo) {
			j.Status, j.LeaseOwner, j.LeaseUntil = "Processing", "w7", now.Add(-time.Minute)
		}), nil,
			"held by w7, ended 2026-01-02T03:03:05Z (1m0s ago)"},
		{"for later", with(func(j *pacht.JobInfo) { j.RunAt = now.Add(time.Hour) }), nil, "waits for its time, 2026-01-02T04:04:05Z (in 1h0m0s)"},
		{"in backoff", with(func(j *pacht.JobInfo) { j.RunAt, j.Attempt = now.Add(time.Hour), 2 }), nil, "waits for its next attempt"},
		{"nobody", due, nil, `no running worker serves queue "q"`},
		{"other queue", due, []pacht.WorkerInfo{worker("other", "k", now)}, `no running worker serves queue "q"`},
		{"silent worker", due, []pacht.WorkerInfo{worker("q", "k", now.Add(-time.Hour))}, `no running worker serves queue "q"`},
		{"stopped worker", due, []pacht.WorkerInfo{stopped}, `no running worker serves queue "q"`},
		// S083: a kind that no program knows.
		{"other kinds", due, []pacht.WorkerInfo{worker("q", "x", now), worker("q", "y", now)}, `no running worker handles kind "k" (2 handle other kinds of queue "q")`},
		{"busy", due, []pacht.WorkerInfo{worker("q", "x", now), worker("q", "k", now)}, "due since 2026-01-02T03:03:05Z (1m0s ago); workers are busy"},
	} {
		if got := pacht.WhyNotRunning(c.job, c.workers, now); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q in it", c.name, got, c.want)
		}
	}
}
