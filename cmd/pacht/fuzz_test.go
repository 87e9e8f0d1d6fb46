package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/pacht-queue/pacht"
)

// told says whether an error names field and bound, and is short enough for a line.
func told(t *testing.T, err error) {
	t.Helper()
	var invalid *pacht.InvalidError
	if !errors.As(err, &invalid) || invalid.Field == "" || invalid.Bound == "" || len(err.Error()) > 1000 {
		t.Fatalf("%v: want an InvalidError with field and bound", err)
	}
}

// A duration of days or weeks is exactly what was written, and never wraps around.
func FuzzDuration(f *testing.F) {
	for _, s := range []string{"90s", "36h", "30d", "2w", "0.7d", "1.1w", "-1d", "-99999w", "99999w", "1e3d", "0x10d", "infd", "NaNw", "d", "w", ".5d", "1.d", "1_0d", "1h30m", "-", "106751d", "106752d", "9223372036854775807ns", "1d2w", " 1d", "1/2d", "1D", "0.0000000000000001d", "+3d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := parseDuration(s)
		if err != nil {
			told(t, err)
			return
		}
		unit := time.Duration(0)
		switch s[len(s)-1] {
		case 'd':
			unit = day
		case 'w':
			unit = 7 * day
		default:
			if want, err := time.ParseDuration(s); err != nil || want != d {
				t.Errorf("%q was read as %s, want %s, %v", s, d, want, err)
			}
			return
		}
		number, ok := new(big.Rat).SetString(s[:len(s)-1])
		if !ok || strings.Trim(s[:len(s)-1], "+-.0123456789") != "" {
			t.Fatalf("%q was read as %s", s, d)
		}
		want := number.Mul(number, new(big.Rat).SetInt64(int64(unit)))
		off := new(big.Rat).Sub(want, new(big.Rat).SetInt64(int64(d)))
		if off.Abs(off).Cmp(big.NewRat(1, 1)) >= 0 || want.IsInt() && off.Sign() != 0 {
			t.Errorf("%q was read as %s, %d ns, want %s ns", s, d, int64(d), want.FloatString(1))
		}
	})
}

// A time is one moment, with its zone, and is written again as it was read.
func FuzzAt(f *testing.F) {
	for _, s := range []string{"2026-01-02T15:04:05Z", "2026-01-02T15:04:05+01:00", "2026-01-02T15:04:05.123456789-23:59", "2026-01-02T15:04:05,5Z", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-02-30T00:00:00Z", "2026-01-02 15:04:05", "2026-01-02T3:04:05Z", "", "now", "2016-12-31T23:59:60Z"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		at, err := parseAt(s)
		if err != nil {
			told(t, err)
			return
		}
		if s == "" {
			return
		}
		again, err := parseAt(at.Format(time.RFC3339Nano))
		if err != nil || !again.Equal(at) {
			t.Errorf("%q is %s, and that is %s, %v", s, at.Format(time.RFC3339Nano), again, err)
		}
	})
}

