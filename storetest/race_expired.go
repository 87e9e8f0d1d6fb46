package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/pacht-queue/pacht"
)

// expiredRace: in each round 50 leases have run out, and four actors go for them at once in
// the same order, so that they meet on the same rows.
func expiredRace(c *kase) {
	const rounds, each = 20, 50
	holder, watcher := c.Store, c.Reopen(c.T)
	winners, queue := map[string]int{}, c.queue
	for round := range rounds {
		c.queue = fmt.Sprint(queue, "-", round)
		ids := c.many(each)
		held := map[pacht.ID]pacht.JobInfo{}
		for _, j := range c.claim("late", each) {
			held[j.ID] = j
		}
		c.same("held", len(held), each)
		c.age(2 * pacht.DefaultTTL)
		outcome := pacht.OutcomeCompleted
		if round%2 == 1 {
			outcome = pacht.OutcomeFailed // without delay: then the claimers meet once more
		}
		closed := map[pacht.ID][]string{} // who says that it closed the late holder's lease
		taken := map[pacht.ID][]string{}  // who says that it holds the next one
		var mu sync.Mutex
		note := func(to map[pacht.ID][]string, id pacht.ID, who string) {
			mu.Lock()
			to[id] = append(to[id], who)
			mu.Unlock()
		}
		var actors sync.WaitGroup
		actors.Go(func() { // the watcher, few leases a pass, so that it is about as fast as the others
			for {
				pass, err := watcher.Expire(c.ctx, pacht.ExpireRequest{By: "w", Limit: 1 + 2*(round/2%2), Period: time.Minute, Force: true})
				if err != nil {
					c.Errorf("watcher: %v", err)
				}
				for _, e := range pass.Expired {
					if e.Ref.Token != 1 {
						c.Errorf("expired %+v", e)
					}
					note(closed, e.Ref.Job, "Expired Pending")
				}
				if len(pass.Expired)+len(pass.Locked) == 0 {
					return
				}
			}
		})
		ahead := [3]int{round % 4 * 3, round % 3, 0} // who is how many rows ahead of the others
		c.together(3, func(i int) {
			for n := range ids {
				id := ids[(n+ahead[i])%each]
				switch i {
				case 0:
					got := c.settleBusy(held[id].Ref(), outcome)
					if got.Err == nil {
						if !got.Late || got.Repeated {
							c.Errorf("settled %+v", got)
						}
						note(closed, id, fmt.Sprintf("%s %s", outcome, got.Status))
					} else if !errors.Is(got.Err, pacht.ErrLeaseLost) {
						c.Errorf("settle: %v", got.Err)
					}
				case 1:
					job, ok, err := watcher.ClaimID(c.ctx, "new", id)
					if err != nil {
						c.Errorf("claim by id: %v", err)
					}
					if ok {
						note(taken, id, "new")
						c.same("token taken", job.Token, pacht.Token(2))
					}
				case 2:
					if n%4 != 0 {
						continue
					}
					got, err := holder.Claim(c.ctx, c.request("batch", 3))
					if err != nil {
						c.Errorf("claim: %v", err)
					}
					for _, j := range got.Jobs {
						note(taken, j.ID, "batch")
						c.same("token taken", j.Token, pacht.Token(2))
					}
				}
			}
		})
		actors.Wait()
		for id, end := range c.oneWinner(ids, closed, taken) {
			winners[end]++
			if len(taken[id]) == 1 { // or it would run out in the next round
				c.close(pacht.Ref{Job: id, Token: 2}, pacht.OutcomeCompleted)
			}
		}
	}
	c.Logf("1,000 expired leases were closed by: %v", winners)
}

// oneWinner compares what the actors believe with what is stored, and says how each ended.
func (c *kase) oneWinner(ids []pacht.ID, closed, taken map[pacht.ID][]string) map[pacht.ID]string {
	c.Helper()
	first, last := ids[0], ids[len(ids)-1]
	ends, now := map[string][]string{}, map[string]string{}
	for _, row := range c.query("SELECT job_id, token, owner, outcome, next_status FROM {attempts} WHERE token = 1 AND job_id BETWEEN %d AND %d", first, last) {
		id, end, _ := strings.Cut(row, "|")
		ends[id] = append(ends[id], end)
	}
	for _, row := range c.query("SELECT job_id, status, token, lease_owner FROM {leases} WHERE job_id BETWEEN %d AND %d", first, last) {
		id, lease, _ := strings.Cut(row, "|")
		now[id] = lease
	}
	how := map[pacht.ID]string{}
	for _, id := range ids {
		history, lease := ends[id.String()], now[id.String()]
		if len(history) != 1 || !strings.HasPrefix(history[0], "1|late|") {
			c.Errorf("job %d: ledger %v", id, history)
			continue
		}
		end := strings.ReplaceAll(strings.TrimPrefix(history[0], "1|late|"), "|", " ")
		how[id] = end
		switch {
		case end == "Expired Processing": // the claimer by id closed and took it
			if len(closed[id]) != 0 || len(taken[id]) != 1 || taken[id][0] != "new" {
				c.Errorf("job %d: %s; closed by %v, taken by %v", id, end, closed[id], taken[id])
			}
		case len(closed[id]) != 1 || closed[id][0] != end || len(taken[id]) > 1:
			c.Errorf("job %d: %s; closed by %v, taken by %v", id, end, closed[id], taken[id])
		}
		if len(taken[id]) == 1 && lease != "Processing|2|"+taken[id][0] {
			c.Errorf("job %d was taken by %v, and is %s", id, taken[id], lease)
		}
		if len(taken[id]) == 0 && strings.HasPrefix(lease, "Processing") {
			c.Errorf("job %d is held, and nobody knows: %s", id, lease)
		}
	}
	return how
}
