package failover

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/faults/lab"
)

// An asynchronous standby is behind when it is promoted: what was answered in the last moments
// is gone, and docs/operating.md says so. Enqueues are lost, and their ids given out again.
// Completions are lost, and their jobs run again. Tokens go back, so that a fence outside refuses
// the first new holders, and cannot tell a new holder from an old one who had the same token. What
// is left obeys all rules, and is done.
func TestAsynchronousStandbyLosesTheLastMomentsAndNothingElse(t *testing.T) {
	t.Parallel()
	p := startPair(t, false)
	rec := lab.StartRecorder(t)
	handler := lab.Handler{Seed: lab.Seed(t), Duration: 20 * time.Millisecond, Fail: 0.2, Tell: true}
	fleet := lab.StartFleet(t, lab.FleetConfig{Database: p.both, Recorder: rec, Processes: 2, Handler: handler})
	callers := gather(t, p.both, 6)
	n := lab.Scale(600, 5000)
	callers.more(n, "")
	lab.Await(t, 120*time.Second, "a third is enqueued and work is done", func() bool {
		return callers.answered() > n/3 && rec.Count(lab.Settled) > n/6
	})
	p.link.Blackhole(true) // from here on the standby hears nothing
	enqueued, settled := callers.answered(), rec.Count(lab.Settled)
	lab.Await(t, 60*time.Second, "more is enqueued and done behind its back", func() bool {
		return callers.answered() > enqueued+n/10 && rec.Count(lab.Settled) > settled+n/20
	})
	if err := p.primary.Crash(); err != nil {
		t.Fatal(err)
	}
	moment := time.Now()
	if err := p.standby.Server.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	callers.done(90 * time.Second)
	fleet.Finish(90 * time.Second)
	fleet.Shutdown()

	here := p.standby.URL(named)
	facts := interruption(t, here, moment)
	facts = append(facts, lostEnqueues(t, here, callers)...)
	facts = append(facts, lostLeases(t, here, rec)...)
	// What is there is done, once each, and no rule is broken.
	if left := ask[int](t, here, "SELECT count(*) FROM pacht.leases"); left > 0 {
		t.Errorf("%d jobs are unfinished", left)
	}
	if not := ask[int](t, here, `SELECT count(*) FROM (
		SELECT j.job_id FROM pacht.jobs AS j LEFT JOIN pacht.attempts AS a ON a.job_id = j.job_id AND a.outcome = 'Completed'
		GROUP BY j.job_id HAVING count(a.token) <> 1) AS x`); not > 0 {
		t.Errorf("%d jobs were not completed once", not)
	}
	violations, err := lab.Open(t, here).Check(t.Context())
	if err != nil || len(violations) > 0 {
		t.Errorf("check: %v, %v", violations, err)
	}
	lab.Report(t, "asynchronous standby promoted, primary killed", facts...)
}

func lostEnqueues(t *testing.T, url string, c *crowd) []lab.Fact {
	t.Helper()
	numbers := map[pacht.ID]int{}
	read(t, url, func(rows pgx.Rows) error {
		var id pacht.ID
		var number int
		err := rows.Scan(&id, &number)
		numbers[id] = number
		return err
	}, "SELECT job_id, (args->>'n')::bigint FROM pacht.jobs")
	lost, other := 0, 0
	for number, id := range c.answers {
		switch got, there := numbers[id]; {
		case !there:
			lost++
		case got != number:
			lost++
			other++
		}
	}
	if lost == 0 {
		t.Error("no answered enqueue was lost: the standby was not behind, and nothing was shown")
	}
	return []lab.Fact{lab.F("enqueues_answered", len(c.answers)), lab.F("enqueues_lost", lost), lab.F("ids_given_again", other)}
}

func lostLeases(t *testing.T, url string, rec *lab.Recorder) []lab.Fact {
	t.Helper()
	ledger := map[pacht.Ref]string{}
	read(t, url, func(rows pgx.Rows) error {
		var ref pacht.Ref
		var owner, outcome string
		err := rows.Scan(&ref.Job, &ref.Token, &owner, &outcome)
		ledger[ref] = owner + " " + outcome
		return err
	}, "SELECT job_id, token, owner, outcome FROM pacht.attempts")
	lost, refused, twice := 0, 0, 0
	effects := map[pacht.Ref]int{}
	for _, e := range rec.Events() {
		switch {
		case e.What == lab.Settled && ledger[e.Ref] != e.Owner+" Completed":
			lost++
		case e.What == lab.Effect && e.Stale:
			refused++
		case e.What == lab.Effect:
			if effects[e.Ref]++; effects[e.Ref] == 2 {
				twice++
			}
		}
	}
	if lost == 0 {
		t.Error("no answered completion was lost: the standby was not behind, and nothing was shown")
	}
	return []lab.Fact{
		lab.F("completions_answered", rec.Count(lab.Settled)), lab.F("completions_lost", lost),
		lab.F("effects_refused", refused), lab.F("effects_twice_under_one_token", twice),
	}
}
