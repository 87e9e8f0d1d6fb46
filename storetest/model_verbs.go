package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/pacht-queue/pacht"
)

func (m *model) doAge() {
	d := []time.Duration{time.Minute, 5 * time.Minute, 11 * time.Minute, time.Hour}[m.rnd.IntN(4)]
	m.say("age %s", d)
	m.age(d)
	m.now += d
}

func (m *model) doClaim() {
	owner, limit := m.someOwner(), 1+m.rnd.IntN(3)
	var want []pacht.ID
	var due []*modelJob
	for _, j := range m.jobs {
		if j.status == pacht.Pending && j.due <= m.now {
			due = append(due, j)
		}
	}
	// The order between equal times is the store's to know; who is due is not.
	got := m.claim(owner, limit)
	m.say("claim %d by %s: %d of %d due", limit, owner, len(got), len(due))
	m.same("claimed", len(got), min(limit, len(due)))
	for _, j := range due {
		want = append(want, j.id)
	}
	for _, g := range got {
		if !slices.Contains(want, g.ID) {
			m.Errorf("claimed job %d, due are %v", g.ID, want)
			continue
		}
		for _, j := range due {
			if j.id == g.ID {
				m.take(j, owner)
			}
		}
	}
}

func (m *model) doClaimID() {
	j, owner := m.pick(), m.someOwner()
	f := j.facts
	want := j.status == pacht.Pending && j.due <= m.now
	steal := m.expired(j) && pacht.Next(f, pacht.Settlement{Outcome: pacht.OutcomeExpired}).Status == pacht.Pending
	_, ok, err := m.Store.ClaimID(m.ctx, owner, j.id)
	m.say("claim job %d by %s: %v", j.id, owner, ok)
	m.must(err)
	m.same("claimed by id", ok, want || steal)
	if steal {
		m.record(j, pacht.OutcomeExpired, pacht.Processing)
		j.facts.Crashes++
	}
	if want || steal {
		m.take(j, owner)
	}
}

// someEnd is any settlement of a lease.
func (m *model) someEnd(ref pacht.Ref) pacht.Settlement {
	outcomes := []pacht.Outcome{pacht.OutcomeCompleted, pacht.OutcomeFailed, pacht.OutcomeFailed, pacht.OutcomeFailed,
		pacht.OutcomeReleased, pacht.OutcomeSnoozed, pacht.OutcomeCancelled, pacht.OutcomeUnknown}
	return pacht.Settlement{Ref: ref, Outcome: outcomes[m.rnd.IntN(len(outcomes))], Delay: time.Duration(m.rnd.IntN(3)) * 3 * time.Minute,
		Permanent: m.rnd.IntN(8) == 0, GiveBack: m.rnd.IntN(4) == 0}
}

func (m *model) doSettle() {
	j := m.pick()
	s := m.someEnd(m.someRef(j))
	held, late := m.held(j, s.Ref), m.expired(j)
	got := m.settle(s.Ref, s.Outcome, func(to *pacht.Settlement) { *to = s })
	m.say("settle %s %s delay %s permanent %v give back %v: %v %v", s.Ref, s.Outcome, s.Delay, s.Permanent, s.GiveBack, got.Status, got.Err)
	before, wasClosed := j.outcomes[s.Ref.Token]
	switch {
	case held:
		want := m.close(j, s)
		m.same("answer", fmt.Sprint(got.Err, got.Status, got.Late, got.Repeated), fmt.Sprint(nil, want, late, false))
	case wasClosed && before.outcome == s.Outcome:
		m.same("answer to a repeat", fmt.Sprint(got.Err, got.Status, got.Repeated), fmt.Sprint(nil, before.next, true))
	default:
		lost := m.lost(got.Err, s.Ref)
		m.same("the error", fmt.Sprint(lost.Status, lost.Token, lost.Outcome), fmt.Sprint(j.status, j.token, before.outcome))
	}
}

func (m *model) doSettleTx() {
	j := m.pick()
	s := m.someEnd(m.someRef(j))
	held := m.held(j, s.Ref)
	tx := m.begin()
	err := tx.SettleTx(m.ctx, s)
	commit := m.rnd.IntN(3) > 0
	m.say("settle %s %s in a transaction, commit %v: %v", s.Ref, s.Outcome, commit, err)
	if held != (err == nil) {
		m.Errorf("settle of %s in a transaction: %v, held %v", s.Ref, err, held)
	}
	if !commit || err != nil {
		_ = tx.Rollback(m.ctx)
		return
	}
	m.must(tx.Commit(m.ctx))
	m.close(j, s)
}

