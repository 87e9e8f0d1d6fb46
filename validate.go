package pacht

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	namePattern   = "1 to 128 of A-Z a-z 0-9 _ - . : / and not a sign at the start"
	priorityBound = "1 (first) to 4"
	attemptsBound = "1 to 30000"
	crashesBound  = "1 to 1000"
	ttlBound      = "100ms to 24h in whole milliseconds"
	policyBound   = `"retry" or "hold"`
	keyBound      = "1 to 512 bytes of UTF-8 without NUL"
	keyLifeBound  = "1s to 10 years"
	horizonBound  = "at most 10 years ahead"
)

// Limits bound what an enqueue may store. The zero value means the defaults.
type Limits struct {
	ArgsBytes int // of args, of metadata, of step data, of output each; 0 = MaxArgsBytes
	JSONDepth int // how deep arrays and objects may be nested; 0 = MaxJSONDepth
}

func (l Limits) withDefaults() Limits {
	if l.ArgsBytes == 0 {
		l.ArgsBytes = MaxArgsBytes
	}
	if l.JSONDepth == 0 {
		l.JSONDepth = MaxJSONDepth
	}
	return l
}

// Validate answers nil or what is wrong first, as an *InvalidError naming field, value and
// bound. Stores call it for every job before it is stored; now is the horizon's base, and
// need not be exact.
func (j NewJob) Validate(l Limits, now time.Time) error {
	if j.err != nil {
		return j.err
	}
	if err := ValidName("kind", j.Kind); err != nil {
		return err
	}
	if j.Queue != "" {
		if err := ValidName("queue", j.Queue); err != nil {
			return err
		}
	}
	if err := l.ValidJSON("args", j.Args); err != nil {
		return err
	}
	if len(j.Metadata) > 0 {
		if err := l.ValidJSON("metadata", j.Metadata); err != nil {
			return err
		}
		if t := bytes.TrimLeft(j.Metadata, " \t\r\n"); t[0] != '{' {
			return &InvalidError{Field: "metadata", Value: clip(string(t)), Bound: "a JSON object"}
		}
	}
	if j.Priority != 0 && (j.Priority < MinPriority || j.Priority > MaxPriority) {
		return &InvalidError{Field: "priority", Value: strconv.Itoa(j.Priority), Bound: priorityBound}
	}
	if err := j.validateTimes(now); err != nil {
		return err
	}
	if err := (QueueSettings{TTL: j.TTL, MaxAttempts: j.MaxAttempts, MaxCrashes: j.MaxCrashes, CrashPolicy: j.CrashPolicy}).validate(); err != nil {
		return err
	}
	return j.validateKey()
}

func (j NewJob) validateTimes(now time.Time) error {
	if !j.RunAt.IsZero() && j.Delay != 0 {
		return &InvalidError{Field: "run_at", Value: j.RunAt.Format(time.RFC3339), Bound: "either a time or a delay, not both"}
	}
	if j.RunAt.Sub(now) > Horizon {
		return &InvalidError{Field: "run_at", Value: j.RunAt.Format(time.RFC3339), Bound: horizonBound}
	}
	if j.Delay > Horizon {
		return &InvalidError{Field: "delay", Value: j.Delay.String(), Bound: horizonBound}
	}
	return nil
}

func (j NewJob) validateKey() error {
	if j.Key == "" {
		if j.Scope != "" || j.KeyLife != 0 {
			return &InvalidError{Field: "idempotency key", Value: `""`, Bound: "a key, since its scope or life is given"}
		}
		return nil
	}
	if len(j.Key) > MaxKeyBytes || !storable(j.Key) {
		return &InvalidError{Field: "idempotency key", Value: clip(j.Key), Bound: keyBound}
	}
	if len(j.Scope) > MaxKeyBytes || !storable(j.Scope) {
		return &InvalidError{Field: "key scope", Value: clip(j.Scope), Bound: "at most 512 bytes of UTF-8 without NUL"}
	}
	if j.KeyLife != 0 && (j.KeyLife < time.Second || j.KeyLife > MaxKeyLife) {
		return &InvalidError{Field: "key life", Value: j.KeyLife.String(), Bound: keyLifeBound}
	}
	return nil
}

// Fingerprint is what R11 compares: SHA-256 over kind and args, byte for byte.
func (j NewJob) Fingerprint() []byte {
	h := sha256.New()
	fmt.Fprintf(h, "%d:%s", len(j.Kind), j.Kind)
	h.Write(j.Args)
	return h.Sum(nil)
}

// QueueSettings are a queue's own answers for what an enqueue did not say and its kind did
// not either. Zero means: the default.
type QueueSettings struct {
	TTL         time.Duration `json:"ttl_ns,omitempty"`
	MaxAttempts int           `json:"max_attempts,omitempty"`
	MaxCrashes  int           `json:"max_crashes,omitempty"`
	CrashPolicy CrashPolicy   `json:"crash_policy,omitempty"`
}

// Validate answers nil or an *InvalidError.
func (q QueueSettings) Validate(queue string) error {
	if err := ValidName("queue", queue); err != nil {
		return err
	}
	return q.validate()
}

func (q QueueSettings) validate() error {
	switch {
	case q.MaxAttempts != 0 && (q.MaxAttempts < 1 || q.MaxAttempts > MaxMaxAttempts):
		return &InvalidError{Field: "max_attempts", Value: strconv.Itoa(q.MaxAttempts), Bound: attemptsBound}
	case q.MaxCrashes != 0 && (q.MaxCrashes < 1 || q.MaxCrashes > MaxMaxCrashes):
		return &InvalidError{Field: "max_crashes", Value: strconv.Itoa(q.MaxCrashes), Bound: crashesBound}
	case q.TTL != 0 && (q.TTL < MinTTL || q.TTL > MaxTTL || q.TTL%time.Millisecond != 0):
		return &InvalidError{Field: "ttl", Value: q.TTL.String(), Bound: ttlBound}
	case q.CrashPolicy != "" && q.CrashPolicy != CrashRetry && q.CrashPolicy != CrashHold:
		return &InvalidError{Field: "crash_policy", Value: clip(string(q.CrashPolicy)), Bound: policyBound}
	}
	return nil
}

