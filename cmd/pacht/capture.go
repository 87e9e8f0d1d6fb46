package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/pacht-queue/pacht"
)

// head keeps the first bytes that are written, and knows whether there were more.
type head struct {
	most int
	kept []byte
	more bool
}

func (h *head) Write(p []byte) (int, error) {
	room := h.most - len(h.kept)
	h.more = h.more || len(p) > room
	h.kept = append(h.kept, p[:min(len(p), room)]...)
	return len(p), nil
}

// output is what is stored of a command's standard output: JSON as JSON, with its digits;
// else a string; nil if it was empty.
func (h *head) output() json.RawMessage {
	text := bytes.TrimSpace(h.kept)
	if len(text) == 0 {
		return nil
	}
	if h.more {
		// Cut JSON is no JSON. The marker of the cut comes from making it storable.
		text = append(bytes.Clone(h.kept), ' ')
	}
	return pacht.SafeJSON(text, pacht.Limits{})
}

// tail keeps the last bytes that are written.
type tail struct {
	most int
	kept []byte
	cut  bool
}

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - t.most; over > 0 {
		// Moved in big steps, so that many small writes stay cheap.
		if over >= t.most || len(p) >= t.most {
			t.kept = append(t.kept[:0], t.kept[over:]...)
		}
		t.cut = true
	}
	return len(p), nil
}

// text is what is stored of a command's standard error: its end, made storable, at most
// bytes long.
func (t *tail) text(most int) string {
	kept, wasCut := t.kept, t.cut
	if over := len(kept) - t.most; over > 0 {
		kept = kept[over:]
	}
	s := strings.ToValidUTF8(string(kept), "\uFFFD")
	s = strings.TrimSpace(strings.ReplaceAll(s, "\x00", "\uFFFD"))
	const marker = "[cut]... "
	if len(s) > most-len(marker) {
		s, wasCut = s[len(s)-(most-len(marker)):], true
		for len(s) > 0 && !utf8.RuneStart(s[0]) {
			s = s[1:]
		}
	}
	if wasCut {
		return marker + s
	}
	return s
}
