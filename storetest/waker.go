package storetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/pacht-queue/pacht"
)

func wakerCases(g *group) {
	g.run("a commit that brings a due job wakes who sleeps on its queue, and no other does", wakeDue)
	g.run("a look says which queues have due jobs of these kinds", lookDue)
	g.run("listening ends with its context, and with its store", func(c *kase) {
		e := c.listen(c.Store, "a")
		c.must(e.end())
		again := c.Reopen(c.T)
		e = c.listen(again, "a")
		c.must(again.Close())
		if err := e.wait(); !errors.Is(err, pacht.ErrClosed) {
			c.Errorf("closed while it listened: %v", err)
		}
		if err := again.Listen(c.ctx, "a", e.listener()); !errors.Is(err, pacht.ErrClosed) {
			c.Errorf("after the close: %v", err)
		}
	})
	g.run("a sleep that makes no sense is refused", func(c *kase) {
		for what, err := range map[string]error{
			"no owner":    c.Store.Sleep(c.ctx, "", []string{"q"}, time.Minute),
			"no queue":    c.Store.Sleep(c.ctx, "a", nil, time.Minute),
			"a bad queue": c.Store.Sleep(c.ctx, "a", []string{"no good"}, time.Minute),
			"no time":     c.Store.Sleep(c.ctx, "a", []string{"q"}, 0),
			"too long":    c.Store.Sleep(c.ctx, "a", []string{"q"}, 2*time.Hour),
			"rise":        c.Store.Rise(c.ctx, "a", []string{""}),
			"listen":      c.Store.Listen(c.ctx, "", pacht.Listener{}),
		} {
			var invalid *pacht.InvalidError
			if !errors.As(err, &invalid) {
				c.Errorf("%s: %v", what, err)
			}
		}
	})
}

// ear is one call of Listen.
type ear struct {
	works chan bool
	woken chan string
	stop  context.CancelFunc
	done  chan error
}

func (e *ear) listener() pacht.Listener {
	return pacht.Listener{
		Works: func(works bool, _ error) { e.works <- works },
		Wake:  func(queue string) { e.woken <- queue },
	}
}

// listen starts to listen, and returns once that works.
func (c *kase) listen(s Store, owner string) *ear {
	c.Helper()
	ctx, stop := context.WithCancel(c.ctx)
	e := &ear{works: make(chan bool, 100), woken: make(chan string, 100), stop: stop, done: make(chan error, 1)}
	go func() { e.done <- s.Listen(ctx, owner, e.listener()) }()
	c.Cleanup(func() { _ = e.end() })
	for works := false; !works; {
		select {
		case works = <-e.works:
		case <-c.ctx.Done():
			c.Fatal("listening does not begin to work")
		}
	}
	return e
}

func (e *ear) end() error {
	e.stop()
	return e.wait()
}

// wait waits for the end and may be called again.
func (e *ear) wait() error {
	err := <-e.done
	e.done <- err
	return err
}

// hears returns the next queue that was told of.
func (c *kase) hears(e *ear) string {
	c.Helper()
	select {
	case queue := <-e.woken:
		return queue
	case <-c.ctx.Done():
		c.Fatal("nothing is told of")
		return ""
	}
}

func wakeDue(c *kase) {
	e := c.listen(c.Store, "a")
	queues := []string{c.queue, c.queue + "b", c.queue + "c", c.queue + "d"}
	c.must(c.Store.Sleep(c.ctx, "a", queues, time.Minute))
	defer func() { c.must(c.Store.Rise(c.ctx, "a", queues)) }()

	// Notices come in the order of the commits, so the first that comes is the first that went
	// out: nothing tells of a job that is due later, of one that was there, or of none.
	c.one(pacht.RunIn(time.Hour))
	known := c.keyed("k", 1)
	known.Delay = time.Hour
	c.ask(known)
	c.ask(known)
	bad := c.new()
	bad.Kind = "no good"
	c.ask(bad)
	if tx, err := c.Begin(c.ctx); err == nil {
		_, err := tx.EnqueueTx(c.ctx, []pacht.NewJob{c.new()})
		c.must(err)
		c.must(tx.Rollback(c.ctx))
	}
	c.one(pacht.Queue(queues[1]))
	c.same("woken", c.hears(e), queues[1])

	// Many jobs are one notice for each queue.
	var jobs []pacht.NewJob
	for i := range 40 {
		j := c.new()
		j.Queue = queues[2+i%2]
		jobs = append(jobs, j)
	}
	c.enqueue(jobs...)
	got := []string{c.hears(e), c.hears(e)}
	slices.Sort(got)
	c.same("woken by many", strings.Join(got, " "), queues[2]+" "+queues[3])
	c.one()
	c.same("woken at last", c.hears(e), c.queue)
}

func lookDue(c *kase) {
	other := func(suffix string) string { return c.queue + suffix }
	c.one(pacht.Queue(other("due")), pacht.Priority(4))
	c.one(pacht.Queue(other("future")), pacht.RunIn(time.Hour))
	kind := c.new(pacht.Queue(other("kind")))
	kind.Kind = "other"
	c.enqueue(kind)
	c.one() // is claimed
	c.same("claimed", len(c.claim("a", 10)), 1)
	all := []string{other("due"), other("future"), other("kind"), other("none"), c.queue}
	for _, want := range []struct {
		queues, kinds, due []string
	}{
		{all, c.request("a", 1).Kinds, []string{other("due")}},
		{all, []string{"other"}, []string{other("kind")}},
		{all, append(c.request("a", 1).Kinds, "other"), []string{other("due"), other("kind")}},
		{all[1:], c.request("a", 1).Kinds, nil},
		{nil, c.request("a", 1).Kinds, nil},
	} {
		due, err := c.Store.Due(c.ctx, want.queues, want.kinds)
		c.must(err)
		slices.Sort(due.Queues)
		c.same("due", strings.Join(due.Queues, " "), strings.Join(want.due, " "))
		if due.Took < 0 || due.Took > patience {
			c.Errorf("the look took %s", due.Took)
		}
	}
}
