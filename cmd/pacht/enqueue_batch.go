package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/pacht-queue/pacht"
)

// line is one job of a batch. Pointers tell "not said" from a zero, which is refused.
type line struct {
	Kind        string          `json:"kind"`
	Args        json.RawMessage `json:"args"`
	Metadata    json.RawMessage `json:"metadata"`
	Queue       *string         `json:"queue"`
	Priority    *int            `json:"priority"`
	MaxAttempts *int            `json:"max_attempts"`
	MaxCrashes  *int            `json:"max_crashes"`
	TTL         *string         `json:"ttl"`
	OnCrash     *string         `json:"on_crash"`
	Key         *string         `json:"key"`
	Scope       *string         `json:"scope"`
	KeyLife     *string         `json:"key_life"`
	In          *string         `json:"in"`
	At          *string         `json:"at"`
}

func (l line) job() (pacht.NewJob, error) {
	job := pacht.NewJob{Kind: l.Kind, Args: l.Args, Metadata: l.Metadata}
	if len(job.Args) == 0 {
		job.Args = json.RawMessage("{}")
	}
	set(&job, l.Queue, pacht.Queue)
	set(&job, l.Priority, pacht.Priority)
	set(&job, l.MaxAttempts, pacht.MaxAttempts)
	set(&job, l.MaxCrashes, pacht.MaxCrashes)
	set(&job, l.OnCrash, func(s string) pacht.Option { return pacht.OnCrash(pacht.CrashPolicy(s)) })
	set(&job, l.Key, pacht.IdempotencyKey)
	set(&job, l.Scope, pacht.KeyScope)
	if l.At != nil {
		at, err := parseAt(*l.At)
		if err != nil {
			return job, err
		}
		job.RunAt = at
	}
	return job, errors.Join(
		setDuration(&job, "ttl", l.TTL, pacht.TTL),
		setDuration(&job, "key_life", l.KeyLife, pacht.KeyLife),
		setDuration(&job, "in", l.In, pacht.RunIn),
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

// batchResult is what a batch came to.
type batchResult struct {
	Stored     int64         `json:"stored"`
	Duplicates int64         `json:"duplicates"`
	Refused    int64         `json:"refused"`
	Errors     []refusedLine `json:"errors"` // at most 100 of them, in order
}

type refusedLine struct {
	Line  int64  `json:"line"`
	Error string `json:"error"`
}

func (r *batchResult) refuse(at int64, err error) {
	const most = 100
	r.Refused++
	if len(r.Errors) < most {
		r.Errors = append(r.Errors, refusedLine{at, err.Error()})
	}
}

func enqueueBatch(cmd *cobra.Command, g *globals) error {
	db, err := g.open(cmd.Context())
	if err != nil {
		return err
	}
	defer db.Close()
	r := batchResult{Errors: []refusedLine{}}
	err = r.read(cmd.Context(), db, cmd.InOrStdin())
	slices.SortFunc(r.Errors, func(a, b refusedLine) int { return int(a.Line - b.Line) })
	if g.json {
		if printErr := printJSON(cmd, r); printErr != nil {
			return errors.Join(err, printErr)
		}
	} else {
		for _, l := range r.Errors {
			printf(cmd, "line %d refused: %s\n", l.Line, cleanLines(l.Error))
		}
		printf(cmd, "%d stored, %d already there, %d refused\n", r.Stored, r.Duplicates, r.Refused)
	}
	if err != nil {
		return err
	}
	if r.Refused > 0 {
		return fmt.Errorf("%s refused", plural(r.Refused, "line was", "lines were"))
	}
	return nil
}

// read stores the lines of a reader in transactions of a thousand, in constant memory.
func (r *batchResult) read(ctx context.Context, db pacht.Enqueuer, in io.Reader) error {
	const size = 1000
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 3*pacht.MaxArgsBytes)
	jobs, at := make([]pacht.NewJob, 0, size), make([]int64, 0, size)
	flush := func() error {
		if len(jobs) == 0 {
			return nil
		}
		answers, err := db.Enqueue(ctx, jobs)
		if err != nil {
			return fmt.Errorf("enqueue lines %d to %d (%d jobs were stored before): %w", at[0], at[len(at)-1], r.Stored, err)
		}
		for i, a := range answers {
			switch {
			case a.Err != nil:
				r.refuse(at[i], a.Err)
			case a.Duplicate:
				r.Duplicates++
			default:
				r.Stored++
			}
		}
		jobs, at = jobs[:0], at[:0]
		return nil
	}
	n := int64(0)
	for lines.Scan() {
		n++
		raw := bytes.TrimSpace(lines.Bytes())
		if len(raw) == 0 {
			continue
		}
		job, err := parseLine(raw)
		if err != nil {
			r.refuse(n, err)
			continue
		}
		jobs, at = append(jobs, job), append(at, n)
		if len(jobs) == size {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read line %d of standard input (%d jobs were stored before): %w", n+1, r.Stored, err)
	}
	return nil
}

// parseLine reads exactly one object with known keys only.
func parseLine(raw []byte) (pacht.NewJob, error) {
	var l line
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&l); err != nil {
		return pacht.NewJob{}, &pacht.InvalidError{Field: "line", Value: err.Error(), Bound: `one JSON object with the keys that "pacht enqueue --help" lists`}
	}
	if _, err := dec.Token(); err != io.EOF {
		return pacht.NewJob{}, &pacht.InvalidError{Field: "line", Value: "more than one document", Bound: "one JSON object a line"}
	}
	return l.job()
}
