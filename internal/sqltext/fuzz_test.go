package sqltext

import (
	"strings"
	"testing"
)

// Stripping twice is stripping once, and takes nothing but comments and space.
func FuzzStrip(f *testing.F) {
	for _, s := range []string{"-- a\nSELECT 1;\n", "SELECT 1  -- one\n", "SELECT '--'", "a\n\n;", "  -- x", "x;  -- y\n", "x;;", "a  -- b\n;", "\r\n-- x\r\ny", "x ;  -- y;"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		got := Strip(sql)
		if again := Strip(got); strings.TrimRight(again, ";\n ") != strings.TrimRight(got, ";\n ") {
			t.Errorf("%q is stripped to %q, and that to %q", sql, got, again)
		}
		// What is left stands in the text, line by line and in order.
		rest := sql
		for line := range strings.Lines(got) {
			line = strings.TrimRight(line, "\n")
			_, after, found := strings.Cut(rest, line)
			if !found {
				t.Fatalf("%q is stripped to %q: where is %q from?", sql, got, line)
			}
			rest = after
		}
	})
}
