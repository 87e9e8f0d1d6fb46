package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/pacht-queue/pacht"
)

// intent is a well-formed one.
func intent(name string) pacht.EffectIntent {
	return pacht.EffectIntent{Name: name, Key: "key of " + name, Reference: "reference of " + name, Request: json.RawMessage(`{"n": 9007199254740993}`)}
}

// intend asks for a call, which must be allowed or not as wanted.
func (c *kase) intend(want bool, ref pacht.Ref, in pacht.EffectIntent) pacht.EffectBegun {
	c.Helper()
	b, err := c.Store.BeginEffect(c.ctx, ref, in)
	c.must(err)
	if b.Begun != want {
		c.Fatalf("begin %s of %s: begun %t, want %t; %+v", in.Name, ref, b.Begun, want, b.Effect)
	}
	return b
}

// answer stores what became of a call, which must be accepted.
func (c *kase) answer(e pacht.Effect, state pacht.EffectState, change ...func(*pacht.EffectAnswer)) pacht.Effect {
	c.Helper()
	got, err := c.tell(e, state, change...)
	c.must(err)
	c.same("state", got.State, state)
	return got
}

func (c *kase) tell(e pacht.Effect, state pacht.EffectState, change ...func(*pacht.EffectAnswer)) (pacht.Effect, error) {
	a := pacht.EffectAnswer{Job: e.Job, Name: e.Name, Rev: e.Rev, State: state}
	for _, f := range change {
		f(&a)
	}
	return c.Store.AnswerEffect(c.ctx, a)
}

// called is an effect whose intent is written and whose answer is not, of a job that a holds.
func (c *kase) called(name string, opts ...pacht.Option) (pacht.JobInfo, pacht.Effect) {
	c.Helper()
	held := c.take("a", opts...)
	return held, c.intend(true, held.Ref(), intent(name)).Effect
}

func (c *kase) effects(id pacht.ID) string {
	c.Helper()
	list, err := c.Store.Effects(c.ctx, id)
	c.must(err)
	text := ""
	for _, e := range list {
		text += fmt.Sprintf("%s %s rev %d, token %d, %d calls; ", e.Name, e.State, e.Rev, e.Token, e.Calls)
	}
	return text
}

func effectCases(g *group) {
	g.run("R10/an intent is durable, fixes key and reference, renews the lease, and is written once", effectBegins)
	g.run("R3, R7, R10/an intent under a lease that is not ours, or over, is refused and not written", effectFenced)
	g.run("R3, R10/an intent and a claim of the expired lease at once: the claim finds no intent, or no lease that is over", effectRace)
	g.run("R3, R10/an intent waits for who has locked the lease, and looks at the clock after that", effectWaits)
	g.run("R10/of several calls at once under one lease, one is made", func(c *kase) {
		stores := []Store{c.Store, c.Reopen(c.T)}
		for range 20 {
			held := c.take("a")
			var begun atomic.Int32
			c.together(6, func(i int) {
				b, err := stores[i%2].BeginEffect(c.ctx, held.Ref(), intent("charge"))
				if err != nil || b.Effect.State != pacht.EffectCalled || b.Effect.Rev != 1 {
					c.Errorf("%+v, %v", b, err)
				}
				if b.Begun {
					begun.Add(1)
				}
			})
			c.same("begun", begun.Load(), int32(1))
		}
	})
	g.run("R10/a ready effect is called again when its time has come, with the first key and reference", effectReady)
	g.run("R10/an open effect is called again only at the rev that was looked at", func(c *kase) {
		held, e := c.called("charge")
		in := intent("charge")
		c.intend(false, held.Ref(), in)
		in.Again = e.Rev + 1
		c.intend(false, held.Ref(), in)
		in.Again = e.Rev
		e = c.intend(true, held.Ref(), in).Effect
		c.intend(false, held.Ref(), in) // at that rev it was done
		c.same("effect", c.effects(held.ID), "charge called rev 2, token 1, 2 calls; ")
		e = c.answer(e, pacht.EffectUnknown)
		c.same("rev", e.Rev, int64(3))
		c.age(2 * pacht.DefaultTTL)
		held = c.claimID("b", held.ID)
		in.Again = 3
		e = c.intend(true, held.Ref(), in).Effect
		c.same("effect", c.effects(held.ID), "charge called rev 4, token 2, 3 calls; ")
		c.same("answered", e.AnsweredAt.IsZero(), true)
		for _, final := range []pacht.EffectState{pacht.EffectSucceeded, pacht.EffectFailed} {
			held, e := c.called("charge")
			in.Again = c.answer(e, final).Rev
			c.same("a final one", c.intend(false, held.Ref(), in).Effect.State, final)
		}
	})
	g.run("a job has an effect of each name", func(c *kase) {
		held := c.take("a")
		for _, name := range []string{"refund", "Mail", "charge"} {
			c.intend(true, held.Ref(), intent(name))
		}
		c.same("effects", c.effects(held.ID), "Mail called rev 1, token 1, 1 calls; charge called rev 1, token 1, 1 calls; refund called rev 1, token 1, 1 calls; ")
	})
	g.run("an intent that makes no sense is refused by field, and changes nothing", effectInvalid)
	answerCases(g)
	openEffectCases(g)
}

