package history

import "github.com/pacht-queue/pacht"

// call is one call of a client, from its start to its answer.
type call struct {
	h         *History
	verb      verb
	client    int
	shaky     bool
	lossy     bool
	call, ret int64
	at        span
	aged      int64
}

func (r *Recorder) begins(v verb) *call {
	mono, wall := r.h.moment()
	r.h.mu.Lock()
	aged := r.h.aged
	r.h.mu.Unlock()
	return &call{h: r.h, verb: v, client: r.client, call: mono, at: span{wall - slack, forever}, ret: forever, aged: aged}
}

// returns notes that the answer is there.
func (r *Recorder) returns(c *call) {
	mono, wall := r.h.moment()
	c.ret, c.at.hi, c.shaky, c.lossy = mono, wall+slack, r.shaky, r.lossy
}

// event is what this call says of one job.
func (c *call) event(v verb, ref pacht.Ref) *event {
	return &event{verb: v, ref: ref, client: c.client, call: c.call, ret: c.ret, at: c.at, aged: c.aged, shaky: c.shaky}
}

// open is event for a call whose answer never came.
func (c *call) open(v verb, ref pacht.Ref) *event {
	e := c.event(v, ref)
	e.open, e.ret, e.at.hi = true, forever, forever
	return e
}