// A line is stored as it stands or refused: no key that merely looks the same, no string that was
// mended, no args that were written anew (R11 compares keys and args byte for byte).
func FuzzEnqueueLine(f *testing.F) {
	for _, s := range []string{
		`{"kind":"k"}`, `{"kind":"k","args":{"n":9007199254740993},"key":"a","scope":"b","key_life":"30d","ttl":"90s","priority":1,"max_attempts":3,"max_crashes":2,"on_crash":"hold","queue":"q","in":"2h","metadata":{"a":1}}`,
		`{"kind":"k","kind":"l"}`, `{"Kind":"k"}`, `{"kind":"k","at":"2026-01-02T15:04:05Z"}`, `{"kind":"k","args":null}`, `{"kind":null}`, `{"kind":"k","priority":1.5}`, `{"kind":"k","priority":"1"}`,
		"{\"kind\":\"k\",\"key\":\"\xff\"}", `{"kind":"k","key":"\ud800"}`, `{"kind":"k","key":"\ud83d\ude00"}`, `{"kind":"k","key":"` + "\uFFFD" + `"}`, `{"kind":"k","args":[1, 2 ,3 ]}`, `{"kind":"k"} {}`, `[]`, `{`, ``, `{"kind":"k","ttl":5}`,
		`{"kind":"k","key":null}`, `{"kind":"k","in":"-1s"}`, `{"\u006bind":"k"}`, `{"kind":"k","max_attempts":0}`, `{"kind":"k","args":"` + "\xed\xa0\x80" + `"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		job, err := parseLine(raw)
		if err == nil {
			err = job.Validate(pacht.Limits{}, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		}
		if err != nil {
			told(t, err)
			return
		}
		if !utf8.Valid(raw) {
			t.Fatalf("%q is no text and was read as %+v", raw, job)
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(raw, &fields); err != nil {
			t.Fatalf("%q was read as %+v: %v", raw, job, err)
		}
		if args, given := fields["args"]; given && !bytes.Equal(job.Args, args) {
			t.Errorf("args %s of %q became %s", args, raw, job.Args)
		}
		if metadata, given := fields["metadata"]; given && !bytes.Equal(job.Metadata, metadata) {
			t.Errorf("metadata %s of %q became %s", metadata, raw, job.Metadata)
		}
		for name, got := range map[string]string{"kind": job.Kind, "queue": job.Queue, "key": job.Key, "scope": job.Scope, "on_crash": string(job.CrashPolicy)} {
			said, given := fields[name]
			if !given || string(said) == "null" {
				if got != "" {
					t.Errorf("%s %q came from nowhere: %q", name, got, raw)
				}
				continue
			}
			var want string
			if err := json.Unmarshal(said, &want); err != nil || want != got {
				t.Errorf("%s %s of %q became %q", name, said, raw, got)
			}
			// An escape of half a pair is the only other way to get one.
			if strings.Count(got, "\uFFFD") > bytes.Count(said, []byte("\uFFFD"))+bytes.Count(bytes.ToLower(said), []byte(`\ufffd`)) {
				t.Errorf("%s %s was mended to %q", name, said, got)
			}
		}
	})
}

// Whatever is stored, a terminal gets nothing that it might obey, and JSON says the same.
func FuzzOutput(f *testing.F) {
	for _, s := range []string{"plain", "\x1b[31m", "a\tb\nc\r\nd", "\u202e", "\xff", "💥\U000e0001", "\u2028", `\u0000`, "\x00", "<&>", "\uFFFD"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for kind, out := range map[string]string{"clean": clean(s), "cleanLines": strings.ReplaceAll(cleanLines(s), "\n", "")} {
			if !utf8.ValidString(out) || strings.ContainsFunc(out, func(r rune) bool { return !unicode.IsPrint(r) && r != utf8.RuneError }) {
				t.Errorf("%s(%q) = %q", kind, s, out)
			}
		}
		if again := clean(clean(s)); again != clean(s) {
			t.Errorf("%q is cleaned to %q, and that to %q", s, clean(s), again)
		}
		var out bytes.Buffer
		cmd := &cobra.Command{}
		cmd.SetOut(&out)
		if err := printJSON(cmd, map[string]string{"s": s}); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsFunc(out.String(), func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' && r != utf8.RuneError }) {
			t.Errorf("%q is printed as %q", s, out.String())
		}
		var back map[string]string
		if err := json.Unmarshal(out.Bytes(), &back); err != nil || back["s"] != strings.ToValidUTF8(s, "\uFFFD") && utf8.ValidString(s) {
			t.Errorf("%q is printed as %q, and read as %q, %v", s, out.String(), back["s"], err)
		}
	})
}

// --queue, --token and ARGS.
func FuzzFlags(f *testing.F) {
	for _, s := range []string{"q=5", "q", "q=", "q=+5", "q=-1", "=1", "q=1=2", "5", "+5", "-0", "007", "1_0", "0x1", "99999999999999999999", " 5", "", "{}", " {} ", "-", "\u00a0{}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		digits := func(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
		queues, err := parseQueues([]string{s})
		if err != nil {
			told(t, err)
		} else if name, number, given := strings.Cut(s, "="); len(queues) != 1 || !given && queues[name] != 1 || given && !digits(strings.TrimPrefix(number, "-")) {
			t.Errorf("--queue %q was read as %v", s, queues)
		}
		if s != "" {
			ref, _, err := fence(t.Context(), nil, 7, s)
			if err != nil {
				told(t, err)
			} else if !digits(s) || ref.Job != 7 || strings.TrimLeft(s, "0") != strings.TrimLeft(ref.Token.String(), "0") {
				t.Errorf("--token %q was read as %s", s, ref)
			}
		}
		given := s
		if s == "-" {
			given = "{}"
		}
		raw, err := argument(io.LimitReader(strings.NewReader(given), 1<<20), s)
		if err != nil || string(raw) != strings.TrimSpace(given) {
			t.Errorf("ARGS %q became %q, %v", s, raw, err)
		}
	})
}
