package pacht_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pacht-queue/pacht"
)

// bounded says whether an error is one that a person can act on: it names the field and what is
// allowed, fits on a line, and shows neither control characters nor half a rune of what was refused.
func bounded(t *testing.T, err error) {
	t.Helper()
	var invalid *pacht.InvalidError
	if !errors.As(err, &invalid) || invalid.Field == "" || invalid.Bound == "" {
		t.Fatalf("%v: want an InvalidError with field and bound", err)
	}
	text := err.Error()
	if len(text) > 400 || !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' }) {
		t.Fatalf("an error of %d bytes, or with what no line shows: %q", len(text), text)
	}
}

// S075: an id is read as it is written, and nothing else is one.
func FuzzParseID(f *testing.F) {
	for _, s := range []string{"1", "0", "-1", "+1", "007", "9223372036854775807", "9223372036854775808", "1_000", "0x10", " 1", "1 ", "٣", "", "1\x00", strings.Repeat("9", 60)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := pacht.ParseID(s)
		if err != nil {
			bounded(t, err)
			if id != 0 {
				t.Errorf("%q is refused and %d", s, id)
			}
			return
		}
		if id <= 0 || strings.TrimLeft(s, "0") != id.String() {
			t.Errorf("%q was read as %d", s, id)
		}
		if again, err := pacht.ParseID(id.String()); again != id || err != nil {
			t.Errorf("%d is written %s and read as %d, %v", id, id, again, err)
		}
	})
}

// S075: ids and tokens keep all their digits in JSON, as a string or as an integer, and nothing
// that merely looks like one is taken.
func FuzzIDJSON(f *testing.F) {
	for _, s := range []string{`"1"`, `1`, `-1`, `"-1"`, `"+1"`, `9007199254740993`, `"9223372036854775807"`, `1.0`, `1e3`, `null`, `""`, `"`, `"1`, `"\u0031"`, `[1]`, ` "1" `, `"007"`, `"1_0"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var id pacht.ID
		var token pacht.Token
		idErr, tokenErr := json.Unmarshal(raw, &id), json.Unmarshal(raw, &token)
		if (idErr == nil) != (tokenErr == nil) || int64(id) != int64(token) {
			t.Fatalf("%q is an id %d (%v) and a token %d (%v)", raw, id, idErr, token, tokenErr)
		}
		if idErr != nil {
			if id != 0 {
				t.Errorf("%q is refused and %d", raw, id)
			}
			return
		}
		// What encoding/json itself says of the same text.
		var n int64
		text := bytes.Trim(raw, " \t\r\n")
		if quoted := text[0] == '"'; quoted {
			text = text[1 : len(text)-1]
		}
		if err := json.Unmarshal(text, &n); err != nil || n != int64(id) || strconv.FormatInt(n, 10) != string(text) {
			t.Errorf("%q was read as %d: %d, %v", raw, id, n, err)
		}
		written, err := json.Marshal(id)
		var again pacht.ID
		if err != nil || json.Unmarshal(written, &again) != nil || again != id {
			t.Errorf("%d is written %s and read as %d, %v", id, written, again, err)
		}
	})
}

func FuzzValidName(f *testing.F) {
	for _, s := range []string{"charge", "a", "", "-a", "a-", "a b", "a/b:c.d_e-f", "ä", "a\x00", "a\n", strings.Repeat("x", 128), strings.Repeat("x", 129)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		const first = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
		want := s != "" && len(s) <= 128 && strings.IndexByte(first, s[0]) >= 0 && strings.Trim(s, first+"_-.:/") == ""
		err := pacht.ValidName("kind", s)
		if (err == nil) != want {
			t.Errorf("%q: %v", s, err)
		}
		if err != nil {
			bounded(t, err)
		}
	})
}

// S073: ValidJSON takes what encoding/json takes, and of that only what a database's functions
// can read too. The judge here decodes; the product only scans.
func FuzzValidJSON(f *testing.F) {
	for _, s := range []string{
		`{}`, `null`, `{"a":[1,2,{"b":"\u0041\\\""}]}`, `"\u0000"`, `"\\u0000"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ude00"`, `"\ud83d\ud83d\ude00"`, `"\ud83dx"`,
		`[[[[]]]]`, `[[[[[]]]]]`, `"[[[[[["`, "\ufeff{}", "\"\xff\"", "\"\x01\"", `1e999`, `{"a":1}{}`, ` [ ] `, `"\uD83D\`, `"\u00`, ``, `"\"`, `"\\\u0000"`,
	} {
		f.Add([]byte(s))
	}
	limits := pacht.Limits{ArgsBytes: 1000, JSONDepth: 4}
	f.Fuzz(func(t *testing.T, raw []byte) {
		err := limits.ValidJSON("args", raw)
		want := len(raw) > 0 && len(raw) <= 1000 && utf8.Valid(raw) && json.Valid(raw) && storableJSON(t, raw, 4)
		if (err == nil) != want {
			t.Errorf("%q: %v, want it accepted: %v", raw, err, want)
		}
		if err != nil {
			bounded(t, err)
		}
	})
}

