package history

import (
	"context"
	"errors"
	"fmt"

	"github.com/pacht-queue/pacht"
)

// Recorder is one client of a store: a pacht.Store that hands every call on and writes down
// those that concern leases. One call at a time: another client has another Recorder.
type Recorder struct {
	pacht.Store
	h      *History
	client int
	begin  Begin
	shaky  bool
	lossy  bool
}

var _ pacht.Store = (*Recorder)(nil)

// Recorder makes a client of the store. begin opens transactions for BeginTx; it may be nil.
func (h *History) Recorder(store pacht.Store, client int, begin Begin) *Recorder {
	return &Recorder{Store: store, h: h, client: client, begin: begin}
}

// Lossy says that this client's connections are broken on purpose now and then: an error of
// its calls is a lost answer, and not Trouble.
func (r *Recorder) Lossy() *Recorder { r.lossy = true; return r }

// Shaky says whether its connections are being broken just now, from before a call to after
// it: then the store may have repeated the call inside (R4), and an earlier try of it may
// arrive after the answer.
func (r *Recorder) Shaky(on bool) { r.shaky = on }

// Enqueue implements pacht.Enqueuer. The facts of the jobs must be said, not left to defaults.
func (r *Recorder) Enqueue(ctx context.Context, jobs []pacht.NewJob) ([]pacht.Enqueued, error) {
	c := r.begins(enqueued)
	got, err := r.Store.Enqueue(ctx, jobs)
	r.returns(c)
	if err != nil {
		r.h.troubled(c, err)
		return got, err
	}
	for i, g := range got {
		if g.Err != nil || g.Duplicate {
			continue
		}
		n := jobs[i]
		r.h.mu.Lock()
		r.h.jobs[g.ID] = &track{job: job{id: g.ID, kind: n.Kind, queue: n.Queue, max: int32(n.MaxAttempts), maxCrashes: int32(n.MaxCrashes),
			ttl: n.TTL, policy: n.CrashPolicy, delay: n.Delay}}
		r.h.mu.Unlock()
		r.h.add(c.event(enqueued, pacht.Ref{Job: g.ID}), "")
	}
	return got, nil
}

// Claim implements pacht.Leaser. An owner must not claim twice: if the answer is lost, the
// name is how the history knows what was taken.
func (r *Recorder) Claim(ctx context.Context, req pacht.ClaimRequest) (pacht.Claims, error) {
	c := r.begins(claimed)
	if room := req.Room; room != nil {
		req.Room = func() int {
			if n := room(); n > 0 {
				req.Limit = min(n, pacht.MaxBatch)
			}
			return req.Limit
		}
	}
	got, err := r.Store.Claim(ctx, req)
	r.returns(c)
	if err != nil {
		r.unanswered(c, req.Owner, err)
		return got, err
	}
	r.h.stamp(c, got.Now)
	if len(got.Jobs) > req.Limit {
		r.h.mu.Lock()
		r.h.count++
		r.h.find(c.event(claimed, pacht.Ref{}), fmt.Sprintf("R1: a claim took %d jobs and asked for %d", len(got.Jobs), req.Limit))
		r.h.mu.Unlock()
	}
	for _, j := range got.Jobs {
		e := c.event(claimed, j.Ref())
		e.kinds, e.queue, e.job = req.Kinds, req.Queue, j
		r.h.stamp(c, j.ClaimedAt)
		r.h.add(e, req.Owner)
	}
	return got, nil
}

// ClaimID implements pacht.Leaser. See Claim.
func (r *Recorder) ClaimID(ctx context.Context, owner string, id pacht.ID) (pacht.JobInfo, bool, error) {
	c := r.begins(claimedID)
	got, ok, err := r.Store.ClaimID(ctx, owner, id)
	r.returns(c)
	if err != nil {
		r.unanswered(c, owner, err)
		return got, ok, err
	}
	e := c.event(missed, pacht.Ref{Job: id})
	e.strict = r.h.alone
	if ok {
		r.h.stamp(c, got.ClaimedAt)
		e.verb, e.ref.Token, e.job = claimedID, got.Token, got
	}
	r.h.add(e, owner)
	return got, ok, nil
}

