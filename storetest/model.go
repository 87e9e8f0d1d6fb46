package storetest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/pacht-queue/pacht"
)

// One run makes some random histories of so many verbs, and begins none after this time.
const (
	histories = 12
	verbs     = 60
	enough    = 4 * time.Second
)

func modelCases(g *group) {
	g.run("R1 to R9/random histories end as the model says", func(c *kase) {
		seed := uint64(time.Now().UnixNano())
		if text := os.Getenv("PACHT_SEED"); text != "" {
			var err error
			seed, err = strconv.ParseUint(text, 10, 64)
			c.must(err)
		}
		start := time.Now()
		for i := uint64(0); i < histories && time.Since(start) < enough; i++ {
			m := &model{kase: c, seed: seed + i, rnd: rand.New(rand.NewPCG(seed+i, 1))}
			m.play()
			if c.Failed() {
				c.Fatalf("replay with PACHT_SEED=%d\n%s", seed+i, strings.Join(m.said, "\n"))
			}
			c.check()
			c.empty()
		}
	})
}

// model plays random verbs of several owners, with current and stale tokens, against the
// store and against a handful of rows in memory. pacht.Next decides in both.
type model struct {
	*kase
	seed uint64
	rnd  *rand.Rand
	jobs []*modelJob
	now  time.Duration // how far the database has been aged
	said []string      // what was done, for whoever has to look at a failure
}

// modelJob is what a job should be.
type modelJob struct {
	id       pacht.ID
	max      int // original max_attempts
	status   pacht.Status
	facts    pacht.Facts
	token    pacht.Token
	owner    string
	due      time.Duration // when it may be claimed, on the model's clock
	until    time.Duration // when its lease ends
	ledger   []string
	outcomes map[pacht.Token]closed
}

// closed is how a lease ended: what a repeat is answered with.
type closed struct {
	outcome pacht.Outcome
	next    pacht.Status
}

func (m *model) play() {
	for range 1 + m.rnd.IntN(5) {
		f := pacht.Facts{MaxAttempts: 1 + m.rnd.IntN(6), MaxCrashes: 1 + m.rnd.IntN(3), TTL: 9*time.Minute + 30*time.Second, CrashPolicy: pacht.CrashRetry}
		if m.rnd.IntN(4) == 0 {
			f.CrashPolicy = pacht.CrashHold
		}
		id := m.one(pacht.MaxAttempts(f.MaxAttempts), pacht.MaxCrashes(f.MaxCrashes), pacht.TTL(f.TTL), pacht.OnCrash(f.CrashPolicy))
		m.jobs = append(m.jobs, &modelJob{id: id, max: f.MaxAttempts, status: pacht.Pending, facts: f, outcomes: map[pacht.Token]closed{}})
	}
	choice := []func(){m.doClaim, m.doClaim, m.doClaimID, m.doClaimID, m.doSettle, m.doSettle, m.doSettle, m.doSettleTx,
		m.doRenew, m.doStep, m.doExpire, m.doAge, m.doAge, m.doRetry, m.doCancel, m.doRelease, m.doResolve}
	for n := 0; n < verbs && !m.Failed(); n++ {
		choice[m.rnd.IntN(len(choice))]()
		m.compare()
	}
}

func (m *model) say(format string, args ...any) {
	m.said = append(m.said, fmt.Sprintf(format, args...))
}

func (m *model) pick() *modelJob   { return m.jobs[m.rnd.IntN(len(m.jobs))] }
func (m *model) someOwner() string { return fmt.Sprint("w", m.rnd.IntN(3)) }

// someRef is mostly the current lease, else one that was or never was.
func (m *model) someRef(j *modelJob) pacht.Ref {
	token := j.token
	if m.rnd.IntN(4) == 0 {
		token += pacht.Token(m.rnd.IntN(4) - 2)
	}
	return pacht.Ref{Job: j.id, Token: token}
}

func (m *model) held(j *modelJob, ref pacht.Ref) bool {
	return j.status == pacht.Processing && j.token == ref.Token
}

func (m *model) expired(j *modelJob) bool { return j.status == pacht.Processing && j.until < m.now }

// take opens a lease.
func (m *model) take(j *modelJob, owner string) {
	j.status, j.owner = pacht.Processing, owner
	j.token++
	j.facts.Attempt++
	j.until = m.now + j.facts.TTL
}

// close ends a held lease as pacht.Next says.
func (m *model) close(j *modelJob, s pacht.Settlement) pacht.Status {
	next := pacht.Next(j.facts, s)
	m.record(j, s.Outcome, next.Status)
	if s.Outcome != pacht.OutcomeReleased || s.Delay > 0 {
		j.due = m.now + next.Delay
	}
	j.status, j.owner = next.Status, ""
	j.facts.Attempt, j.facts.Crashes, j.facts.CancelRequested = next.Attempt, next.Crashes, false
	return next.Status
}

func (m *model) record(j *modelJob, outcome pacht.Outcome, next pacht.Status) {
	j.ledger = append(j.ledger, fmt.Sprintf("%d %s %s", j.token, outcome, next))
	j.outcomes[j.token] = closed{outcome, next}
}

// compare looks at every job and its whole ledger.
func (m *model) compare() {
	m.Helper()
	for _, j := range m.jobs {
		got := m.job(j.id)
		have := fmt.Sprint(got.Status, " token ", got.Token, " owner ", got.LeaseOwner, " max ", got.MaxAttempts)
		want := fmt.Sprint(j.status, " token ", j.token, " owner ", j.owner, " max ", j.facts.MaxAttempts)
		if j.status.Finished() {
			have, want = fmt.Sprint(got.Status, got.Token), fmt.Sprint(j.status, j.token)
		} else {
			have += fmt.Sprint(" attempt ", got.Attempt, " crashes ", got.Crashes, " cancel ", got.CancelRequested)
			want += fmt.Sprint(" attempt ", j.facts.Attempt, " crashes ", j.facts.Crashes, " cancel ", j.facts.CancelRequested)
		}
		m.same(fmt.Sprintf("after %q, job %d", m.said[len(m.said)-1], j.id), have, want)
		m.same("ledger", m.outcomes(j.id), strings.Join(j.ledger, ", "))
	}
}
