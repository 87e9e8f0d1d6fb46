package storetest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
)

// patience is how long one case may take on a machine that does much else; it takes seconds.
const patience = 4 * time.Minute

// group is one file's cases on one database.
type group struct {
	*testing.T
	open    func(t *testing.T) Backend
	backend *Backend
	cases   int
}

// run makes one case. Its name begins with the rule or the field case that it defends.
// Emptied tables and a queue of its own isolate it: far cheaper than a database each.
func (g *group) run(name string, fn func(c *kase)) {
	if g.backend == nil {
		b := g.open(g.T)
		g.backend = &b
	}
	g.cases++
	g.T.Run(name, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		c := &kase{T: t, Backend: *g.backend, ctx: ctx, queue: fmt.Sprintf("q%d", g.cases)}
		defer c.empty()
		fn(c)
		c.check()
	})
}

// alone is run on a database of its own: for cases that change the schema, or fill it.
func (g *group) alone(name string, fn func(c *kase)) {
	g.T.Run(name, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		c := &kase{T: t, Backend: g.open(t), ctx: ctx, queue: "alone"}
		fn(c)
		c.check()
	})
}

// kase is one running case.
type kase struct {
	*testing.T
	Backend
	ctx   context.Context
	queue string
	begun []Txn
	// tampered says that the case broke rules by hand, so that Check must find something.
	tampered bool
}

// tables lists all that a case can write to.
var tables = []string{"reports", "steps", "effects", "attempts", "leases", "keys", "jobs", "audit", "queues", "workers", "breaks", "decisions"}

// empty ends what a failed case left open, and takes away all that it wrote.
func (c *kase) empty() {
	c.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), 30*time.Second)
	defer cancel()
	for _, tx := range c.begun {
		_ = tx.Rollback(ctx) // an error says that it has ended, which is all we want
	}
	for _, table := range tables {
		if _, err := c.Exec(ctx, "DELETE FROM "+c.Table(table)); err != nil {
			c.Fatalf("empty %s: %v", table, err)
		}
	}
	for _, text := range []string{"DELETE FROM %s", "INSERT INTO %s DEFAULT VALUES"} {
		if _, err := c.Exec(ctx, fmt.Sprintf(text, c.Table("watch"))); err != nil {
			c.Fatalf("reset the watch: %v", err)
		}
	}
	if _, err := c.Exec(ctx, c.named(`UPDATE {sweeps} SET passed_at = NULL, passed_by = NULL, removed = 0, next_at = (SELECT min(next_at) FROM {watch}),
		whole_at = (SELECT min(next_at) FROM {watch}), looking = (1 = 0), whole = (1 = 0), cost_us = 0, after_us = 0, after_id = 0`)); err != nil {
		c.Fatalf("reset the sweeps: %v", err)
	}
}

func (c *kase) check() {
	c.Helper()
	if c.Failed() {
		return
	}
	found, err := c.Store.Check(c.ctx)
	if err != nil {
		c.Fatalf("check: %v", err)
	}
	if c.tampered {
		if len(found) == 0 {
			c.Error("Check finds nothing wrong in rows that no rule allows")
		}
		return
	}
	for _, v := range found {
		c.Errorf("check: %s, job %d: %s", v.Rule, v.Job, v.Detail)
	}
}

func (c *kase) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// sql runs a statement in which {leases} stands for that table.
func (c *kase) sql(format string, args ...any) int64 {
	c.Helper()
	n, err := c.Exec(c.ctx, c.named(format, args...))
	c.must(err)
	return n
}

// named puts the tables' names in.
func (c *kase) named(format string, args ...any) string {
	text := fmt.Sprintf(format, args...)
	for _, table := range append(tables, "schema_version", "watch", "sweeps", "job_status", "business") {
		text = strings.ReplaceAll(text, "{"+table+"}", c.Table(table))
	}
	return text
}

// query answers rows as text, one line each.
func (c *kase) query(format string, args ...any) []string {
	c.Helper()
	rows, err := c.Query(c.ctx, c.named(format, args...))
	c.must(err)
	lines := make([]string, len(rows))
	for i, row := range rows {
		lines[i] = strings.Join(row, "|")
	}
	return lines
}

// lease is the whole lease row, byte for byte; "" if there is none.
func (c *kase) lease(id pacht.ID) string {
	c.Helper()
	return strings.Join(c.query(`SELECT job_id, token, run_at, claimed_at, lease_until, attempt, max_attempts,
		ttl_ms, rev, crashes, max_crashes, priority, cancel_requested, status, crash_policy, queue, kind, lease_owner
		FROM {leases} WHERE job_id = %d`, id), "\n")
}
