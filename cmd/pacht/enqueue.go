package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
)

// enqueueFlags are the properties of one job.
type enqueueFlags struct {
	queue, onCrash, key, scope, at, metadata string
	priority, maxAttempts, maxCrashes        int
	ttl, in, keyLife                         time.Duration
	batch                                    bool
}

func enqueueCommand(g *globals) *cobra.Command {
	var f enqueueFlags
	c := &cobra.Command{
		Use:   "enqueue KIND [ARGS | -]",
		Short: "Store a job, or many from standard input",
		Long: `Store a job. ARGS is a JSON document (default {}), or - to read it from standard input.
It arrives byte for byte as given, but for white space around it: integers beyond 2^53 keep
all their digits.

With --key the enqueue may be repeated: the same key with the same kind and args answers the
first job's id, with other content it is refused (exit code 3).

With --batch, jobs come from standard input, one JSON object a line, with the keys kind, args,
queue, priority, max_attempts, max_crashes, ttl, on_crash, key, scope, key_life, in, at,
metadata, spelt so and each once. A refused line does not stop the others.

JSON: {id, duplicate}; with --batch {stored, duplicates, refused, errors: [{line, error}]}.`,
		Example: `  pacht enqueue charge '{"payment_id":"p-1","amount_minor":1250}' --key p-1
  pacht enqueue report --in 2h --queue slow
  jq -c '{kind:"mail", args:.}' mails.jsonl | pacht enqueue --batch`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case f.batch && len(args) > 0:
				return fmt.Errorf("with --batch, kinds and args stand in the lines of standard input, not in arguments")
			case !f.batch && (len(args) < 1 || len(args) > 2):
				return fmt.Errorf("want KIND and at most one argument ARGS, got %d arguments (quote the JSON)", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.batch {
				return enqueueBatch(cmd, g)
			}
			job, err := f.job(cmd, args)
			if err != nil {
				return err
			}
			return enqueueOne(cmd, g, job)
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.queue, "queue", "", `queue (default "default")`)
	fl.IntVar(&f.priority, "priority", 0, "1 (first) to 4 (default 3)")
	fl.IntVar(&f.maxAttempts, "max-attempts", 0, "how often it may run in all, 1 to 30000 (default: the queue's, else 25)")
	fl.IntVar(&f.maxCrashes, "max-crashes", 0, "expired leases in a row until it is set aside, 1 to 1000 (default: the queue's, else 3)")
	fl.Var(durationValue{&f.ttl}, "ttl", "how long a lease lasts without renewal, 100ms to 24h (default: the queue's, else 60s)")
	fl.StringVar(&f.onCrash, "on-crash", "", "retry or hold: what an expired lease becomes (default: the queue's, else retry)")
	fl.StringVar(&f.key, "key", "", "idempotency key, 1 to 512 bytes")
	fl.StringVar(&f.scope, "scope", "", "scope of the idempotency key")
	fl.Var(durationValue{&f.keyLife}, "key-life", "how long the key stands (default 30d)")
	fl.Var(durationValue{&f.in}, "in", "run that long from now at the earliest, at most 10 years; less than 0 means now")
	fl.StringVar(&f.at, "at", "", "run at that time at the earliest, as 2006-01-02T15:04:05Z; past means now")
	fl.StringVar(&f.metadata, "metadata", "", "a JSON object of facts that are not args")
	fl.BoolVar(&f.batch, "batch", false, "read jobs from standard input, one JSON object a line")
	c.MarkFlagsMutuallyExclusive("in", "at")
	for _, name := range []string{"queue", "priority", "max-attempts", "max-crashes", "ttl", "on-crash", "key", "scope", "key-life", "in", "at", "metadata"} {
		c.MarkFlagsMutuallyExclusive("batch", name)
	}
	completeWith(c, "on-crash", "retry", "hold")
	completeWith(c, "priority", "1", "2", "3", "4")
	return c
}

// job makes the job that flags and arguments describe. A flag that was given counts, also
// with a zero that the library refuses.
func (f enqueueFlags) job(cmd *cobra.Command, args []string) (pacht.NewJob, error) {
	job := pacht.NewJob{Kind: args[0], Args: json.RawMessage("{}")}
	if len(args) == 2 {
		raw, err := argument(cmd.InOrStdin(), args[1])
		if err != nil {
			return job, err
		}
		job.Args = raw
	}
	at, err := parseAt(f.at)
	if err != nil {
		return job, err
	}
	for name, opt := range map[string]pacht.Option{
		"queue":        pacht.Queue(f.queue),
		"priority":     pacht.Priority(f.priority),
		"max-attempts": pacht.MaxAttempts(f.maxAttempts),
		"max-crashes":  pacht.MaxCrashes(f.maxCrashes),
		"ttl":          pacht.TTL(f.ttl),
		"on-crash":     pacht.OnCrash(policyNamed(f.onCrash)),
		"key":          pacht.IdempotencyKey(f.key),
		"scope":        pacht.KeyScope(f.scope),
		"key-life":     pacht.KeyLife(f.keyLife),
		"in":           pacht.RunIn(max(f.in, 0)),
		"at":           pacht.RunAt(at),
	} {
		if cmd.Flags().Changed(name) {
			opt(&job)
		}
	}
	if cmd.Flags().Changed("metadata") {
		job.Metadata = json.RawMessage(f.metadata)
		if f.metadata == "" {
			return job, &pacht.InvalidError{Field: "metadata", Value: `""`, Bound: "a JSON object"}
		}
	}
	return job, nil
}

// argument is ARGS as it stands, or what standard input holds.
func argument(in io.Reader, arg string) (json.RawMessage, error) {
	if arg != "-" {
		return bytes.TrimSpace([]byte(arg)), nil
	}
	const most = 2 * pacht.MaxArgsBytes // with white space around
	raw, err := io.ReadAll(io.LimitReader(in, most+1))
	if err != nil {
		return nil, fmt.Errorf("read args from standard input: %w", err)
	}
	if len(raw) > most {
		return nil, &pacht.InvalidError{Field: "args", Value: "more than " + strconv.Itoa(most) + " bytes on standard input", Bound: "at most " + strconv.Itoa(pacht.MaxArgsBytes) + " bytes"}
	}
	return bytes.TrimSpace(raw), nil
}

func parseAt(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, &pacht.InvalidError{Field: "at", Value: strconv.Quote(cut(s, 40)), Bound: "a time with its zone, such as 2006-01-02T15:04:05Z or 2006-01-02T15:04:05+01:00"}
	}
	return t, nil
}

func enqueueOne(cmd *cobra.Command, g *globals, job pacht.NewJob) error {
	// What is wrong with the job is said before the database is asked for.
	if err := job.Validate(pacht.Limits{}, clock.Now().Time()); err != nil {
		return err
	}
	db, err := g.open(cmd.Context())
	if err != nil {
		return err
	}
	defer db.Close()
	answers, err := db.Enqueue(cmd.Context(), []pacht.NewJob{job})
	if err != nil {
		return fmt.Errorf("enqueue: %w", err)
	}
	if answers[0].Err != nil {
		return answers[0].Err
	}
	if g.json {
		return printJSON(cmd, struct {
			ID        pacht.ID `json:"id"`
			Duplicate bool     `json:"duplicate"`
		}{answers[0].ID, answers[0].Duplicate})
	}
	if answers[0].Duplicate {
		printf(cmd, "job %d (the key stood for it already)\n", answers[0].ID)
		return nil
	}
	printf(cmd, "job %d\n", answers[0].ID)
	return nil
}
