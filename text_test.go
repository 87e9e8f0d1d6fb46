package pacht_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pacht-queue/pacht"
)

// S071, S072: what cannot be stored as it is.
func TestSafeTextKeepsWhatIsStorableAndMendsTheRest(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		max  int
		want string
	}{
		"empty":                    {"", 10, ""},
		"as it is":                 {"zażółć 💥\n", 100, "zażółć 💥\n"},
		"exactly the bound":        {"0123456789", 10, "0123456789"},
		"one more":                 {"01234567890", 10, "0 ...[cut]"},
		"NUL":                      {"a\x00b", 100, "a\uFFFDb"},
		"invalid UTF-8":            {"a\xffb\xc3", 100, "a\uFFFDb\uFFFD"},
		"cut inside a rune":        {"ab💥💥💥💥", 14, "ab ...[cut]"},
		"cut at a rune's boundary": {"💥💥💥💥", 13, "💥 ...[cut]"},
		"longer once it is mended": {"\x00\x00\x00\x00\x00\x00", 15, "\uFFFD\uFFFD ...[cut]"},
		"no room for the marker":   {"0123456789", 5, ""},
		"no room at all":           {"x", 0, ""},
		"a surrogate":              {"\xed\xa0\x80", 100, "\uFFFD"},
		"what a database refuses":  {"it's; --", 100, "it's; --"},
	} {
		if got := pacht.SafeText(c.in, c.max); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func FuzzSafeText(f *testing.F) {
	for _, s := range []string{"", "a\x00", "\xff\xfe", "zażółć", strings.Repeat("💥", 40), strings.Repeat("\x00", 40)} {
		for _, most := range []int{0, 1, 9, 10, 64} {
			f.Add(s, most)
		}
	}
	f.Fuzz(func(t *testing.T, s string, most int) {
		if most < 0 || most > 1<<20 {
			return
		}
		got := pacht.SafeText(s, most)
		if len(got) > most || !utf8.ValidString(got) || strings.ContainsRune(got, 0) {
			t.Errorf("SafeText(%q, %d) = %q", s, most, got)
		}
		if utf8.ValidString(s) && !strings.ContainsRune(s, 0) && len(s) <= most && got != s {
			t.Errorf("SafeText(%q, %d) changed what was storable: %q", s, most, got)
		}
		if again := pacht.SafeText(got, most); again != got {
			t.Errorf("SafeText is not at rest: %q, then %q", got, again)
		}
	})
}

func TestSafeJSONKeepsADocumentAndQuotesTheRest(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"nothing":        {"", ""},
		"a document":     {` {"n": 9007199254740993, "x": 1e400}`, ` {"n": 9007199254740993, "x": 1e400}`},
		"plain text":     {"done", `"done"`},
		"broken":         {`{"a":`, `"{\"a\":"`},
		"NUL":            {"\x00", `"` + "\uFFFD" + `"`},
		"an escaped NUL": {`"\u0000"`, `"\"\\u0000\""`},
		"half a pair":    {`"\ud800"`, `"\"\\ud800\""`},
		"invalid UTF-8":  {"\"\xff\"", `"\"` + "\uFFFD" + `\""`},
	} {
		if got := string(pacht.SafeJSON(json.RawMessage(c.in), pacht.Limits{})); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	for name, in := range map[string]string{
		"20 MB of text":      strings.Repeat("ż", 10<<20),
		"20 MB of quotes":    strings.Repeat(`"`, 20<<20),
		"20 MB of NUL":       strings.Repeat("\x00", 20<<20),
		"20 MB of JSON":      "[" + strings.Repeat("1,", 10<<20) + "1]",
		"100,000 deep":       strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000),
		"control characters": strings.Repeat("\x01", 2<<20),
	} {
		got := pacht.SafeJSON(json.RawMessage(in), pacht.Limits{})
		if err := (pacht.Limits{}).ValidJSON("output", got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzSafeJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,2]}`, "\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01", `"\ud800\udc00"`, `"\udc00"`, "\xff", strings.Repeat("[", 9), strings.Repeat("\x01", 10)} {
		for _, size := range []int{2, 12, 60, 61, 66, 1000} {
			f.Add([]byte(s), size)
		}
	}
	f.Fuzz(func(t *testing.T, in []byte, size int) {
		if size < 2 || size > 1<<20 {
			return
		}
		limits := pacht.Limits{ArgsBytes: size, JSONDepth: 8}
		got := pacht.SafeJSON(in, limits)
		if len(in) == 0 {
			if got != nil {
				t.Errorf("made %q of nothing", got)
			}
			return
		}
		if err := limits.ValidJSON("output", got); err != nil {
			t.Errorf("SafeJSON(%q) = %q: %v", in, got, err)
		}
		if limits.ValidJSON("output", in) == nil && string(got) != string(in) {
			t.Errorf("SafeJSON(%q) changed a document: %q", in, got)
		}
	})
}
