package pacht

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

const cutMarker = " ...[cut]"

// SafeText makes any text storable: valid UTF-8, no NUL, at most max bytes, cut at a rune
// boundary with a marker. Recording a failure must never fail (R12).
func SafeText(s string, max int) string {
	cut := len(s) > max
	if cut {
		s = s[:max]
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	if !cut && len(s) <= max {
		return s
	}
	end := max - len(cutMarker)
	if end < 0 {
		return ""
	}
	end = min(end, len(s))
	for end > 0 && end < len(s) && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + cutMarker
}

// SafeJSON makes any output storable. A document within the limits comes back as it is;
// anything else becomes a JSON string of its safe text.
func SafeJSON(raw json.RawMessage, l Limits) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	if l.ValidJSON("output", raw) == nil {
		return raw
	}
	l = l.withDefaults()
	// Quoting can make six bytes of one, and adds two.
	quoted, err := json.Marshal(SafeText(string(raw), (l.ArgsBytes-2)/6))
	if err != nil {
		return json.RawMessage(`"output could not be stored"`)
	}
	return quoted
}
