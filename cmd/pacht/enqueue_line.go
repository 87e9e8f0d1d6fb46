package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pacht-queue/pacht"
)

// line is one job of a batch. Pointers tell "not said" from a zero, which is refused.
type line struct {
	kind                              string
	args, metadata                    json.RawMessage
	queue, onCrash, key, scope        *string
	priority, maxAttempts, maxCrashes *int
	ttl, keyLife, in, at              *string
}

// lineKeys are the keys of a line, in the order in which they are told.
var lineKeys = []string{"kind", "args", "queue", "priority", "max_attempts", "max_crashes", "ttl", "on_crash", "key", "scope", "key_life", "in", "at", "metadata"}

// place is where the value of a key goes; nil for an unknown key.
func (l *line) place(key string) any {
	return map[string]any{
		"kind": &l.kind, "args": &l.args, "queue": &l.queue, "priority": &l.priority,
		"max_attempts": &l.maxAttempts, "max_crashes": &l.maxCrashes, "ttl": &l.ttl,
		"on_crash": &l.onCrash, "key": &l.key, "scope": &l.scope, "key_life": &l.keyLife,
		"in": &l.in, "at": &l.at, "metadata": &l.metadata,
	}[key]
}

// lineLimits hold args and metadata at their largest; both are checked by themselves, too.
var lineLimits = pacht.Limits{ArgsBytes: 3 * pacht.MaxArgsBytes, JSONDepth: pacht.MaxJSONDepth + 1}

// parseLine reads exactly one object. A key that is unknown, in another case or there twice is
// refused: what it was meant to say would be lost silently. So is text that the decoder would mend
// before anybody sees it: two keys of different jobs would become one (R11).
func parseLine(raw []byte) (pacht.NewJob, error) {
	if json.Valid(raw) {
		if err := lineLimits.ValidJSON("line", raw); err != nil {
			return pacht.NewJob{}, err
		}
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if start, err := dec.Token(); err != nil {
		return pacht.NewJob{}, notJSON(err)
	} else if start != json.Delim('{') {
		return pacht.NewJob{}, badLine("another value than an object")
	}
	var l line
	var seen []string
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return pacht.NewJob{}, notJSON(err)
		}
		key, _ := token.(string) // between braces the decoder lets no other key pass
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return pacht.NewJob{}, notJSON(err)
		}
		if slices.Contains(seen, key) {
			return pacht.NewJob{}, &pacht.InvalidError{Field: "key of the line", Value: strconv.Quote(cut(key, 40)) + " twice", Bound: "each key once"}
		}
		seen = append(seen, key)
		if err := l.put(key, value); err != nil {
			return pacht.NewJob{}, err
		}
	}
	if _, err := dec.Token(); err != nil {
		return pacht.NewJob{}, notJSON(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return pacht.NewJob{}, badLine("more than one document")
	}
	return l.job()
}

func (l *line) put(key string, value json.RawMessage) error {
	place := l.place(key)
	if place == nil {
		return &pacht.InvalidError{Field: "key of the line", Value: strconv.Quote(cut(key, 40)), Bound: strings.Join(lineKeys, ", ") + ", spelt so"}
	}
	if err := json.Unmarshal(value, place); err != nil {
		want := "a string"
		if _, number := place.(**int); number {
			want = "a whole number"
		}
		return &pacht.InvalidError{Field: key, Value: cut(string(value), 40), Bound: want}
	}
	return nil
}

func badLine(value string) error {
	return &pacht.InvalidError{Field: "line", Value: value, Bound: `one JSON object a line, with the keys that "pacht enqueue --help" lists`}
}

func notJSON(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return badLine(fmt.Sprintf("text that is no JSON (%v)", err))
}

func (l *line) job() (pacht.NewJob, error) {
	job := pacht.NewJob{Kind: l.kind, Args: l.args, Metadata: l.metadata}
	if len(job.Args) == 0 {
		job.Args = json.RawMessage("{}")
	}
	set(&job, l.queue, pacht.Queue)
	set(&job, l.priority, pacht.Priority)
	set(&job, l.maxAttempts, pacht.MaxAttempts)
	set(&job, l.maxCrashes, pacht.MaxCrashes)
	set(&job, l.onCrash, func(s string) pacht.Option { return pacht.OnCrash(pacht.CrashPolicy(s)) })
	set(&job, l.key, pacht.IdempotencyKey)
	set(&job, l.scope, pacht.KeyScope)
	if l.at != nil {
		at, err := parseAt(*l.at)
		if err != nil {
			return job, err
		}
		job.RunAt = at
	}
	return job, errors.Join(
		setDuration(&job, "ttl", l.ttl, pacht.TTL),
		setDuration(&job, "key_life", l.keyLife, pacht.KeyLife),
		setDuration(&job, "in", l.in, pacht.RunIn),
	)
}

func set[T any](job *pacht.NewJob, v *T, opt func(T) pacht.Option) {
	if v != nil {
		opt(*v)(job)
	}
}

func setDuration(job *pacht.NewJob, field string, v *string, opt func(time.Duration) pacht.Option) error {
	if v == nil {
		return nil
	}
	d, err := parseDuration(*v)
	if err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	opt(d)(job)
	return nil
}
