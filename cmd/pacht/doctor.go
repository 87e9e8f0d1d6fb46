package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/database"
)

// verdict is what doctor thinks of one thing.
type verdict string

const (
	good    verdict = "good"
	bad     verdict = "bad"
	look    verdict = "look" // nothing is broken, and a person should see it
	unclear verdict = "not enough data"
)

// finding is one thing that doctor looked at.
type finding struct {
	Key      string         `json:"key"`
	Question string         `json:"question"`
	Verdict  verdict        `json:"verdict"`
	Answer   string         `json:"answer"`
	Figures  map[string]any `json:"figures"`

	shown string // more to show to people, indented
}

// diagnosis is the whole answer.
type diagnosis struct {
	Database   string            `json:"database"`
	Now        time.Time         `json:"now"`
	OK         bool              `json:"ok"`
	Questions  []finding         `json:"questions"` // the six of a lease design
	More       []finding         `json:"more"`
	Violations []pacht.Violation `json:"violations"`

	claimSQL string
}

type doctorFlags struct {
	sample    int
	skipCheck bool
}

func doctorCommand(g *globals) *cobra.Command {
	var f doctorFlags
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Answer the six questions of a lease design on the live database",
		Long: `Answer the six questions of a lease design on the live database, with figures and a verdict
each: is claiming one atomic statement; is the TTL longer than the longest operation; do long
attempts renew; does a watcher run; is the owner recorded on every held lease; is the attempt
counted and kept. Then: the schema's version, the rules checked on all stored data, the clocks of
this machine and the database, jobs that no running worker takes, parked jobs and breaks that
wait for a person, silent workers.

Verdicts: good, bad, look (nothing is broken, and a person should see it), not enough data.
Exits with 1 if any verdict is bad. What waits for a person is "look": alert on its figures.

It only reads. The check of all stored data reads the tables from end to end: --skip-check.

JSON: {database, now, ok, questions: [{key, question, verdict, answer, figures}], more: [the
same], violations: [{rule, job, detail}]}. Keys of the questions: claim_atomic, ttl_longer,
long_renew, watcher_runs, owner_recorded, attempt_kept; of more: schema, rules, clock_skew,
unserved, parked, workers. Figures named _ns are nanoseconds.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.sample < 1 || f.sample > 1_000_000 {
				return &pacht.InvalidError{Field: "sample", Value: strconv.Itoa(f.sample), Bound: "1 to 1000000"}
			}
			// The tables may be missing or old: that is a finding too, but nothing else can be read.
			db, err := g.open(cmd.Context())
			if err != nil {
				return err
			}
			defer db.Close()
			d, err := diagnose(cmd.Context(), db, f)
			if err != nil {
				return fmt.Errorf("doctor: %w", err)
			}
			d.Database = database.Describe(g.url())
			if g.json {
				err = printJSON(cmd, d)
			} else {
				err = d.print(cmd)
			}
			if err == nil && !d.OK {
				err = errFound
			}
			return err
		},
	}
	c.Flags().IntVar(&f.sample, "sample", 10_000, "how many of the newest closed leases to measure, 1 to 1000000")
	c.Flags().BoolVar(&f.skipCheck, "skip-check", false, "do not read all tables to check the rules")
	return c
}

func diagnose(ctx context.Context, db database.Database, f doctorFlags) (diagnosis, error) {
	var v vitals
	if err := v.take(ctx, db, f); err != nil {
		return diagnosis{}, err
	}
	d := diagnosis{
		Now:        v.now,
		OK:         true,
		Violations: list(v.violations),
		claimSQL:   v.claimSQL,
		Questions:  []finding{v.claimAtomic(), v.ttlLonger(), v.longRenew(), v.watcherRuns(), v.ownerRecorded(), v.attemptKept()},
		More:       []finding{v.schema(), v.rules(), v.clocks(), v.unserved(), v.parked(), v.workersLive()},
	}
	for _, found := range append(d.Questions[:len(d.Questions):len(d.Questions)], d.More...) {
		d.OK = d.OK && found.Verdict != bad
	}
	return d, nil
}

func (d diagnosis) print(cmd *cobra.Command) error {
	printf(cmd, "%s at %s\n\n", clean(d.Database), d.Now.UTC().Format("2006-01-02 15:04:05Z"))
	for i, f := range d.Questions {
		f.print(cmd, strconv.Itoa(i+1)+".")
	}
	printf(cmd, "\n")
	for _, f := range d.More {
		f.print(cmd, "-")
	}
	for i, v := range d.Violations {
		const most = 50
		if i == most {
			printf(cmd, "    and %d more: --json\n", len(d.Violations)-most)
			break
		}
		job := ""
		if v.Job != 0 {
			job = " job " + v.Job.String()
		}
		printf(cmd, "    %s%s: %s\n", clean(v.Rule), job, clean(v.Detail))
	}
	printf(cmd, "\nThe statement that claims:\n%s\n", indent(d.claimSQL, "    "))
	if d.OK {
		printf(cmd, "\nno bad verdict\n")
		return nil
	}
	var names []string
	for _, f := range append(d.Questions, d.More...) {
		if f.Verdict == bad {
			names = append(names, f.Question)
		}
	}
	printf(cmd, "\nBAD: %s\n", strings.Join(names, "; "))
	return nil
}

func (f finding) print(cmd *cobra.Command, mark string) {
	name := string(f.Verdict)
	if f.Verdict == bad {
		name = "BAD"
	}
	printf(cmd, "%-2s %-15s  %s\n", mark, name, f.Question)
	printf(cmd, "%s\n", indent(f.Answer, strings.Repeat(" ", 20)))
	if f.shown != "" {
		printf(cmd, "%s\n", indent(f.shown, strings.Repeat(" ", 22)))
	}
}