func (r *Recorder) unanswered(c *call, owner string, err error) {
	if invalid := (*pacht.InvalidError)(nil); errors.As(err, &invalid) {
		return
	}
	r.h.troubled(c, err)
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	e := c.open(c.verb, pacht.Ref{})
	e.owner = r.h.name(owner)
	r.h.claims = append(r.h.claims, e)
}

// HeldBy implements pacht.Leaser.
func (r *Recorder) HeldBy(ctx context.Context, owner string) (pacht.Claims, error) {
	c := r.begins(listed)
	got, err := r.Store.HeldBy(ctx, owner)
	r.returns(c)
	if err != nil {
		r.h.troubled(c, err)
		return got, err
	}
	r.h.mu.Lock()
	missing := map[pacht.ID]bool{}
	for id := range r.h.seen[r.h.name(owner)] {
		missing[id] = true
	}
	r.h.mu.Unlock()
	for _, j := range got.Jobs {
		delete(missing, j.ID)
		e := c.event(listed, j.Ref())
		e.job = j
		r.h.add(e, owner)
	}
	for id := range missing {
		r.h.add(c.event(absent, pacht.Ref{Job: id}), owner)
	}
	return got, nil
}

// Renew implements pacht.Leaser.
func (r *Recorder) Renew(ctx context.Context, refs []pacht.Ref) (pacht.Renewals, error) {
	c := r.begins(renewed)
	got, err := r.Store.Renew(ctx, refs)
	r.returns(c)
	if err != nil || c.shaky {
		// What was sent before the answer was lost may be carried out later.
		for _, ref := range refs {
			r.h.add(c.open(mayRenew, ref), "")
		}
	}
	if err != nil {
		r.h.troubled(c, err)
		return got, err
	}
	r.h.stamp(c, got.Now)
	for _, row := range got.Rows {
		if row.State == pacht.RenewBusy {
			continue
		}
		e := c.event(renewed, row.Ref)
		e.extended, e.cancel = row.State == pacht.RenewExtended, row.CancelRequested
		e.now, e.until = e.us(got.Now), e.us(row.LeaseUntil)
		r.h.add(e, "")
	}
	return got, nil
}

// Settle implements pacht.Leaser.
func (r *Recorder) Settle(ctx context.Context, batch []pacht.Settlement) ([]pacht.Settled, error) {
	c := r.begins(settled)
	got, err := r.Store.Settle(ctx, batch)
	r.returns(c)
	if err != nil {
		r.h.troubled(c, err)
		for _, s := range batch {
			e := c.open(settled, s.Ref)
			e.ends = s
			r.h.add(e, "")
		}
		return got, err
	}
	for i, g := range got {
		e := c.event(settled, batch[i].Ref)
		e.ends, e.status, e.late, e.repeated = batch[i], g.Status, g.Late, g.Repeated
		switch refused, ok := e.refuse(g.Err); {
		case !ok:
			r.h.troubled(c, g.Err)
			continue
		case refused == busy && c.shaky:
			// An earlier try of the same call may be what holds the row.
			e = c.open(settled, batch[i].Ref)
			e.ends = batch[i]
		case refused == busy:
			continue
		}
		r.h.add(e, "")
	}
	return got, nil
}

// refuse takes in an answer's error, if it is one that says what is the case.
func (e *event) refuse(err error) (refusal, bool) {
	var loss *pacht.LeaseLostError
	var status *pacht.StatusError
	switch {
	case err == nil:
		e.refused = done
	case errors.As(err, &loss):
		e.refused, e.loss = lost, *loss
	case errors.As(err, &status):
		e.refused, e.status = wrong, status.Status
	case errors.Is(err, pacht.ErrAlreadySettled):
		e.refused = already
	case errors.Is(err, pacht.ErrBusy):
		e.refused = busy
	default:
		return 0, false
	}
	return e.refused, true
}
