package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/pacht-queue/pacht"
)

// nasty holds what a terminal would obey or be confused by.
const nasty = "a\x1b[2Jb\x07c\u009b31md\u202ee\x7f\r\x00\tf\u2066g\xffh\U000E0001"

func TestCleanTextHoldsNothingThatATerminalObeys(t *testing.T) {
	for _, got := range []string{clean(nasty), cleanLines(nasty + "\nz")} {
		for _, r := range got {
			if !unicode.IsPrint(r) && r != '\n' {
				t.Errorf("%q still holds %U", got, r)
			}
		}
	}
	if got := clean("plain, ünïcode 日本\n"); got != `plain, ünïcode 日本\n` {
		t.Errorf("printable text became %q", got)
	}
}

func TestEscapedJSONMeansTheSame(t *testing.T) {
	raw, err := json.Marshal(strings.ToValidUTF8(nasty, "?"))
	if err != nil {
		t.Fatal(err)
	}
	var before, after string
	if err := json.Unmarshal(raw, &before); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(escape(string(raw), func(rune) bool { return false })), &after); err != nil {
		t.Fatal(err)
	}
	if before != after {
		t.Errorf("%q became %q", before, after)
	}
}

func TestStandardErrorIsKeptFromItsEnd(t *testing.T) {
	tl := &tail{most: 100}
	for range 1000 {
		if n, err := tl.Write([]byte("é-0123")); n != 7 || err != nil {
			t.Fatal(n, err)
		}
	}
	if _, err := tl.Write([]byte("the end\n")); err != nil {
		t.Fatal(err)
	}
	got := tl.text(60)
	if len(got) > 60 || !strings.HasPrefix(got, "[cut]... ") || !strings.HasSuffix(got, "the end") || !utf8.ValidString(got) {
		t.Errorf("%d bytes: %q", len(got), got)
	}
	if len(tl.kept) > 300 {
		t.Errorf("%d bytes are kept of a bound of 100", len(tl.kept))
	}
}

func TestStandardErrorIsStorableWhateverItHolds(t *testing.T) { // S072
	tl := &tail{most: 1000}
	if _, err := tl.Write([]byte(strings.Repeat("\x00\xffa", 400))); err != nil {
		t.Fatal(err)
	}
	got := tl.text(500)
	if len(got) > 500 || !utf8.ValidString(got) || strings.ContainsRune(got, 0) {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

func TestShortErrorIsKeptWhole(t *testing.T) {
	tl := &tail{most: 1000}
	if _, err := tl.Write([]byte("boom\n")); err != nil {
		t.Fatal(err)
	}
	if got := tl.text(500); got != "boom" {
		t.Errorf("%q", got)
	}
}

func TestOutputIsJSONIfItIsJSONElseAString(t *testing.T) { // S071, S073
	for in, want := range map[string]string{
		"":                            "",
		" \n":                         "",
		"{\"n\": 9007199254740993}\n": `{"n": 9007199254740993}`,
		"1e400":                       "1e400",
		"hello\nworld\n":              `"hello\nworld"`,
		`{"a":"\u0000"}`:              `"{\"a\":\"\\u0000\"}"`,
		"{\"a\":1}{\"b\":2}":          `"{\"a\":1}{\"b\":2}"`,
		"nul \x00 and \xff":           `"nul ` + "\uFFFD" + ` and ` + "\uFFFD" + `"`,
	} {
		h := &head{most: 1 << 20}
		if _, err := h.Write([]byte(in)); err != nil {
			t.Fatal(err)
		}
		if got := string(h.output()); got != want {
			t.Errorf("%q became %s, want %s", in, got, want)
		}
	}
}

func TestOutputThatIsTooLongIsCutAndSaysSo(t *testing.T) {
	h := &head{most: pacht.MaxArgsBytes}
	for range 3 {
		if _, err := h.Write([]byte(strings.Repeat("1", 600<<10))); err != nil {
			t.Fatal(err)
		}
	}
	out := h.output()
	if len(h.kept) != pacht.MaxArgsBytes || len(out) > pacht.MaxArgsBytes || !json.Valid(out) || !strings.Contains(string(out), "[cut]") {
		t.Errorf("%d bytes kept, output of %d bytes ends with %q", len(h.kept), len(out), out[max(0, len(out)-20):])
	}
}

func TestDurationsReadDaysAndWeeks(t *testing.T) {
	for in, want := range map[string]time.Duration{"30d": 30 * day, "1.5d": 36 * time.Hour, "2w": 14 * day, "90s": 90 * time.Second, "-1h": -time.Hour} {
		if got, err := parseDuration(in); err != nil || got != want {
			t.Errorf("%s: %s, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "d", "3", "1e300d", "NaNd", "infd", "3 days"} {
		if got, err := parseDuration(in); err == nil {
			t.Errorf("%q was read as %s", in, got)
		}
	}
}

func TestShortDurationsHaveAtMostTwoUnits(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 1500 * time.Microsecond: "2ms", 2500 * time.Millisecond: "2.5s", 59 * time.Second: "59s",
		61 * time.Second: "1m1s", time.Hour: "1h", 25 * time.Hour: "1d1h", 400 * day: "400d", -time.Minute: "-1m",
	} {
		if got := short(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

func TestOneStatementIsToldFromTwo(t *testing.T) {
	for sql, want := range map[string]bool{
		"UPDATE a SET b = 1 RETURNING c;":                   true,
		"WITH x AS (SELECT 1) UPDATE a SET b = 1":           true,
		"SELECT id FROM a LIMIT 1; UPDATE a SET b = 1":      false,
		"SELECT id FROM a WHERE status = 'Pending' LIMIT 1": false,
	} {
		if got := oneStatement(sql); got != want {
			t.Errorf("%s: %v", sql, got)
		}
	}
}

func TestLeaseVerdictsFollowTheFigures(t *testing.T) {
	for name, c := range map[string]struct {
		stats pacht.LeaseStats
		want  verdict
	}{
		"few":     {pacht.LeaseStats{Leases: 3, Max: time.Second, MinTTL: time.Minute}, unclear},
		"short":   {pacht.LeaseStats{Leases: 30, Max: time.Second, MinTTL: time.Minute}, good},
		"renewed": {pacht.LeaseStats{Leases: 30, Max: time.Hour, MinTTL: time.Minute, LongerThanTTL: 2, Renewed: 2}, good},
		"late":    {pacht.LeaseStats{Leases: 3, Max: time.Hour, MinTTL: time.Minute, LongerThanTTL: 1, Late: 1}, bad},
		"expire":  {pacht.LeaseStats{Leases: 30, Max: time.Hour, MinTTL: time.Minute, LongerThanTTL: 4, Expired: 4}, bad},
		"a crash": {pacht.LeaseStats{Leases: 300, Max: time.Hour, MinTTL: time.Minute, LongerThanTTL: 4, Expired: 4}, good},
	} {
		if got, _ := judgeTTL(c.stats); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
