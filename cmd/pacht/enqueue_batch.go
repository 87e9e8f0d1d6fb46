package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pacht-queue/pacht"
)

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
