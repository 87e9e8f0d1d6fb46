package storetest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pacht-queue/pacht"
)

func schemaCases(g *group) {
	g.run("migrations are applied once, listed, and can be read", func(c *kase) {
		list, err := c.Store.Migrations(c.ctx)
		c.must(err)
		for i, m := range list {
			if m.Version != i+1 || m.Name == "" || m.AppliedAt.IsZero() {
				c.Errorf("migration %d: %+v", i+1, m)
			}
			c.near("applied at", m.AppliedAt, c.now().Add(-10e9))
		}
		done, err := c.Store.MigrateUp(c.ctx)
		if err != nil || len(done) != 0 {
			c.Errorf("up once more: %v, %v", done, err)
		}
		found, wanted, err := c.Store.Schema(c.ctx)
		c.must(err)
		c.same("versions", [2]int{found, wanted}, [2]int{len(list), len(list)})
		if text := c.Store.MigrationSQL(); !strings.Contains(text, c.Table("leases")) || !strings.Contains(text, "CREATE TABLE") {
			c.Errorf("SQL: %.200s", text)
		}
	})
	g.run("any number of processes may migrate at once", func(c *kase) {
		stores := []Store{c.Store, c.Reopen(c.T), c.Reopen(c.T)}
		c.together(len(stores), func(i int) {
			if done, err := stores[i].MigrateUp(c.ctx); err != nil || len(done) != 0 {
				c.Errorf("up: %v, %v", done, err)
			}
		})
	})
	g.run("a schema newer than the program is refused with both versions named", func(c *kase) {
		_, wanted, err := c.Store.Schema(c.ctx)
		c.must(err)
		c.sql("INSERT INTO {schema_version} (version, name, checksum, applied_at) SELECT max(version) + 1, 'future', 'x', max(applied_at) FROM {schema_version}")
		old := c.Reopen(c.T)
		_, up := old.MigrateUp(c.ctx)
		_, claim := old.Claim(c.ctx, c.request("a", 1))
		_, enqueue := old.Enqueue(c.ctx, []pacht.NewJob{c.new()})
		for verb, err := range map[string]error{"migrate": up, "claim": claim, "enqueue": enqueue} {
			var schema *pacht.SchemaError
			if !errors.Is(err, pacht.ErrSchema) || !errors.As(err, &schema) || schema.Found != wanted+1 || schema.Wanted != wanted {
				c.Errorf("%s: %v", verb, err)
			}
		}
		found, _, err := old.Schema(c.ctx)
		c.must(err)
		c.same("found", found, wanted+1)
		c.sql("DELETE FROM {schema_version} WHERE name = 'future'")
	})
	g.run("a migration that was applied from other text is refused by name", func(c *kase) {
		was := c.query("SELECT checksum FROM {schema_version} WHERE version = 1")[0]
		c.sql("UPDATE {schema_version} SET checksum = 'other' WHERE version = 1")
		_, err := c.Reopen(c.T).MigrateUp(c.ctx)
		if !errors.Is(err, pacht.ErrSchema) || !strings.Contains(err.Error(), "checksum") || !strings.Contains(err.Error(), "other") {
			c.Errorf("got %v", err)
		}
		c.sql("UPDATE {schema_version} SET checksum = '%s' WHERE version = 1", was)
	})
	g.run("Check finds what no rule allows", func(c *kase) {
		c.tampered = true
		held, done, lost := c.take("a"), c.in(pacht.Completed), c.in(pacht.Pending)
		c.sql("DELETE FROM {leases} WHERE job_id = %d", lost.ID)   // neither unfinished nor finished
		c.sql("DELETE FROM {attempts} WHERE job_id = %d", done.ID) // finished without a word
		c.sql("DELETE FROM {jobs} WHERE job_id = %d", held.ID)     // a lease on nothing
		dead := c.in(pacht.Dead)                                   // finished, and held too
		other := c.take("b")                                       // its token went back
		c.close(other.Ref(), pacht.OutcomeFailed)
		c.claimID("b", other.ID)
		c.sql("UPDATE {leases} SET token = 1, attempt = 1 WHERE job_id = %d", other.ID)
		c.sql("INSERT INTO {leases} (job_id, token, run_at, max_attempts, ttl_ms, max_crashes, priority, crash_policy, queue, kind) SELECT %d, 1, run_at, 5, 1000, 3, 3, 'retry', queue, kind FROM {leases} WHERE job_id = %d", dead.ID, other.ID)
		found, err := c.Store.Check(c.ctx)
		c.must(err)
		named := map[pacht.ID]bool{}
		for _, v := range found {
			named[v.Job] = true
			if v.Rule == "" || v.Detail == "" {
				c.Errorf("violation %+v", v)
			}
		}
		for what, id := range map[string]pacht.ID{"job without lease and history": lost.ID, "lease gone, history gone": done.ID, "lease without a job": held.ID,
			"finished and pending": dead.ID, "token that went back": other.ID} {
			if !named[id] {
				c.Errorf("%s: job %d is not named in %s", what, id, fmt.Sprint(found))
			}
		}
	})
	// The last one here: the columns stay.
	g.run("S048, S085/columns that a later version adds disturb nothing", func(c *kase) {
		held := c.take("a")
		for _, table := range []string{"jobs", "leases", "attempts", "keys", "steps", "effects"} {
			c.sql("ALTER TABLE %s ADD COLUMN later text", c.Table(table))
		}
		c.must(c.Store.SetStep(c.ctx, held.Ref(), "x", nil))
		c.answer(c.intend(true, held.Ref(), intent("charge")).Effect, pacht.EffectSucceeded)
		c.same("renewal", c.renew(held.Ref()).State, pacht.RenewExtended)
		c.close(held.Ref(), pacht.OutcomeFailed)
		id := c.ask(c.keyed("k", 1)).ID
		c.same("claimed", len(c.claim("b", 10)), 2)
		c.close(pacht.Ref{Job: id, Token: 1}, pacht.OutcomeCompleted)
		c.same("listed", len(c.list(pacht.Filter{})), 2)
	})
}