func (m *model) doRenew() {
	j := m.pick()
	ref := m.someRef(j)
	want := pacht.RenewLost
	if m.held(j, ref) && !m.expired(j) {
		want = pacht.RenewExtended
		j.until = m.now + j.facts.TTL
	}
	got := m.renew(ref)
	m.say("renew %s: %s", ref, got.State)
	m.same("renewal", fmt.Sprint(got.State, got.CancelRequested), fmt.Sprint(want, want == pacht.RenewExtended && j.facts.CancelRequested))
}

func (m *model) doStep() {
	j := m.pick()
	ref := m.someRef(j)
	err := m.Store.SetStep(m.ctx, ref, "step", nil)
	m.say("step of %s: %v", ref, err)
	if m.held(j, ref) {
		m.must(err)
		return
	}
	m.lost(err, ref)
}

func (m *model) doExpire() {
	var want []string
	for _, j := range m.jobs {
		if m.expired(j) {
			next := m.close(j, pacht.Settlement{Outcome: pacht.OutcomeExpired})
			want = append(want, fmt.Sprint(j.id, next))
		}
	}
	var got []string
	for _, e := range m.watch().Expired {
		got = append(got, fmt.Sprint(e.Ref.Job, e.Next))
	}
	m.say("expire: %v", got)
	m.same("expired", fmt.Sprint(got), fmt.Sprint(want))
}

func (m *model) doRetry() {
	j := m.pick()
	ok := j.status == pacht.Stuck || j.status == pacht.Dead || j.status == pacht.Cancelled
	m.byHand("retry", j, ok, m.Store.Retry(m.ctx, j.id, act))
	if !ok {
		return
	}
	if j.status.Finished() {
		// The attempt that a release gave back before it was cancelled is not in the ledger:
		// either number may go on, and the maximum with it.
		got := m.job(j.id).Attempt
		if got != j.facts.Attempt && got != j.facts.Attempt+1 {
			m.Errorf("job %d goes on with attempt %d, the model has %d", j.id, got, j.facts.Attempt)
		}
		j.facts.Attempt = got
	}
	j.status, j.due = pacht.Pending, m.now
	j.facts.Crashes, j.facts.MaxAttempts = 0, j.facts.Attempt+j.max
}

func (m *model) doCancel() {
	j := m.pick()
	got, err := m.Store.Cancel(m.ctx, j.id, act)
	m.byHand("cancel", j, !j.status.Finished(), err)
	switch j.status {
	case pacht.Processing:
		j.facts.CancelRequested = true
		m.same("answer", got, pacht.Processing)
	case pacht.Pending, pacht.Stuck:
		m.same("answer", got, pacht.Cancelled)
		m.shut(j, pacht.OutcomeCancelled, pacht.Cancelled)
	}
}

// shut takes and closes a lease that nobody holds.
func (m *model) shut(j *modelJob, outcome pacht.Outcome, next pacht.Status) {
	j.token++
	m.record(j, outcome, next)
	j.status = next
}

func (m *model) doRelease() {
	j := m.pick()
	ref := m.someRef(j)
	ok := m.held(j, ref)
	got, err := m.Store.Release(m.ctx, ref, act)
	m.byHand("release", j, ok, err)
	if ok {
		m.same("answer", got, m.close(j, pacht.Settlement{Ref: ref, Outcome: pacht.OutcomeReleased}))
	}
}

func (m *model) doResolve() {
	j := m.pick()
	ref, to := m.someRef(j), []pacht.Status{pacht.Completed, pacht.Dead}[m.rnd.IntN(2)]
	ok := (j.status == pacht.Pending || j.status == pacht.Stuck) && ref.Token == j.token
	m.byHand("resolve", j, ok, m.Store.Resolve(m.ctx, ref, pacht.Resolution{Status: to}, act))
	if ok {
		m.shut(j, pacht.OutcomeResolved, to)
	}
}

func (m *model) byHand(verb string, j *modelJob, want bool, err error) {
	m.say("%s job %d, which is %s: %v", verb, j.id, j.status, err)
	if want != (err == nil) {
		m.Errorf("%s of job %d, which is %s with token %d: %v, want done %v", verb, j.id, j.status, j.token, err, want)
	}
}