func effectBegins(c *kase) {
	held := c.take("a", pacht.TTL(time.Minute))
	c.age(30 * time.Second)
	b := c.intend(true, held.Ref(), intent("charge"))
	after := c.job(held.ID)
	c.same("lease until", after.LeaseUntil.Equal(b.LeaseUntil), true)
	c.near("lease until", b.LeaseUntil, b.Now.Add(time.Minute-time.Second))
	c.near("now", b.Now, c.now().Add(-10*time.Second))
	e := b.Effect
	c.same("effect", fmt.Sprint(e.Job, e.Name, e.State, e.Rev, e.Key, e.Reference, string(e.Request), e.Token, e.Calls, string(e.Answer), e.Error),
		fmt.Sprint(held.ID, "charge", pacht.EffectCalled, 1, "key of charge", "reference of charge", `{"n": 9007199254740993}`, 1, 1, "", ""))
	c.same("times", e.FirstCalledAt.Equal(b.Now) && e.CalledAt.Equal(b.Now) && e.AnsweredAt.IsZero() && e.NotBefore.IsZero(), true)
	seen, err := c.Reopen(c.T).Effects(c.ctx, held.ID)
	c.must(err)
	c.same("what another process sees", fmt.Sprint(seen), fmt.Sprint([]pacht.Effect{e}))

	c.age(30 * time.Second)
	other := intent("charge")
	other.Key, other.Reference, other.Request = "other", "other", nil
	again := c.intend(false, held.Ref(), other)
	c.same("the key stays", again.Effect.Key+again.Effect.Reference, "key of chargereference of charge")
	c.near("renewed all the same", again.LeaseUntil, again.Now.Add(time.Minute-time.Second))
	c.same("effect", c.effects(held.ID), "charge called rev 1, token 1, 1 calls; ")
	c.same("no effects of others", c.effects(c.one()), "")
}

// effectRefused asserts that no intent is written under this lease, nor anything else.
func (c *kase) effectRefused(ref pacht.Ref) pacht.LeaseLostError {
	c.Helper()
	before, effects := c.lease(ref.Job), c.effects(ref.Job)
	b, err := c.Store.BeginEffect(c.ctx, ref, intent("charge"))
	if b.Begun {
		c.Error("the call was allowed")
	}
	lost := c.lost(err, ref)
	c.same("the row", c.lease(ref.Job), before)
	c.same("effects", c.effects(ref.Job), effects)
	return lost
}

func effectFenced(c *kase) {
	stale, held := c.usurped()
	lost := c.effectRefused(stale.Ref())
	c.heldByB(&lost, stale, held)
	c.effectRefused(pacht.Ref{Job: held.ID, Token: held.Token + 1})
	c.effectRefused(pacht.Ref{Job: 1 << 40, Token: 1})
	for _, outcome := range []pacht.Outcome{pacht.OutcomeCompleted, pacht.OutcomeFailed, pacht.OutcomeUnknown} {
		held := c.take("a")
		c.close(held.Ref(), outcome)
		c.same("how it was closed", c.effectRefused(held.Ref()).Outcome, outcome)
	}
	past := c.take("a")
	c.age(2 * pacht.DefaultTTL)
	c.same("past its time", c.effectRefused(past.Ref()).Status, pacht.Processing)
	c.same("closed late all the same", c.close(past.Ref(), pacht.OutcomeFailed).Late, true)
}

func effectRace(c *kase) {
	stores := []Store{c.Store, c.Reopen(c.T)}
	began, claimed := 0, 0
	for range 40 {
		held := c.take("a", pacht.TTL(time.Second), pacht.MaxCrashes(100))
		c.age(time.Second - 2*time.Millisecond)
		var b pacht.EffectBegun
		taken := false
		c.together(2, func(i int) {
			if i == 0 {
				var err error
				if b, err = stores[0].BeginEffect(c.ctx, held.Ref(), intent("charge")); err != nil && !errors.Is(err, pacht.ErrLeaseLost) {
					c.Errorf("begin: %v", err)
				}
				return
			}
			for range 4 {
				_, ok, err := stores[1].ClaimID(c.ctx, "b", held.ID)
				if taken = taken || ok; err != nil {
					c.Errorf("claim: %v", err)
				}
			}
		})
		want := ""
		if b.Begun {
			began++
			want = "charge called rev 1, token 1, 1 calls; "
		}
		c.same("effects", c.effects(held.ID), want)
		if taken {
			claimed++
			if j := c.job(held.ID); b.Begun && j.ClaimedAt.Before(b.LeaseUntil) {
				c.Errorf("claimed at %s, and the lease of the intent lasts until %s", j.ClaimedAt, b.LeaseUntil)
			}
		}
	}
	c.Logf("%d begun, %d claimed", began, claimed)
}

