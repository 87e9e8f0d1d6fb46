package sqlite

import (
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
)

func TestLifeOfAJob(t *testing.T) {
	s := newStore(t)
	ids := mustEnqueue(t, s, 3)
	jobs := mustClaim(t, s, "a", 2)
	if len(jobs) != 2 || jobs[0].ID != ids[0] || jobs[0].Token != 1 || jobs[0].Attempt != 1 || string(jobs[0].Args) != `{"n":0}` {
		t.Fatalf("%+v", jobs)
	}
	r, err := s.Renew(t.Context(), []pacht.Ref{jobs[0].Ref(), {Job: 99, Token: 1}})
	if err != nil || r.Rows[0].State != pacht.RenewExtended || r.Rows[1].State != pacht.RenewLost {
		t.Fatalf("%+v %v", r, err)
	}
	st, err := s.Settle(t.Context(), []pacht.Settlement{{Ref: jobs[0].Ref(), Outcome: pacht.OutcomeCompleted}})
	if err != nil || st[0].Status != pacht.Completed {
		t.Fatalf("%+v %v", st, err)
	}
	st, err = s.Settle(t.Context(), []pacht.Settlement{{Ref: jobs[0].Ref(), Outcome: pacht.OutcomeCompleted}, {Ref: jobs[0].Ref(), Outcome: pacht.OutcomeFailed}})
	if err != nil || !st[0].Repeated || st[1].Err == nil {
		t.Fatalf("%+v %v", st, err)
	}
	if err := s.Age(t.Context(), 2*time.Minute); err != nil {
		t.Fatal(err)
	}
	p, err := s.Expire(t.Context(), pacht.ExpireRequest{By: "w", Limit: 10, Period: time.Second})
	if err != nil || !p.Turn || len(p.Expired) != 1 {
		t.Fatalf("%+v %v", p, err)
	}
	for _, st := range append(pacht.Statuses, "") {
		if _, err := s.Jobs(t.Context(), pacht.Filter{Status: st}); err != nil {
			t.Fatal(err)
		}
	}
	t.Log(s.Counts(t.Context()))
	t.Log(s.LeaseStats(t.Context(), 10))
	mustCheck(t, s)
}
