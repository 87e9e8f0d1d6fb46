package history

import (
	"fmt"
	"strings"
	"time"

	"github.com/pacht-queue/pacht"
)

// verb is what one call did to one job.
type verb uint8

const (
	enqueued verb = iota + 1
	claimed       // by a claim of a queue
	claimedID
	missed // a claim by id took nothing
	listed // HeldBy named the lease
	absent // HeldBy did not name a lease of its owner
	renewed
	mayRenew // a renewal that may have been sent more than once: it may arrive later
	settled
	settledTx // in a transaction that was committed
	lockedTx  // in a transaction that was rolled back: the lease was held then, and stays
	expired
	retried
	cancelled
	released
	resolved
	looked // Job
	told   // Attempts
)

var verbNames = map[verb]string{
	enqueued: "enqueue", claimed: "claim", claimedID: "claim by id", missed: "claim by id, nothing", listed: "held by", absent: "not held by",
	renewed: "renew", mayRenew: "renewal under way", settled: "settle", settledTx: "settle in a transaction",
	lockedTx: "settle in a transaction, rolled back", expired: "expire", retried: "retry", cancelled: "cancel",
	released: "release", resolved: "resolve", looked: "read job", told: "read ledger",
}

func (v verb) String() string { return verbNames[v] }

// refusal is how an act was turned down.
type refusal uint8

const (
	done    refusal = iota
	lost            // *LeaseLostError
	wrong           // *StatusError
	already         // ErrAlreadySettled
	busy            // ErrBusy: nothing was written
)

// event is one call as far as it speaks of one job: what was asked, when, and the answer.
type event struct {
	verb      verb
	client    int
	call, ret int64 // by the monotonic clock, nanoseconds; decide what may be ordered before what
	at        span  // when it happened on the database's clock, at the widest
	aged      int64 // see History.Age
	// open: no answer came. It happened once at any time since the call, or never.
	open bool
	// sure: it happened, and only when is open: a later answer told of it.
	sure bool
	// shaky: its connection was broken on purpose meanwhile, so that the store may have
	// repeated it inside (R4).
	shaky bool

	ref    pacht.Ref
	owner  name     // who claims, acts, or held what was expired
	kinds  []string // asked for by a claim
	queue  string
	ends   pacht.Settlement
	to     pacht.Status // Resolve
	strict bool         // nothing else was under way: a claim that took nothing could have taken it

	// The answer.
	refused  refusal
	status   pacht.Status
	late     bool
	repeated bool
	extended bool
	cancel   bool
	now      int64
	until    int64
	crashes  int
	job      pacht.JobInfo
	loss     pacht.LeaseLostError
	holder   name // of a loss, or of a job
	ledger   []pacht.Attempt
	owners   []name // of the ledger
}

// us is a time of an answer on the clock of the history.
func (e *event) us(t time.Time) int64 { return t.UnixMicro() + e.aged }

// opened is the same call as if its answer were still out; nil if then it says nothing.
func (e *event) opened() *event {
	switch {
	case e.verb == missed || e.verb == listed || e.verb == absent || e.verb == lockedTx || e.verb == looked || e.verb == told || e.refused != done || e.repeated && !e.shaky:
		return nil
	}
	o := *e
	o.open, o.sure, o.at.hi, o.ret = true, false, forever, forever
	return &o
}

// String says what was asked and answered, for people who look for the reason.
func (e *event) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", e.verb, e.ref)
	if e.verb == settled || e.verb == settledTx || e.verb == lockedTx {
		fmt.Fprintf(&b, " %s", e.ends.Outcome)
		if e.ends.Delay > 0 {
			fmt.Fprintf(&b, " delay %s", e.ends.Delay)
		}
		if e.ends.Permanent {
			b.WriteString(" permanent")
		}
		if e.ends.GiveBack {
			b.WriteString(" give back")
		}
	}
	if e.verb == resolved {
		fmt.Fprintf(&b, " %s", e.to)
	}
	b.WriteString(" -> ")
	switch {
	case e.open && e.sure:
		b.WriteString("done, no answer")
	case e.open:
		b.WriteString("no answer")
	case e.refused == lost:
		fmt.Fprintf(&b, "lost: %s, token %d, %s", e.loss.Status, e.loss.Token, e.loss.Outcome)
	case e.refused == wrong:
		fmt.Fprintf(&b, "refused: %s", e.status)
	case e.refused == already:
		b.WriteString("settled before")
	case e.verb == claimed || e.verb == claimedID || e.verb == looked || e.verb == listed:
		j := e.job
		fmt.Fprintf(&b, "%s, token %d, attempt %d of %d, crashes %d of %d, owner %q, run_at %d, until %d", j.Status, j.Token,
			j.Attempt, j.MaxAttempts, j.Crashes, j.MaxCrashes, j.LeaseOwner, e.us(j.RunAt), e.us(j.LeaseUntil))
	case e.verb == renewed:
		fmt.Fprintf(&b, "extended %v to %d at %d, cancel %v", e.extended, e.until, e.now, e.cancel)
	case e.verb == expired:
		fmt.Fprintf(&b, "%s, crashes %d, was until %d, at %d", e.status, e.crashes, e.until, e.now)
	case e.verb == told:
		for _, a := range e.ledger {
			fmt.Fprintf(&b, "%d %s %s late %v attempt %d; ", a.Token, a.Outcome, a.NextStatus, a.Late, a.Attempt)
		}
	default:
		fmt.Fprintf(&b, "%s late %v repeated %v", e.status, e.late, e.repeated)
	}
	return b.String()
}

func (s lease) String() string {
	return fmt.Sprintf("%s, token %d, attempt %d of %d, crashes %d, cancel %v, owner #%d, run %v, until %v",
		s.status, s.token, s.attempt, s.max, s.crashes, s.cancel, s.owner, s.run, s.until)
}

// Calls lists the job's calls until the finding, one a line, in the order of their answers.
func (f Finding) Calls() string {
	var b strings.Builder
	for _, e := range f.events {
		fmt.Fprintf(&b, "  client %d, %d to %d, clock %d to %d: %s\n", e.client, e.call, e.ret, e.at.lo, e.at.hi, e)
	}
	return b.String()
}