func effectWaits(c *kase) {
	for _, end := range []string{"commit", "rollback", "rollback past lease_until"} {
		ttl := time.Minute
		if end == "rollback past lease_until" {
			ttl = 300 * time.Millisecond
		}
		held := c.take("a", pacht.TTL(ttl))
		tx := c.begin()
		c.must(tx.SettleTx(c.ctx, pacht.Settlement{Ref: held.Ref(), Outcome: pacht.OutcomeCompleted}))
		answer := make(chan error, 1)
		go func() {
			_, err := c.Store.BeginEffect(c.ctx, held.Ref(), intent("charge"))
			answer <- err
		}()
		if ttl < time.Second {
			for c.now().Before(held.LeaseUntil.Add(20 * time.Millisecond)) {
				time.Sleep(10 * time.Millisecond)
			}
		}
		if end == "commit" {
			c.must(tx.Commit(c.ctx))
		} else {
			c.must(tx.Rollback(c.ctx))
		}
		err := <-answer
		if end == "rollback" {
			c.must(err)
			c.same(end, c.effects(held.ID), "charge called rev 1, token 1, 1 calls; ")
			continue
		}
		c.lost(err, held.Ref())
		c.same(end, c.effects(held.ID), "")
	}
}

func effectReady(c *kase) {
	held, e := c.called("charge", pacht.TTL(12*time.Hour))
	first := e
	e = c.answer(e, pacht.EffectReady, func(a *pacht.EffectAnswer) { a.Wait, a.Error = time.Hour, "429" })
	c.near("not before", e.NotBefore, c.now().Add(time.Hour-10*time.Second))
	c.same("answer", fmt.Sprintf("%d %s %t", e.Rev, e.Error, e.AnsweredAt.IsZero()), "2 429 false")
	c.close(held.Ref(), pacht.OutcomeFailed)
	held = c.claimID("b", held.ID)
	in := intent("charge")
	in.Key, in.Reference = "other", "other"
	c.age(50 * time.Minute)
	waiting := c.intend(false, held.Ref(), in)
	c.same("before its time", fmt.Sprintf("%s %t", waiting.Effect.State, waiting.Effect.NotBefore.After(waiting.Now)), "ready true")
	c.age(10 * time.Minute)
	b := c.intend(true, held.Ref(), in)
	c.same("effect", c.effects(held.ID), "charge called rev 3, token 2, 2 calls; ")
	c.same("key and reference", b.Effect.Key+b.Effect.Reference, first.Key+first.Reference)
	c.same("called at", b.Effect.CalledAt.Equal(b.Now) && b.Effect.FirstCalledAt.Before(b.Effect.CalledAt.Add(-time.Hour)), true)
	c.same("not before", b.Effect.NotBefore.IsZero() && b.Effect.AnsweredAt.IsZero(), true)
}

func effectInvalid(c *kase) {
	held := c.take("a")
	before := c.lease(held.ID)
	long := make([]byte, pacht.MaxKeyBytes+1)
	for i := range long {
		long[i] = 'k'
	}
	for what, bad := range map[string]func(*pacht.EffectIntent){
		"no name":          func(i *pacht.EffectIntent) { i.Name = "" },
		"a name with \x00": func(i *pacht.EffectIntent) { i.Name = "a\x00" },
		"no key":           func(i *pacht.EffectIntent) { i.Key = "" },
		"a long key":       func(i *pacht.EffectIntent) { i.Key = string(long) },
		"no reference":     func(i *pacht.EffectIntent) { i.Reference = "" },
		"bad reference":    func(i *pacht.EffectIntent) { i.Reference = "\xff" },
		"no JSON":          func(i *pacht.EffectIntent) { i.Request = json.RawMessage("{") },
		"below 0":          func(i *pacht.EffectIntent) { i.Again = -1 },
	} {
		in := intent("charge")
		bad(&in)
		var invalid *pacht.InvalidError
		if b, err := c.Store.BeginEffect(c.ctx, held.Ref(), in); !errors.As(err, &invalid) || b.Begun {
			c.Errorf("%s: %+v, %v", what, b, err)
		}
	}
	c.same("effects", c.effects(held.ID), "")
	c.same("the row", c.lease(held.ID), before)
}
