package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// printJSON writes one document. What a terminal might obey is escaped, which JSON allows
// anywhere inside strings, and nowhere else can it occur.
func printJSON(cmd *cobra.Command, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("print as JSON: %w", err)
	}
	_, err := io.WriteString(cmd.OutOrStdout(), escape(b.String(), func(r rune) bool { return r == '\n' }))
	return err
}

// table is aligned text for people.
type table struct {
	w    *tabwriter.Writer
	rows int
}

func newTable(cmd *cobra.Command, header ...string) *table {
	t := &table{w: tabwriter.NewWriter(cmd.OutOrStdout(), 0, 8, 2, ' ', 0)}
	if len(header) > 0 {
		fmt.Fprintln(t.w, strings.Join(header, "\t"))
	}
	return t
}

func (t *table) row(cells ...any) {
	for i, c := range cells {
		if i > 0 {
			fmt.Fprint(t.w, "\t")
		}
		text := clean(fmt.Sprint(c))
		if text == "" {
			text = "-"
		}
		fmt.Fprint(t.w, text)
	}
	fmt.Fprintln(t.w)
	t.rows++
}

func (t *table) end() error { return t.w.Flush() }

// printf writes text whose arguments were cleaned, or are ours.
func printf(cmd *cobra.Command, format string, args ...any) {
	fmt.Fprintf(cmd.OutOrStdout(), format, args...)
}

// clean makes stored text safe for one line of a terminal: whatever is no printable
// character stands there escaped.
func clean(s string) string { return escape(s, func(rune) bool { return false }) }

// cleanLines is clean for text of several lines.
func cleanLines(s string) string {
	return escape(strings.ReplaceAll(s, "\r\n", "\n"), func(r rune) bool { return r == '\n' })
}

func escape(s string, keep func(rune) bool) string {
	safe := func(r rune) bool { return keep(r) || (unicode.IsPrint(r) && r != utf8.RuneError) }
	if strings.IndexFunc(s, func(r rune) bool { return !safe(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case safe(r):
			b.WriteRune(r)
		case r == utf8.RuneError:
			b.WriteRune('\uFFFD')
		case r > 0xFFFF:
			// As JSON spells it: a pair of surrogates.
			for _, half := range []rune{(r-0x10000)>>10 + 0xD800, (r-0x10000)&0x3FF + 0xDC00} {
				fmt.Fprintf(&b, `\u%04x`, half)
			}
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// indent puts each line of a text under a heading.
func indent(s, by string) string {
	return by + strings.ReplaceAll(strings.TrimRight(cleanLines(s), "\n"), "\n", "\n"+by)
}

// cut shortens a cell to some runes.
func cut(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	r := []rune(s)
	return string(r[:most-3]) + "..."
}

func plural(n int64, one, many string) string {
	word := many
	if n == 1 {
		word = one
	}
	return strconv.FormatInt(n, 10) + " " + word
}

// list makes a JSON array of what may be nil.
func list[T any](rows []T) []T {
	if rows == nil {
		return []T{}
	}
	return rows
}