// ValidName checks the name of a kind, queue or step.
func ValidName(field, name string) error {
	ok := len(name) >= 1 && len(name) <= MaxNameBytes
	for i := 0; ok && i < len(name); i++ {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		ok = letter || i > 0 && strings.IndexByte("_-.:/", c) >= 0
	}
	if !ok {
		return &InvalidError{Field: field, Value: clip(name), Bound: namePattern}
	}
	return nil
}

// ValidOwner checks the owner of a claim.
func ValidOwner(owner string) error {
	if owner == "" || len(owner) > MaxOwnerBytes || !storable(owner) {
		return &InvalidError{Field: "owner", Value: clip(owner), Bound: "1 to 256 bytes of UTF-8 without NUL"}
	}
	return nil
}

// Validate checks a claim request.
func (r ClaimRequest) Validate() error {
	if err := ValidOwner(r.Owner); err != nil {
		return err
	}
	if err := ValidName("queue", r.Queue); err != nil {
		return err
	}
	if len(r.Kinds) == 0 {
		return &InvalidError{Field: "kinds", Bound: "at least one kind"}
	}
	for _, k := range r.Kinds {
		if err := ValidName("kind", k); err != nil {
			return err
		}
	}
	if r.Limit < 1 || r.Limit > MaxBatch {
		return &InvalidError{Field: "limit", Value: strconv.Itoa(r.Limit), Bound: "1 to 10000"}
	}
	return nil
}

// Validate checks a settlement. Error and Output need no check: they are made storable.
func (s Settlement) Validate() error {
	switch s.Outcome {
	case OutcomeCompleted, OutcomeFailed, OutcomeReleased, OutcomeSnoozed, OutcomeCancelled, OutcomeUnknown:
	default:
		return &InvalidError{Field: "outcome", Value: clip(string(s.Outcome)), Bound: "Completed, Failed, Released, Snoozed, Cancelled or Unknown"}
	}
	if s.Delay < 0 || s.Delay > MaxDelay {
		return &InvalidError{Field: "delay", Value: s.Delay.String(), Bound: "0 to 365 days"}
	}
	return nil
}

// ValidJSON checks a document that is to be stored byte for byte: size, UTF-8, syntax,
// depth, and no escape that a database's JSON functions would choke on (\u0000, a lone
// surrogate).
func (l Limits) ValidJSON(field string, raw json.RawMessage) error {
	l = l.withDefaults()
	switch {
	case len(raw) == 0:
		return &InvalidError{Field: field, Bound: "a JSON document"}
	case len(raw) > l.ArgsBytes:
		return &InvalidError{Field: field, Value: fmt.Sprintf("%d bytes", len(raw)), Bound: fmt.Sprintf("at most %d bytes", l.ArgsBytes)}
	case !utf8.Valid(raw):
		return &InvalidError{Field: field, Value: "text that is not UTF-8", Bound: "UTF-8"}
	}
	if depth := jsonDepth(raw, l.JSONDepth); depth > l.JSONDepth {
		return &InvalidError{Field: field, Value: fmt.Sprintf("nesting deeper than %d", l.JSONDepth), Bound: fmt.Sprintf("at most %d levels", l.JSONDepth)}
	}
	if !json.Valid(raw) {
		return &InvalidError{Field: field, Value: fmt.Sprintf("%d bytes that are not JSON", len(raw)), Bound: "valid JSON"}
	}
	if bad := badEscape(raw); bad != "" {
		return &InvalidError{Field: field, Value: "the escape " + bad, Bound: "text that both databases can store: no NUL, no lone surrogate"}
	}
	return nil
}

// jsonDepth counts nesting outside strings, and stops counting past the limit. It is asked
// before json.Valid, so that no parser ever sees a document that is too deep.
func jsonDepth(raw []byte, limit int) int {
	depth, deepest, inString := 0, 0, false
	for i := 0; i < len(raw) && deepest <= limit; i++ {
		switch c := raw[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '[' || c == '{':
			depth++
			deepest = max(deepest, depth)
		case c == ']' || c == '}':
			depth--
		}
	}
	return deepest
}

// badEscape finds \u0000 or a lone surrogate in valid JSON.
func badEscape(raw []byte) string {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++
		if raw[i] != 'u' {
			continue
		}
		r := hex4(raw[i+1:])
		esc := string(raw[i-1 : i+5])
		i += 4
		switch {
		case r == 0, r >= 0xDC00 && r <= 0xDFFF:
			return esc
		case r >= 0xD800 && r <= 0xDBFF:
			if i+6 >= len(raw) || raw[i+1] != '\\' || raw[i+2] != 'u' {
				return esc
			}
			if low := hex4(raw[i+3:]); low < 0xDC00 || low > 0xDFFF {
				return esc
			}
			i += 6
		}
	}
	return ""
}

func hex4(b []byte) int {
	n, err := strconv.ParseUint(string(b[:4]), 16, 32)
	if err != nil {
		return math.MaxInt32
	}
	return int(n)
}

func storable(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// clip quotes a refused value for an error, shortened.
func clip(s string) string {
	const most = 40
	if len(s) > most {
		s = s[:most] + "..."
	}
	return strconv.Quote(s)
}