// storableJSON looks at the decoded document: how deep it is, and whether a string in it holds
// what no database can. A lone surrogate is decoded as U+FFFD, so one that was not written as such
// betrays it.
func storableJSON(t *testing.T, raw []byte, depth int) bool {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	level, replaced := 0, 0
	for {
		token, err := dec.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%q: %v", raw, err)
		}
		switch v := token.(type) {
		case json.Delim:
			if v == '{' || v == '[' {
				level++
			} else {
				level--
			}
			if level > depth {
				return false
			}
		case string:
			if strings.ContainsRune(v, 0) {
				return false
			}
			replaced += strings.Count(v, "\uFFFD")
		}
	}
	said := bytes.Count(raw, []byte("\uFFFD"))
	// Escapes that spell U+FFFD itself; a backslash that is escaped begins none.
	for rest := raw; len(rest) > 0; {
		i := bytes.IndexByte(rest, '\\')
		if i < 0 {
			break
		}
		if rest[i+1] == 'u' && strings.EqualFold(string(rest[i+2:i+6]), "fffd") {
			said++
		}
		rest = rest[i+2:]
	}
	return replaced == said
}

// What an enqueue refuses it explains, and what it accepts is within every bound.
func FuzzNewJob(f *testing.F) {
	f.Add("charge", "default", "k", "", "{}", "", int64(0), int64(0), int64(0), int64(0), 0, 0, 0)
	f.Add("charge", "q", "", "s", "[]", "[]", int64(1), int64(1), int64(1), int64(1), 5, -1, 1001)
	f.Add("charge", "q", "k\x00", "s\xff", "", "{}", int64(time.Minute), int64(time.Hour), int64(-1), int64(-1), 4, 30000, 1000)
	f.Add("k", "", strings.Repeat("k", 513), "", " {} ", " {} ", int64(24*time.Hour+1), int64(1<<62), int64(-1<<62), int64(1<<62), 1, 1, 1)
	f.Fuzz(func(t *testing.T, kind, queue, key, scope, args, metadata string, ttl, life, delay, at int64, priority, attempts, crashes int) {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		j := pacht.NewJob{
			Kind: kind, Queue: queue, Key: key, Scope: scope, Args: json.RawMessage(args), Metadata: json.RawMessage(metadata),
			TTL: time.Duration(ttl), KeyLife: time.Duration(life), Delay: time.Duration(delay), Priority: priority, MaxAttempts: attempts, MaxCrashes: crashes,
		}
		if at != 0 {
			j.RunAt = time.Unix(at, 0)
		}
		if err := j.Validate(pacht.Limits{}, now); err != nil {
			bounded(t, err)
			return
		}
		within := func(field string, n, low, high int64) {
			if n != 0 && (n < low || n > high) {
				t.Errorf("%s %d was accepted", field, n)
			}
		}
		within("ttl", ttl, int64(pacht.MinTTL), int64(pacht.MaxTTL))
		within("key life", life, int64(time.Second), int64(pacht.MaxKeyLife))
		within("priority", int64(priority), 1, 4)
		within("attempts", int64(attempts), 1, pacht.MaxMaxAttempts)
		within("crashes", int64(crashes), 1, pacht.MaxMaxCrashes)
		within("key", int64(len(key)), 1, pacht.MaxKeyBytes)
		within("scope", int64(len(scope)), 0, pacht.MaxKeyBytes)
		if j.Delay > pacht.Horizon || j.RunAt.After(now.Add(pacht.Horizon)) || delay != 0 && at != 0 {
			t.Errorf("delay %s and run_at %s were accepted", j.Delay, j.RunAt)
		}
		for field, s := range map[string]string{"kind": kind, "queue": queue, "key": key, "scope": scope, "args": args, "metadata": metadata} {
			if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
				t.Errorf("%s %q was accepted", field, s)
			}
		}
		var object map[string]json.RawMessage
		if metadata != "" && (json.Unmarshal([]byte(metadata), &object) != nil || object == nil) {
			t.Errorf("metadata %q was accepted", metadata)
		}
	})
}

// A filter reaches the database: what one of them cannot spell is refused for both.
func FuzzFilters(f *testing.F) {
	f.Add("Pending", "k", "q", "w1", "r", "c", int64(0), 50)
	f.Add("pending", "k k", "q\x00", "w\xff", "r\x00", "c\xff", int64(-1), 1001)
	f.Add("", "", "", "", "", "", int64(1<<62), -1)
	f.Add("", "k k", "", "", "", "", int64(0), 1)
	f.Add("", "", "q\x00", "", "", "", int64(0), 1)
	f.Add("", "", "", "w\xff", "", "", int64(-1), 1)
	f.Fuzz(func(t *testing.T, status, kind, queue, owner, reference, class string, before int64, limit int) {
		jobs := pacht.Filter{Status: pacht.Status(status), Kind: kind, Queue: queue, Owner: owner, Before: pacht.ID(before), Limit: limit}
		breaks := pacht.BreakFilter{Status: pacht.BreakStatus(status), Class: class, Reference: reference, After: pacht.BreakCursor{Reference: reference, Class: class}, Limit: limit}
		for _, c := range []struct {
			err   error
			limit int
			texts []string
		}{
			{jobs.Validate(), jobs.Limit, []string{kind, queue, owner}},
			{breaks.Validate(), breaks.Limit, []string{reference, class}},
		} {
			if c.err != nil {
				bounded(t, c.err)
				continue
			}
			if c.limit < 1 || c.limit > 1000 {
				t.Errorf("limit %d was accepted", c.limit)
			}
			if before < 0 && c.texts[0] == kind && len(c.texts) == 3 {
				t.Errorf("before %d was accepted", before)
			}
			for _, s := range c.texts {
				if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
					t.Errorf("%q was accepted", s)
				}
			}
		}
		again := jobs
		if err := again.Validate(); jobs.Validate() == nil && (err != nil || again != jobs) {
			t.Errorf("%+v became %+v, %v", jobs, again, err)
		}
	})
}
