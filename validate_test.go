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

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// refused asserts that err names the field and the bound.
func refused(t *testing.T, name string, err error, field, bound string) {
	t.Helper()
	var invalid *pacht.InvalidError
	switch {
	case !errors.As(err, &invalid):
		t.Errorf("%s: got %v, want an *InvalidError", name, err)
	case invalid.Field != field || !strings.Contains(invalid.Bound, bound):
		t.Errorf("%s: %v; want field %q, bound with %q", name, err, field, bound)
	case !strings.Contains(err.Error(), field) || !strings.Contains(err.Error(), bound):
		t.Errorf("%s: the text %q does not name field and bound", name, err)
	case len(err.Error()) > 400:
		t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
	}
}

func nested(n int) json.RawMessage {
	return json.RawMessage(strings.Repeat("[", n) + strings.Repeat("]", n))
}

// S030, S070, S071, S073, S075: every field of an enqueue, at and past its bounds.
func TestValidateAcceptsWhatIsWithinBounds(t *testing.T) {
	for name, change := range map[string]func(*pacht.NewJob){
		"as little as possible": func(*pacht.NewJob) {},
		"the longest names": func(j *pacht.NewJob) {
			j.Kind, j.Queue = strings.Repeat("k", 128), strings.Repeat("Q", 128)
		},
		"all signs of names":      func(j *pacht.NewJob) { j.Kind, j.Queue = "a_-.:/Z9", "9" },
		"1,000 levels":            func(j *pacht.NewJob) { j.Args = nested(1000) },
		"brackets inside strings": func(j *pacht.NewJob) { j.Args = json.RawMessage(`"` + strings.Repeat(`[\"`, 5000) + `"`) },
		"1 MiB": func(j *pacht.NewJob) {
			j.Args = json.RawMessage(`"` + strings.Repeat("x", 1<<20-2) + `"`)
		},
		"numbers of any size":     func(j *pacht.NewJob) { j.Args = json.RawMessage(`[3889108265204450030,9007199254740993,1e400,-0,0.1]`) },
		"null":                    func(j *pacht.NewJob) { j.Args = json.RawMessage("null") },
		"a surrogate pair":        func(j *pacht.NewJob) { j.Args = json.RawMessage(`"\ud83d\ude00"`) },
		"an escaped backslash":    func(j *pacht.NewJob) { j.Args = json.RawMessage(`"\\u0000 \\ud800"`) },
		"metadata":                func(j *pacht.NewJob) { j.Metadata = json.RawMessage(" {\"a\": 1}") },
		"first priority":          func(j *pacht.NewJob) { j.Priority = 1 },
		"last priority":           func(j *pacht.NewJob) { j.Priority = 4 },
		"one attempt":             func(j *pacht.NewJob) { j.MaxAttempts = 1 },
		"most attempts":           func(j *pacht.NewJob) { j.MaxAttempts = 30000 },
		"most crashes":            func(j *pacht.NewJob) { j.MaxCrashes = 1000 },
		"the shortest TTL":        func(j *pacht.NewJob) { j.TTL = 100 * time.Millisecond },
		"the longest TTL":         func(j *pacht.NewJob) { j.TTL = 24 * time.Hour },
		"hold":                    func(j *pacht.NewJob) { j.CrashPolicy = "hold" },
		"a past time":             func(j *pacht.NewJob) { j.RunAt = time.Unix(-1e10, 0) },
		"a past delay":            func(j *pacht.NewJob) { j.Delay = math.MinInt64 },
		"the horizon":             func(j *pacht.NewJob) { j.RunAt = now.Add(pacht.Horizon) },
		"the horizon, as a delay": func(j *pacht.NewJob) { j.Delay = pacht.Horizon },
		"the longest key": func(j *pacht.NewJob) {
			j.Key, j.Scope, j.KeyLife = strings.Repeat("ż", 256), strings.Repeat("s", 512), time.Second
		},
		"any text as a key": func(j *pacht.NewJob) { j.Key, j.KeyLife = " 💥\n'", pacht.MaxKeyLife },
	} {
		j := pacht.NewJob{Kind: "charge", Args: json.RawMessage("{}")}
		change(&j)
		if err := j.Validate(pacht.Limits{}, now); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestValidateRefusesEveryFieldPastItsBounds(t *testing.T) {
	const names, attempts, ttl = "1 to 128", "1 to 30000", "100ms to 24h"
	job := func(change func(*pacht.NewJob)) pacht.NewJob {
		j := pacht.NewJob{Kind: "charge", Args: json.RawMessage("{}")}
		change(&j)
		return j
	}
	args := func(s string) func(*pacht.NewJob) {
		return func(j *pacht.NewJob) { j.Args = json.RawMessage(s) }
	}
	for _, c := range []struct {
		name, field, bound string
		change             func(*pacht.NewJob)
	}{
		{"no kind", "kind", names, func(j *pacht.NewJob) { j.Kind = "" }},
		{"a long kind", "kind", names, func(j *pacht.NewJob) { j.Kind = strings.Repeat("k", 129) }},
		{"200,000 bytes of kind", "kind", names, func(j *pacht.NewJob) { j.Kind = strings.Repeat("k", 200_000) }},
		{"a sign first", "kind", names, func(j *pacht.NewJob) { j.Kind = "-k" }},
		{"a blank in a kind", "kind", names, func(j *pacht.NewJob) { j.Kind = "a b" }},
		{"NUL in a kind", "kind", names, func(j *pacht.NewJob) { j.Kind = "a\x00" }},
		{"letters beyond ASCII", "kind", names, func(j *pacht.NewJob) { j.Kind = "größe" }},
		{"a long queue", "queue", names, func(j *pacht.NewJob) { j.Queue = strings.Repeat("q", 129) }},
		{"markup in a queue", "queue", names, func(j *pacht.NewJob) { j.Queue = "<b>" }},
		{"no args", "args", "JSON", func(j *pacht.NewJob) { j.Args = nil }},
		{"no JSON", "args", "JSON", args("{")},
		{"two documents", "args", "JSON", args("{} {}")},
		{"a comment", "args", "JSON", args("{}//")},
		{"NaN", "args", "JSON", args("NaN")},
		{"a raw NUL", "args", "JSON", args("\"a\x00\"")},
		{"invalid UTF-8", "args", "UTF-8", args("\"\xff\"")},
		{"an escaped NUL", "args", "no NUL", args(`{"a":"x\u0000"}`)},
		{"an escaped NUL as a name", "args", "no NUL", args(`{"\u0000":1}`)},
		{"a lone high surrogate", "args", "surrogate", args(`"\ud83d"`)},
		{"a lone high surrogate and text", "args", "surrogate", args(`"\uD83Dabcdef"`)},
		{"a high surrogate and another", "args", "surrogate", args(`"\ud83d\ud83d"`)},
		{"a lone low surrogate", "args", "surrogate", args(`"\uDE00"`)},
		{"a pair the wrong way round", "args", "surrogate", args(`"\ude00\ud83d"`)},
		{"1,001 levels", "args", "1000 levels", args(string(nested(1001)))},
		{"1,001 levels of objects", "args", "1000 levels", args(strings.Repeat(`{"a":`, 1001) + "1" + strings.Repeat("}", 1001))},
		{"100,000 levels", "args", "1000 levels", args(string(nested(100_000)))},
		{"100,000 levels, never closed", "args", "1000 levels", args(strings.Repeat("[", 100_000))},
		{"1 MiB and a byte", "args", "1048576 bytes", args(`"` + strings.Repeat("x", 1<<20-1) + `"`)},
		{"50 MB flat", "args", "1048576 bytes", args("[" + strings.Repeat("1,", 25<<20) + "1]")},
		{"metadata that is no object", "metadata", "JSON object", func(j *pacht.NewJob) { j.Metadata = json.RawMessage("[1]") }},
		{"metadata that is no JSON", "metadata", "JSON", func(j *pacht.NewJob) { j.Metadata = json.RawMessage("{") }},
		{"metadata of blanks", "metadata", "JSON", func(j *pacht.NewJob) { j.Metadata = json.RawMessage("  ") }},
		{"metadata with a NUL", "metadata", "no NUL", func(j *pacht.NewJob) { j.Metadata = json.RawMessage(`{"a":"\u0000"}`) }},
		{"priority 5", "priority", "1 (first) to 4", func(j *pacht.NewJob) { j.Priority = 5 }},
		{"priority -1", "priority", "1 (first) to 4", func(j *pacht.NewJob) { j.Priority = -1 }},
		{"-1 attempts", "max_attempts", attempts, func(j *pacht.NewJob) { j.MaxAttempts = -1 }},
		{"30,001 attempts", "max_attempts", attempts, func(j *pacht.NewJob) { j.MaxAttempts = 30001 }},
		{"2^31 attempts", "max_attempts", attempts, func(j *pacht.NewJob) { j.MaxAttempts = 1 << 31 }},
		{"-1 crashes", "max_crashes", "1 to 1000", func(j *pacht.NewJob) { j.MaxCrashes = -1 }},
		{"1,001 crashes", "max_crashes", "1 to 1000", func(j *pacht.NewJob) { j.MaxCrashes = 1001 }},
		{"a short TTL", "ttl", ttl, func(j *pacht.NewJob) { j.TTL = 99 * time.Millisecond }},
		{"a long TTL", "ttl", ttl, func(j *pacht.NewJob) { j.TTL = 24*time.Hour + time.Millisecond }},
		{"a TTL in parts of a millisecond", "ttl", "whole milliseconds", func(j *pacht.NewJob) { j.TTL = time.Second + 1 }},
		{"a negative TTL", "ttl", ttl, func(j *pacht.NewJob) { j.TTL = -time.Second }},
		{"an unknown policy", "crash_policy", `"retry" or "hold"`, func(j *pacht.NewJob) { j.CrashPolicy = "Retry" }},
		{"beyond the horizon", "run_at", "10 years", func(j *pacht.NewJob) { j.RunAt = now.Add(pacht.Horizon + time.Hour) }},
		{"the year 9999", "run_at", "10 years", func(j *pacht.NewJob) { j.RunAt = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) }},
		{"a delay beyond the horizon", "delay", "10 years", func(j *pacht.NewJob) { j.Delay = math.MaxInt64 }},
		{"time and delay", "run_at", "not both", func(j *pacht.NewJob) { j.RunAt, j.Delay = now, time.Second }},
		{"a long key", "idempotency key", "512 bytes", func(j *pacht.NewJob) { j.Key = strings.Repeat("k", 513) }},
		{"200,000 bytes of key", "idempotency key", "512 bytes", func(j *pacht.NewJob) { j.Key = strings.Repeat("k", 200_000) }},
		{"a long key in runes", "idempotency key", "512 bytes", func(j *pacht.NewJob) { j.Key = strings.Repeat("ż", 257) }},
		{"NUL in a key", "idempotency key", "without NUL", func(j *pacht.NewJob) { j.Key = "a\x00" }},
		{"a key that is no UTF-8", "idempotency key", "UTF-8", func(j *pacht.NewJob) { j.Key = "\xff" }},
		{"a long scope", "key scope", "512 bytes", func(j *pacht.NewJob) { j.Key, j.Scope = "k", strings.Repeat("s", 513) }},
		{"NUL in a scope", "key scope", "without NUL", func(j *pacht.NewJob) { j.Key, j.Scope = "k", "\x00" }},
		{"a scope without a key", "idempotency key", "a key", func(j *pacht.NewJob) { j.Scope = "s" }},
		{"a life without a key", "idempotency key", "a key", func(j *pacht.NewJob) { j.KeyLife = time.Hour }},
		{"a short key life", "key life", "1s to 10 years", func(j *pacht.NewJob) { j.Key, j.KeyLife = "k", time.Millisecond }},
		{"a long key life", "key life", "1s to 10 years", func(j *pacht.NewJob) { j.Key, j.KeyLife = "k", pacht.MaxKeyLife+1 }},
	} {
		refused(t, c.name, job(c.change).Validate(pacht.Limits{}, now), c.field, c.bound)
	}
}

// The zero value of a field means "not said"; an option that says zero is wrong.
func TestOptionsRefuseAnExplicitZero(t *testing.T) {
	for _, c := range []struct {
		opt          pacht.Option
		field, bound string
	}{
		{pacht.Queue(""), "queue", "1 to 128"},
		{pacht.Priority(0), "priority", "1 (first) to 4"},
		{pacht.MaxAttempts(0), "max_attempts", "1 to 30000"},
		{pacht.MaxCrashes(0), "max_crashes", "1 to 1000"},
		{pacht.TTL(0), "ttl", "100ms to 24h"},
		{pacht.OnCrash(""), "crash_policy", "retry"},
		{pacht.IdempotencyKey(""), "idempotency key", "1 to 512 bytes"},
		{pacht.KeyLife(0), "key life", "1s to 10 years"},
		{pacht.Metadata(math.NaN()), "metadata", "encodes as JSON"},
		{pacht.Metadata([]int{1}), "metadata", "JSON object"},
	} {
		refused(t, c.field, pacht.New(charge{}, c.opt).Validate(pacht.Limits{}, now), c.field, c.bound)
	}
	refused(t, "args nil", pacht.New(nil).Validate(pacht.Limits{}, now), "args", "a kind")
	refused(t, "args that do not encode", pacht.New(charge{Amount: math.Inf(1)}).Validate(pacht.Limits{}, now), "args", "encodes as JSON")
}

type charge struct {
	Amount float64 `json:"amount"`
}

func (charge) Kind() string { return "charge" }
func (charge) EnqueueOptions() []pacht.Option {
	return []pacht.Option{pacht.MaxAttempts(10), pacht.OnCrash(pacht.CrashHold)}
}

// R6: the option of the enqueue, else the kind's own.
func TestOptionsOfTheEnqueueGoBeforeThoseOfTheKind(t *testing.T) {
	j := pacht.New(charge{Amount: 1.5}, pacht.MaxAttempts(3), pacht.TTL(time.Second), pacht.IdempotencyKey("k"))
	if got, want := fmt.Sprintf("%s %s %d %s %s %s", j.Kind, j.Args, j.MaxAttempts, j.CrashPolicy, j.TTL, j.Key), `charge {"amount":1.5} 3 hold 1s k`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestLimitsOfTheConfigurationCount(t *testing.T) {
	small := pacht.Limits{ArgsBytes: 10, JSONDepth: 2}
	for text, bound := range map[string]string{`"123456789"`: "10 bytes", "[[[]]]": "2 levels"} {
		refused(t, text, small.ValidJSON("args", json.RawMessage(text)), "args", bound)
	}
	if err := small.ValidJSON("args", json.RawMessage(`[["1234"]]`)); err != nil {
		t.Error(err)
	}
	large := pacht.Limits{ArgsBytes: 100 << 20, JSONDepth: 9_999}
	for name, doc := range map[string]json.RawMessage{"9,999 deep": nested(9_999), "50 MB": json.RawMessage("[" + strings.Repeat("1,", 25<<20) + "1]")} {
		if err := large.ValidJSON("args", doc); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	refused(t, "10,000 deep", large.ValidJSON("args", nested(10_000)), "args", "9999 levels")
}

// An error shows what was refused, but never args: they may hold what nobody should read.
func TestRefusalsDoNotShowArgs(t *testing.T) {
	j := pacht.NewJob{Kind: "charge", Args: json.RawMessage(`{"card":"4111111111111111"`)}
	if err := j.Validate(pacht.Limits{}, now); err == nil || strings.Contains(err.Error(), "4111") {
		t.Errorf("got %v", err)
	}
}

func TestRequestsAreRefusedPastTheirBounds(t *testing.T) {
	claim := func(change func(*pacht.ClaimRequest)) error {
		r := pacht.ClaimRequest{Owner: "w1", Queue: "q", Kinds: []string{"k"}, Limit: 1}
		change(&r)
		return r.Validate()
	}
	pass := func(change func(*pacht.ExpireRequest)) error {
		r := pacht.ExpireRequest{By: "w1", Limit: 1, Period: time.Second}
		change(&r)
		return r.Validate()
	}
	long := strings.Repeat("o", 257)
	for _, c := range []struct {
		field, bound string
		err          error
	}{
		{"owner", "256 bytes", claim(func(r *pacht.ClaimRequest) { r.Owner = "" })},
		{"owner", "256 bytes", claim(func(r *pacht.ClaimRequest) { r.Owner = long })},
		{"owner", "without NUL", claim(func(r *pacht.ClaimRequest) { r.Owner = "\x00" })},
		{"queue", "1 to 128", claim(func(r *pacht.ClaimRequest) { r.Queue = "" })},
		{"kinds", "at least one", claim(func(r *pacht.ClaimRequest) { r.Kinds = nil })},
		{"kind", "1 to 128", claim(func(r *pacht.ClaimRequest) { r.Kinds = []string{"k", ""} })},
		{"limit", "1 to 10000", claim(func(r *pacht.ClaimRequest) { r.Limit = 0 })},
		{"limit", "1 to 10000", claim(func(r *pacht.ClaimRequest) { r.Limit = 10001 })},
		{"owner", "256 bytes", pass(func(r *pacht.ExpireRequest) { r.By = "" })},
		{"limit", "1 to 10000", pass(func(r *pacht.ExpireRequest) { r.Limit = -1 })},
		{"watch period", "10ms to 1h", pass(func(r *pacht.ExpireRequest) { r.Period = time.Millisecond })},
		{"watch period", "10ms to 1h", pass(func(r *pacht.ExpireRequest) { r.Period = 2 * time.Hour })},
		{"by", "your name", pacht.Act{Reason: "r"}.Validate()},
		{"by", "256 bytes", pacht.Act{By: long, Reason: "r"}.Validate()},
		{"reason", "1 to 1000", pacht.Act{By: "b"}.Validate()},
		{"reason", "1 to 1000", pacht.Act{By: "b", Reason: strings.Repeat("r", 1001)}.Validate()},
		{"reason", "without NUL", pacht.Act{By: "b", Reason: "\x00"}.Validate()},
		{"resolution", "Completed or Dead", pacht.Resolution{Status: "Cancelled"}.Validate()},
		{"status", "never pruned", pacht.PruneRequest{Status: "Stuck", Limit: 1}.Validate()},
		{"older than", "0 or more", pacht.PruneRequest{Status: "Dead", OlderThan: -1, Limit: 1}.Validate()},
		{"limit", "1 to 10000", pacht.PruneRequest{Status: "Dead"}.Validate()},
		{"limit", "1 to 1000", (&pacht.Filter{Limit: 1001}).Validate()},
		{"status", "Pending, Processing", (&pacht.Filter{Status: "done"}).Validate()},
		{"outcome", "Completed, Failed", pacht.Settlement{Outcome: "Expired"}.Validate()},
		{"outcome", "Completed, Failed", pacht.Settlement{}.Validate()},
		{"delay", "365 days", pacht.Settlement{Outcome: "Failed", Delay: -1}.Validate()},
		{"delay", "365 days", pacht.Settlement{Outcome: "Failed", Delay: pacht.MaxDelay + 1}.Validate()},
		{"ttl", "100ms to 24h", pacht.QueueSettings{TTL: 1}.Validate("q")},
		{"queue", "1 to 128", pacht.QueueSettings{}.Validate("q q")},
	} {
		refused(t, c.field, c.err, c.field, c.bound)
	}
	good := errors.Join(claim(func(*pacht.ClaimRequest) {}), pass(func(*pacht.ExpireRequest) {}), pacht.Act{By: "b", Reason: "r"}.Validate(),
		pacht.Resolution{Status: "Dead"}.Validate(), pacht.PruneRequest{Status: "Dead", Limit: 1}.Validate(), pacht.QueueSettings{}.Validate("q"))
	if good != nil {
		t.Error(good)
	}
	f := pacht.Filter{}
	if err := f.Validate(); err != nil || f.Limit != 50 {
		t.Errorf("an empty filter: %v, limit %d", err, f.Limit)
	}
}

// R11: what makes content the same.
func TestFingerprintIsOfKindAndArgsByteForByte(t *testing.T) {
	of := func(kind, args string) string {
		return string(pacht.NewJob{Kind: kind, Args: json.RawMessage(args)}.Fingerprint())
	}
	if of("a", "{}") != string(pacht.NewJob{Kind: "a", Args: json.RawMessage("{}"), Queue: "q", Priority: 2, Key: "k"}.Fingerprint()) {
		t.Error("queue, priority or key count")
	}
	seen := map[string]string{}
	for _, c := range [][2]string{{"a", "{}"}, {"b", "{}"}, {"a", "{ }"}, {"a", `{"a":1}`}, {"a", `{"a":1.0}`}, {"ab", "1"}, {"a", "b1"}, {"", "1:a{}"}} {
		name := fmt.Sprint(c)
		if was, ok := seen[of(c[0], c[1])]; ok {
			t.Errorf("%s and %s have one fingerprint", was, name)
		}
		seen[of(c[0], c[1])] = name
	}
}
