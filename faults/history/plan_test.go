package history

import (
	"math/rand/v2"
	"time"

	"github.com/pacht-queue/pacht"
)

// plan is one step of a client, drawn before anything is known of what came before: the same
// seed gives every client the same plans. Which job a claim gets, and which token is current
// when a step comes to it, the seed does not fix.
type plan struct {
	verb   string
	jobs   []int // of the wave
	stale  int   // tokens behind the one that is known
	ends   pacht.Settlement
	to     pacht.Status
	limit  int
	kinds  []string
	commit bool
	ignore bool // commit although the settle was refused
	pause  time.Duration
	fault  fault
	after  time.Duration // the fault comes
}

// fault is what happens to the connection, or the answer, of one step.
type fault int

const (
	none   fault = iota
	answer       // carried out, and its answer lost
	cut          // cut at some moment: carried out or not
)

// verbs with their weights. Few things end a job for good, so that histories stay alive.
var verbs = []struct {
	name   string
	weight int
}{
	{"claim", 12}, {"claim id", 13}, {"settle", 20}, {"settle tx", 6}, {"renew", 13}, {"expire", 8}, {"retry", 8},
	{"cancel", 5}, {"release", 4}, {"resolve", 2}, {"held", 3}, {"job", 4}, {"ledger", 2}, {"again", 4},
}

var kinds = [][]string{{"a"}, {"b"}, {"a", "b"}, {"a", "b"}}

var endings = []pacht.Outcome{
	pacht.OutcomeCompleted, pacht.OutcomeCompleted, pacht.OutcomeFailed, pacht.OutcomeFailed, pacht.OutcomeFailed, pacht.OutcomeFailed,
	pacht.OutcomeReleased, pacht.OutcomeReleased, pacht.OutcomeSnoozed, pacht.OutcomeSnoozed, pacht.OutcomeCancelled, pacht.OutcomeUnknown,
}

// drawer draws plans for one client. delays are what a settle may put off a job by.
type drawer struct {
	rnd    *rand.Rand
	jobs   int
	delays []time.Duration
	faulty bool
	total  int
}

func newDrawer(rnd *rand.Rand, jobs int, faulty bool, delays ...time.Duration) *drawer {
	d := &drawer{rnd: rnd, jobs: jobs, delays: delays, faulty: faulty}
	for _, v := range verbs {
		d.total += v.weight
	}
	return d
}

func (d *drawer) next() plan {
	p := plan{limit: 1 + d.rnd.IntN(3), kinds: kinds[d.rnd.IntN(len(kinds))], commit: d.rnd.IntN(4) > 0, ignore: d.rnd.IntN(3) == 0, to: pacht.Dead}
	n := d.rnd.IntN(d.total)
	for _, v := range verbs {
		if n -= v.weight; n < 0 {
			p.verb = v.name
			break
		}
	}
	first, many := d.rnd.IntN(d.jobs), 1+d.rnd.IntN(3)*d.rnd.IntN(2)
	for i := range many {
		p.jobs = append(p.jobs, (first+i)%d.jobs)
	}
	if d.rnd.IntN(4) == 0 {
		p.stale = 1 + d.rnd.IntN(2)
	}
	if d.rnd.IntN(3) == 0 {
		p.to = pacht.Completed
	}
	p.ends = pacht.Settlement{Outcome: endings[d.rnd.IntN(len(endings))], Permanent: d.rnd.IntN(10) == 0, GiveBack: d.rnd.IntN(5) == 0}
	if p.ends.Outcome != pacht.OutcomeCompleted && p.ends.Outcome != pacht.OutcomeCancelled {
		p.ends.Delay = d.delays[d.rnd.IntN(len(d.delays))]
	}
	if d.rnd.IntN(12) == 0 {
		p.pause = time.Duration(d.rnd.IntN(30)) * time.Millisecond
	}
	breaks := d.rnd.IntN(8)
	p.after = time.Duration(d.rnd.IntN(2000)) * time.Microsecond
	if d.faulty && breaks < 2 {
		p.fault = []fault{answer, cut}[breaks]
	}
	return p
}

// newJob draws the facts of a job; the TTL is one of those given.
func newJob(rnd *rand.Rand, queue string, ttls, delays []time.Duration) pacht.NewJob {
	n := pacht.NewJob{
		Kind: "a", Queue: queue, Args: []byte(`{}`), Priority: 1 + rnd.IntN(4),
		MaxAttempts: 1 + rnd.IntN(6), MaxCrashes: 1 + rnd.IntN(3), TTL: ttls[rnd.IntN(len(ttls))], CrashPolicy: pacht.CrashRetry,
	}
	if rnd.IntN(2) == 0 {
		n.Kind = "b"
	}
	if rnd.IntN(4) == 0 {
		n.CrashPolicy = pacht.CrashHold
	}
	if rnd.IntN(4) == 0 {
		n.Delay = delays[rnd.IntN(len(delays))]
	}
	return n
}
