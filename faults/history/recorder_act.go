package history

import (
	"context"

	"github.com/pacht-queue/pacht"
)

// Expire implements pacht.Expirer.
func (r *Recorder) Expire(ctx context.Context, req pacht.ExpireRequest) (pacht.Pass, error) {
	c := r.begins(expired)
	pass, err := r.Store.Expire(ctx, req)
	r.returns(c)
	if err != nil {
		r.h.troubled(c, err)
		r.h.mu.Lock()
		r.h.passes = append(r.h.passes, c.open(expired, pacht.Ref{}))
		r.h.mu.Unlock()
		return pass, err
	}
	r.h.stamp(c, pass.Now)
	for _, x := range pass.Expired {
		e := c.event(expired, x.Ref)
		e.now, e.until, e.status, e.crashes = e.us(pass.Now), e.us(x.LeaseUntil), x.Next, x.Crashes
		r.h.add(e, x.Owner)
	}
	return pass, nil
}

// act writes down what was done by hand. change fills in what was asked.
func (r *Recorder) act(c *call, ref pacht.Ref, by string, status pacht.Status, err error, change func(*event)) {
	r.returns(c)
	e := c.event(c.verb, ref)
	e.status = status
	refused, ok := e.refuse(err)
	if !ok {
		r.h.troubled(c, err)
		e = c.open(c.verb, ref)
	}
	if refused == busy {
		return
	}
	if change != nil {
		change(e)
	}
	r.h.add(e, by)
}

// Retry implements pacht.Operator.
func (r *Recorder) Retry(ctx context.Context, id pacht.ID, act pacht.Act) error {
	c := r.begins(retried)
	err := r.Store.Retry(ctx, id, act)
	r.act(c, pacht.Ref{Job: id}, act.By, "", err, nil)
	return err
}

// Cancel implements pacht.Operator.
func (r *Recorder) Cancel(ctx context.Context, id pacht.ID, act pacht.Act) (pacht.Status, error) {
	c := r.begins(cancelled)
	status, err := r.Store.Cancel(ctx, id, act)
	r.act(c, pacht.Ref{Job: id}, act.By, status, err, nil)
	return status, err
}

// Release implements pacht.Operator.
func (r *Recorder) Release(ctx context.Context, ref pacht.Ref, act pacht.Act) (pacht.Status, error) {
	c := r.begins(released)
	status, err := r.Store.Release(ctx, ref, act)
	r.act(c, ref, act.By, status, err, nil)
	return status, err
}

// Resolve implements pacht.Operator.
func (r *Recorder) Resolve(ctx context.Context, ref pacht.Ref, res pacht.Resolution, act pacht.Act) error {
	c := r.begins(resolved)
	err := r.Store.Resolve(ctx, ref, res, act)
	r.act(c, ref, act.By, "", err, func(e *event) { e.to = res.Status })
	return err
}

// Job implements pacht.Reader.
func (r *Recorder) Job(ctx context.Context, id pacht.ID) (pacht.JobInfo, error) {
	c := r.begins(looked)
	got, err := r.Store.Job(ctx, id)
	r.returns(c)
	if err != nil {
		r.h.troubled(c, err)
		return got, err
	}
	e := c.event(looked, got.Ref())
	e.job = got
	r.h.add(e, "")
	return got, nil
}

// Attempts implements pacht.Reader.
func (r *Recorder) Attempts(ctx context.Context, id pacht.ID) ([]pacht.Attempt, error) {
	c := r.begins(told)
	got, err := r.Store.Attempts(ctx, id)
	r.returns(c)
	if err != nil {
		r.h.troubled(c, err)
		return got, err
	}
	e := c.event(told, pacht.Ref{Job: id})
	e.ledger = got
	r.h.add(e, "")
	return got, nil
}
