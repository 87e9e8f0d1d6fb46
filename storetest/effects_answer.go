package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pacht-queue/pacht"
)

func answerCases(g *group) {
	g.run("R10/the answer to a call is stored with its time, and the rev grows by one", func(c *kase) {
		for _, state := range []pacht.EffectState{pacht.EffectReady, pacht.EffectUnknown, pacht.EffectSucceeded, pacht.EffectFailed} {
			_, e := c.called("charge")
			got := c.answer(e, state, func(a *pacht.EffectAnswer) {
				a.Error = "a\x00b" // made storable (R12)
				if state == pacht.EffectSucceeded {
					a.Answer, a.Error = json.RawMessage(`{"id": 9007199254740993}`), ""
				}
			})
			want := `2  a` + "\uFFFD" + `b`
			if state == pacht.EffectSucceeded {
				want = `2 {"id": 9007199254740993} `
			}
			c.same(string(state), fmt.Sprint(got.Rev, " ", string(got.Answer), " ", got.Error), want)
			c.near("answered at", got.AnsweredAt, c.now().Add(-10*time.Second))
			list, err := c.Store.Effects(c.ctx, e.Job)
			c.must(err)
			c.same("as listed", fmt.Sprint(list), fmt.Sprint([]pacht.Effect{got}))
		}
	})
	g.run("R10/an answer is guarded by the rev that it speaks of", func(c *kase) {
		held, e := c.called("charge")
		in := intent("charge")
		in.Again = e.Rev
		second := c.intend(true, held.Ref(), in).Effect
		for _, state := range []pacht.EffectState{pacht.EffectReady, pacht.EffectUnknown, pacht.EffectFailed} {
			for _, rev := range []int64{e.Rev, second.Rev + 1, 0} {
				e.Rev = rev
				got, err := c.tell(e, state)
				c.refusedAnswer(err, state, second)
				c.same("the effect as it stands", got.State, pacht.EffectCalled)
			}
		}
		c.same("effect", c.effects(held.ID), "charge called rev 2, token 1, 2 calls; ")
		e = c.answer(second, pacht.EffectUnknown)
		e = c.answer(e, pacht.EffectReady)
		e = c.answer(e, pacht.EffectUnknown)
		c.answer(e, pacht.EffectFailed)
		c.same("effect", c.effects(held.ID), "charge failed rev 6, token 1, 2 calls; ")
	})
	g.run("R10/a late success is stored whatever the rev, also when the lease is gone", func(c *kase) {
		answer := func(a *pacht.EffectAnswer) { a.Answer = json.RawMessage(`"late"`) }
		for _, meanwhile := range []func(pacht.JobInfo, pacht.Effect){
			func(pacht.JobInfo, pacht.Effect) {},
			func(_ pacht.JobInfo, e pacht.Effect) { c.answer(e, pacht.EffectUnknown) },
			func(_ pacht.JobInfo, e pacht.Effect) { c.answer(e, pacht.EffectReady) },
			func(held pacht.JobInfo, e pacht.Effect) {
				in := intent("charge")
				in.Again = e.Rev
				c.intend(true, held.Ref(), in)
			},
		} {
			held, e := c.called("charge")
			meanwhile(held, e)
			c.age(2 * pacht.DefaultTTL)
			b := c.claimID("b", held.ID)
			got := c.answer(e, pacht.EffectSucceeded, answer)
			c.same("answer", string(got.Answer)+got.Error, `"late"`)
			seen := c.intend(false, b.Ref(), intent("charge"))
			c.same("what the new holder finds", string(seen.Effect.Answer), `"late"`)
			c.close(b.Ref(), pacht.OutcomeCompleted)
		}
	})
	g.run("R10/what is final is never changed", func(c *kase) {
		states := []pacht.EffectState{pacht.EffectReady, pacht.EffectUnknown, pacht.EffectSucceeded, pacht.EffectFailed}
		for _, final := range []pacht.EffectState{pacht.EffectSucceeded, pacht.EffectFailed} {
			_, e := c.called("charge")
			first := c.answer(e, final, func(a *pacht.EffectAnswer) {
				if final == pacht.EffectSucceeded {
					a.Answer = json.RawMessage(`1`)
				}
			})
			for _, rev := range []int64{e.Rev, first.Rev} {
				for _, state := range states {
					e.Rev = rev
					got, err := c.tell(e, state, func(a *pacht.EffectAnswer) {
						if state == pacht.EffectSucceeded {
							a.Answer = json.RawMessage(`2`)
						}
					})
					if state == final {
						c.must(err) // it says the same already
					} else {
						c.refusedAnswer(err, state, first)
					}
					c.same("as it stands", fmt.Sprint(got), fmt.Sprint(first))
				}
			}
		}
	})
	g.run("R10/an answer whose own answer was lost may be given again", func(c *kase) {
		for _, state := range []pacht.EffectState{pacht.EffectReady, pacht.EffectUnknown, pacht.EffectSucceeded, pacht.EffectFailed} {
			_, e := c.called("charge")
			first := c.answer(e, state)
			c.same("repeated", fmt.Sprint(c.answer(e, state)), fmt.Sprint(first))
		}
	})
	g.run("an answer that makes no sense is refused by field, and changes nothing", func(c *kase) {
		held, e := c.called("charge")
		for what, bad := range map[string]func(*pacht.EffectAnswer){
			"no name":       func(a *pacht.EffectAnswer) { a.Name = "" },
			"called":        func(a *pacht.EffectAnswer) { a.State = pacht.EffectCalled },
			"no state":      func(a *pacht.EffectAnswer) { a.State = "" },
			"no JSON":       func(a *pacht.EffectAnswer) { a.Answer = json.RawMessage("{") },
			"NUL in JSON":   func(a *pacht.EffectAnswer) { a.Answer = json.RawMessage(`"\u0000"`) },
			"wait, final":   func(a *pacht.EffectAnswer) { a.Wait = time.Second },
			"wait below 0":  func(a *pacht.EffectAnswer) { a.State, a.Wait = pacht.EffectReady, -1 },
			"wait too long": func(a *pacht.EffectAnswer) { a.State, a.Wait = pacht.EffectReady, pacht.MaxDelay+1 },
		} {
			var invalid *pacht.InvalidError
			if _, err := c.tell(e, pacht.EffectSucceeded, bad); !errors.As(err, &invalid) {
				c.Errorf("%s: %v", what, err)
			}
		}
		for what, other := range map[string]pacht.Effect{"another name": {Job: e.Job, Name: "refund", Rev: 1}, "no job": {Job: 1 << 40, Name: "charge", Rev: 1}} {
			if _, err := c.tell(other, pacht.EffectSucceeded); !errors.Is(err, pacht.ErrNotFound) {
				c.Errorf("%s: %v", what, err)
			}
		}
		c.same("effect", c.effects(held.ID), "charge called rev 1, token 1, 1 calls; ")
	})
}

