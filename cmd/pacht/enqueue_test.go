package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
)

func TestArgsArriveByteForByteFromArgumentAndStandardInput(t *testing.T) { // S073
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shell) {
		const args = `{"id":9007199254740993,  "x":1e400,"s":"<&> \u00e9"}`
		first := s.enqueue("k", args, "--key", "one")
		r := s.feed(" "+args+"\n", "--json", "enqueue", "k", "-", "--key", "one")
		if r.code != exitOK || !strings.Contains(r.out, `"duplicate": true`) {
			t.Errorf("the same bytes on standard input are other content: %s%s", r.out, r.err)
		}
		if got := string(jobOf(t, s.store(), first).Args); got != args {
			t.Errorf("stored %s", got)
		}
		if out := s.ok("jobs", "show", first); !strings.Contains(out, args) {
			t.Errorf("shown as\n%s", out)
		}
	})
}

func TestKeyAnswersTheFirstJobAndRefusesOtherContent(t *testing.T) { // R11
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shell) {
		first := s.enqueue("k", `{"a":1}`, "--key", "p-1")
		if again := s.enqueue("k", `{"a":1}`, "--key", "p-1"); again != first {
			t.Errorf("job %s, then job %s", first, again)
		}
		s.refused(exitRefused, []string{"p-1", "job " + first}, "enqueue", "k", `{"a":2}`, "--key", "p-1")
		if other := s.enqueue("k", `{"a":2}`, "--key", "p-1", "--scope", "b"); other == first {
			t.Error("another scope answered the same job")
		}
	})
}

func TestEveryPropertyOfAJobCanBeGiven(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	id := s.enqueue("k", "--queue", "q", "--priority", "1", "--max-attempts", "4", "--max-crashes", "2", "--ttl", "2m",
		"--on-crash", "hold", "--in", "2d", "--metadata", `{"trace":"x"}`)
	j := jobOf(t, s.store(), id)
	if j.Queue != "q" || j.Priority != 1 || j.MaxAttempts != 4 || j.MaxCrashes != 2 || j.TTL != 2*time.Minute ||
		j.CrashPolicy != pacht.CrashHold || string(j.Metadata) != `{"trace":"x"}` || string(j.Args) != "{}" {
		t.Errorf("%+v", j)
	}
	if in := j.RunAt.Sub(j.CreatedAt); in != 2*day {
		t.Errorf("due in %s", in)
	}
	at := s.enqueue("k", "--at", "2001-02-03T04:05:06Z")
	if j := jobOf(t, s.store(), at); j.RunAt.After(j.CreatedAt) {
		t.Errorf("a past time is not now: due %s, enqueued %s", j.RunAt, j.CreatedAt)
	}
}

func TestBatchRefusesLinesOneByOne(t *testing.T) { // R12
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shell) {
		in := `{"kind":"k","args":{"n":9007199254740993},"queue":"q","priority":2,"ttl":"90s","in":"1h","key":"a"}
{"kind":"k","args":{"n":9007199254740993},"key":"a"}

{"kind":"k","args":{"n":1},"key":"a"}
{"kind":"k","priority":0}
{"kind":"k","prio":1}
{"kind":"k"} {"kind":"k"}
{"kind":"k","ttl":"soon"}
not json
{"kind":"last"}`
		r := s.feed(in, "--json", "enqueue", "--batch")
		var got batchResult
		decode(t, r.out, &got)
		if r.code != exitFailed || got.Stored != 2 || got.Duplicates != 1 || got.Refused != 6 {
			t.Errorf("exit code %d: %+v\n%s", r.code, got, r.err)
		}
		said := ""
		for _, e := range got.Errors {
			said += fmt.Sprintf("%d %s\n", e.Line, e.Error)
		}
		for _, want := range []string{"4 idempotency key", "5 priority: 0", `6 key of the line: "prio"`, "7 line: more than one", `8 ttl`, "9 line"} {
			if !strings.Contains(said, want) {
				t.Errorf("no %q in\n%s", want, said)
			}
		}
		jobs, err := s.store().Jobs(t.Context(), pacht.Filter{Queue: "q"})
		if err != nil || len(jobs) != 1 || jobs[0].Priority != 2 || jobs[0].TTL != 90*time.Second {
			t.Errorf("%+v, %v", jobs, err)
		}
	})
}

func TestBadLineIsRefusedInWordsOfTheLine(t *testing.T) {
	for in, want := range map[string]string{
		`{"kind":5}`:                            `kind: 5 is not allowed, want a string`,
		`{"kind":"k","priority":"high"}`:        `priority: "high" is not allowed, want a whole number`,
		`{"kind":"k","max_attempts":1.5}`:       `max_attempts: 1.5 is not allowed, want a whole number`,
		`{"kind":"k","ttl":{"a":1}}`:            `ttl: {"a":1} is not allowed, want a string`,
		`{"Kind":"k"}`:                          `key of the line: "Kind" is not allowed, want kind, args,`,
		`{"kind":"k","KEY":"a"}`:                `key of the line: "KEY" is not allowed`,
		`{"kind":"k","args":{},"args":{"a":1}}`: `key of the line: "args" twice is not allowed, want each key once`,
		`[{"kind":"k"}]`:                        `line: another value than an object is not allowed`,
		`5`:                                     `line: another value than an object`,
		`{"kind":"k"`:                           `no JSON (unexpected EOF)`,
		`{"kind" "k"}`:                          `no JSON (`,
		`{"kind":"k",}`:                         `no JSON (`,
		`{"kind":"k"}}`:                         `more than one document`,
	} {
		_, err := parseLine([]byte(in))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", in, err, want)
		}
		for _, ours := range []string{"main.", "Go ", "json:", "struct"} {
			if err != nil && strings.Contains(err.Error(), ours) {
				t.Errorf("%s: %v", in, err)
			}
		}
	}
	job, err := parseLine([]byte(`{"kind":"k","queue":null,"args":{"n": 9007199254740993,  "n":1e400}}`))
	if err != nil || job.Queue != "" || string(job.Args) != `{"n": 9007199254740993,  "n":1e400}` {
		t.Errorf("%+v, %v", job, err)
	}
	var l line
	for _, key := range lineKeys {
		if l.place(key) == nil {
			t.Errorf("%s has no place", key)
		}
	}
}

func TestBatchOfManyIsStoredWhole(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	var in strings.Builder
	for i := range 2500 {
		fmt.Fprintf(&in, `{"kind":"k","args":%d}`+"\n", i)
	}
	if r := s.feed(in.String(), "enqueue", "--batch"); r.code != exitOK || !strings.Contains(r.out, "2500 stored") {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
	}
}
