package history

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/faults/lab"
)

// tableSeed is the seed of the table in docs/faults.md, which is that of PostgreSQL.
const tableSeed = 4

const tableHead = "| rule | what is broken | what the checker says | after |\n| --- | --- | --- | --- |\n"

// Each rule is broken once, and the checker must find it: a checker that finds nothing proves
// nothing. The histories have a fixed order, so a seed's figures are the same each time, and
// those in docs/faults.md are compared. PACHT_FAULTS_TABLE names a file to write the table to,
// PACHT_SEED another seed.
func TestEachBrokenRuleIsFound(t *testing.T) { // R1 to R7, R9, R10
	const waves = 200 // enough for any seed; that of the table needs 7
	breaks := slices.Concat(claimBreaks, settleBreaks, timeBreaks)
	seed := uint64(tableSeed)
	if given := os.Getenv("PACHT_SEED"); given != "" {
		seed = lab.Seed(t)
	}
	var table []string
	path, writes := os.LookupEnv("PACHT_FAULTS_TABLE")
	t.Run("databases", func(t *testing.T) {
		for place, name := range places {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				of := freshPlace(t, name).open(t)
				for i, each := range breaks {
					if !lab.Long() && !writes && i%len(places) != place {
						continue // the short form has each on one database
					}
					t.Run(each.name, func(t *testing.T) {
						a := &alone{handle: of, seed: seed, broken: breakStore(t, of, each.how)}
						a.run(t, waves)
						if len(a.found) == 0 {
							t.Fatalf("%s: %s: not found in %d events", each.rule, each.name, a.events)
						}
						first := a.found[0]
						t.Logf("%s: %s: %s", each.rule, each.name, first)
						if name == "postgres" {
							table = append(table, fmt.Sprintf("| %s | %s | %s | %d |", each.rule, each.name, first.Why, first.After))
						}
						lab.Report(t, "broken rule", lab.F("database", name), lab.F("rule", each.rule), lab.F("broken", each.name),
							lab.F("found_by", first.Why), lab.F("after", first.After), lab.F("seed", seed))
					})
				}
			})
		}
	})
	if writes {
		if err := os.WriteFile(path, []byte(tableHead+strings.Join(table, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if seed != tableSeed {
		return
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "faults.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range table {
		if !strings.Contains(string(page), row+"\n") {
			t.Errorf("docs/faults.md lacks this row, as measured now; PACHT_FAULTS_TABLE=file writes the table anew: %s", row)
		}
	}
}

// looksThenTakes claims as no claim should: it reads which jobs are due, and then takes them.
// Alone that is right; only two clients at once show that it is not (R1).
func looksThenTakes(b *broken) {
	b.cut = true
	b.claim = func(ctx context.Context, req pacht.ClaimRequest) (pacht.Claims, error) {
		now, err := b.Store.Now(ctx)
		if err != nil {
			return pacht.Claims{}, err
		}
		due, err := b.Store.Jobs(ctx, pacht.Filter{Status: pacht.Pending, Queue: req.Queue})
		if err != nil {
			return pacht.Claims{}, err
		}
		got := pacht.Claims{Now: now}
		for _, j := range due {
			if len(got.Jobs) == req.Limit || j.RunAt.After(now) || !slices.Contains(req.Kinds, j.Kind) {
				continue
			}
			if b.sql(ctx, `UPDATE {leases} SET status = 'Processing', lease_owner = '%s', claimed_at = {now}, lease_until = %s, attempt = attempt + 1, token = token + 1
				WHERE job_id = %d AND status <> 'Stuck' AND attempt < max_attempts`, req.Owner, b.moment(j.TTL), j.ID) == 1 {
				if taken := b.job(ctx, j.ID); taken.LeaseOwner == req.Owner {
					got.Now, got.Jobs = taken.ClaimedAt, append(got.Jobs, taken)
				}
			}
		}
		return got, nil
	}
}

func TestAClaimThatLooksBeforeItTakesIsFoundByClientsAtOnce(t *testing.T) { // R1
	for _, name := range places {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := lab.Seed(t)
			of := freshPlace(t, name).open(t)
			one := &alone{handle: of, seed: seed, broken: breakStore(t, of, looksThenTakes)}
			if one.run(t, 2); len(one.found) > 0 {
				t.Fatalf("found with clients that call one after the other, which it does not hurt: %s", one.found[0])
			}
			l := &lane{name: name, place: freshPlace(t, name), seed: seed}
			l.wrap = func(of handle) pacht.Store { return breakStore(t, of, looksThenTakes) }
			l.run(t, 20_000, time.Minute)
			if len(l.found) == 0 {
				t.Fatalf("not found in %d events", l.events)
			}
			t.Logf("%s", l.found[0])
			lab.Report(t, "broken rule, clients at once", lab.F("database", name), lab.F("found_by", l.found[0].Why), lab.F("after", l.found[0].After))
		})
	}
}