func (c *kase) refusedAnswer(err error, asked pacht.EffectState, stands pacht.Effect) {
	c.Helper()
	var refused *pacht.EffectError
	if !errors.As(err, &refused) {
		c.Errorf("%s was accepted, or refused with %v", asked, err)
		return
	}
	c.same("what the error says", fmt.Sprint(refused.Asked, refused.Effect), fmt.Sprint(asked, stands))
}

func openEffectCases(g *group) {
	g.run("R10/open effects are those that nobody knows of and nobody is at", func(c *kase) {
		held, called := c.called("held")
		c.same("open", c.open(), "")
		_, unknown := c.called("unknown")
		c.answer(unknown, pacht.EffectUnknown)
		closed, _ := c.called("closed")
		c.close(closed.Ref(), pacht.OutcomeUnknown)
		for _, state := range []pacht.EffectState{pacht.EffectReady, pacht.EffectSucceeded, pacht.EffectFailed} {
			_, e := c.called(string(state))
			c.answer(e, state)
		}
		c.same("open", c.open(), fmt.Sprintf("%d unknown, %d closed, ", unknown.Job, closed.ID))
		c.age(2 * pacht.DefaultTTL)
		c.same("open, past lease_until", c.open(), fmt.Sprintf("%d held, %d unknown, %d closed, ", held.ID, unknown.Job, closed.ID))
		again := c.claimID("b", held.ID)
		c.same("open, taken by another", c.open(), fmt.Sprintf("%d held, %d unknown, %d closed, ", held.ID, unknown.Job, closed.ID))
		in := intent("held")
		in.Again = called.Rev
		c.intend(true, again.Ref(), in)
		c.same("open, called by the other", c.open(), fmt.Sprintf("%d unknown, %d closed, ", unknown.Job, closed.ID))
	})
	g.run("R10/open effects come by job and name, page by page", func(c *kase) {
		want := ""
		for range 5 {
			held := c.take("a")
			for _, name := range []string{"b", "a", "B"} {
				c.intend(true, held.Ref(), intent(name))
			}
			c.close(held.Ref(), pacht.OutcomeUnknown)
			want += fmt.Sprintf("%d B, %[1]d a, %[1]d b, ", held.ID)
		}
		for _, limit := range []int{1, 2, 7, 15, 1000} {
			got, pages := "", 0
			for after := (pacht.EffectCursor{}); ; pages++ {
				list, err := c.Store.OpenEffects(c.ctx, after, limit)
				c.must(err)
				if len(list) > limit {
					c.Errorf("%d for a limit of %d", len(list), limit)
				}
				if len(list) == 0 {
					break
				}
				for _, e := range list {
					got += fmt.Sprintf("%d %s, ", e.Job, e.Name)
					after = pacht.EffectCursor{Job: e.Job, Name: e.Name}
				}
			}
			c.same(fmt.Sprintf("pages of %d", limit), got, want)
		}
		for _, limit := range []int{0, -1, 1001} {
			var invalid *pacht.InvalidError
			if _, err := c.Store.OpenEffects(c.ctx, pacht.EffectCursor{}, limit); !errors.As(err, &invalid) {
				c.Errorf("limit %d: %v", limit, err)
			}
		}
	})
	g.run("R10/a job goes with its effects, and not before they have an answer", func(c *kase) {
		for _, sweeps := range []bool{false, true} {
			for _, answered := range []bool{false, true} {
				held, e := c.called("charge")
				if answered {
					c.answer(e, pacht.EffectFailed)
				}
				c.close(held.Ref(), pacht.OutcomeUnknown)
				_, err := c.Store.Cancel(c.ctx, held.ID, act)
				c.must(err)
				c.age(time.Hour)
				want := 0
				if answered {
					want = 1
				}
				if sweeps {
					got, err := c.Store.Sweep(c.ctx, pacht.SweepRequest{By: "s", Target: pacht.SweepCancelled, Limit: 100, Period: time.Minute, Force: true})
					c.must(err)
					c.same("swept", got.Removed, want)
				} else {
					c.prune(pacht.Cancelled, want)
				}
				c.same("effects left", c.query("SELECT count(*) FROM {effects} WHERE job_id = %d", held.ID)[0], fmt.Sprint(1-want))
			}
		}
	})
	g.run("R10/Check finds an effect without an answer in a job that its holder completed, and effects of nobody", func(c *kase) {
		c.tampered = true
		held, _ := c.called("charge")
		c.close(held.Ref(), pacht.OutcomeCompleted)
		orphan, _ := c.called("orphan")
		c.close(orphan.Ref(), pacht.OutcomeUnknown)
		for _, table := range []string{"attempts", "leases", "jobs"} {
			c.sql("DELETE FROM {%s} WHERE job_id = %d", table, orphan.ID)
		}
		forged, _ := c.called("forged")
		c.sql("UPDATE {effects} SET token = 9 WHERE job_id = %d", forged.ID)
		byHand, _ := c.called("charge") // a person may know better
		c.close(byHand.Ref(), pacht.OutcomeUnknown)
		c.must(c.Store.Resolve(c.ctx, byHand.Ref(), pacht.Resolution{Status: pacht.Completed}, act))
		found, err := c.Store.Check(c.ctx)
		c.must(err)
		rules := map[pacht.ID]string{}
		for _, v := range found {
			rules[v.Job] = v.Rule
		}
		c.same("found", fmt.Sprintf("%s %t %s %q", rules[held.ID], rules[orphan.ID] != "", rules[forged.ID], rules[byHand.ID]), `R10 true R3 ""`)
	})
}

// open lists all open effects.
func (c *kase) open() (text string) {
	c.Helper()
	list, err := c.Store.OpenEffects(c.ctx, pacht.EffectCursor{}, 1000)
	c.must(err)
	for _, e := range list {
		text += fmt.Sprintf("%d %s, ", e.Job, e.Name)
	}
	return text
}
