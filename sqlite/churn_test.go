package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
)

const (
	churnTime = 3 * time.Second
	churnTTL  = 2 * time.Second
)

// churn is what one process did.
type churn struct {
	mu       sync.Mutex
	Enqueued int
	Settled  int
	Renewed  int
	Lost     int
	Slowest  time.Duration // renewal
	Errors   []string
}

func (c *churn) add(err error, what func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.Errors = append(c.Errors, err.Error())
		return
	}
	what()
}

// churnRole is a process with eight goroutines: three enqueue, three claim and settle, two
// hold a lease each and renew it.
func churnRole(ctx context.Context, path string) error {
	s, err := Open(path, Config{})
	if err != nil {
		return err
	}
	defer s.Close()
	if err := ready(); err != nil {
		return err
	}
	var c churn
	var running sync.WaitGroup
	end := time.Now().Add(churnTime)
	owner := fmt.Sprintf("process %d", os.Getpid())
	for range 3 {
		running.Go(func() {
			for n := 0; time.Now().Before(end); n++ {
				_, err := s.Enqueue(ctx, []pacht.NewJob{newJob(n)})
				c.add(err, func() { c.Enqueued++ })
			}
		})
		running.Go(func() {
			for time.Now().Before(end) {
				settled, err := claimAndSettle(ctx, s, owner)
				c.add(err, func() { c.Settled += settled })
			}
		})
	}
	for range 2 {
		running.Go(func() { holdAndRenew(ctx, s, owner, end, &c) })
	}
	running.Wait()
	return json.NewEncoder(os.Stdout).Encode(&c)
}

func claimAndSettle(ctx context.Context, s *Store, owner string) (int, error) {
	claims, err := s.Claim(ctx, claimRequest(owner, 5))
	if err != nil || len(claims.Jobs) == 0 {
		return 0, err
	}
	batch := make([]pacht.Settlement, len(claims.Jobs))
	for i, j := range claims.Jobs {
		batch[i] = pacht.Settlement{Ref: j.Ref(), Outcome: pacht.OutcomeCompleted}
	}
	answers, err := s.Settle(ctx, batch)
	for _, a := range answers {
		if a.Err != nil {
			return 0, a.Err
		}
	}
	return len(answers), err
}

func holdAndRenew(ctx context.Context, s *Store, owner string, end time.Time, c *churn) {
	job := newJob(0)
	job.Kind, job.TTL = "held", churnTTL
	req := claimRequest(owner, 1)
	req.Kinds = []string{"held"}
	_, err := s.Enqueue(ctx, []pacht.NewJob{job})
	c.add(err, func() {})
	var held []pacht.JobInfo
	for len(held) == 0 && time.Now().Before(end) {
		claims, err := s.Claim(ctx, req)
		c.add(err, func() { held = claims.Jobs })
	}
	if len(held) == 0 {
		return
	}
	for tick := time.NewTicker(50 * time.Millisecond); time.Now().Before(end); <-tick.C {
		start := time.Now()
		answer, err := s.Renew(ctx, []pacht.Ref{held[0].Ref()})
		c.add(err, func() {
			c.Slowest = max(c.Slowest, time.Since(start))
			if c.Renewed++; answer.Rows[0].State != pacht.RenewExtended {
				c.Lost++
			}
		})
	}
}

// S056: eight goroutines in each of three processes on one file. No error reaches a caller, no
// renewal is lost or late, and no process starves another.
func TestThreeProcessesShareOneFileFairlyWithoutABusyError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pacht.db")
	s := openStore(t, path, Config{}, true)
	children := []*child{startChild(t, "churn", path), startChild(t, "churn", path), startChild(t, "churn", path)}
	for _, c := range children {
		c.goOn(t)
	}
	var did [3]churn
	renewed := 0
	for i, c := range children {
		c.answer(t, &did[i])
		d := &did[i]
		t.Logf("process %d: %d enqueued, %d settled, %d renewed, slowest renewal %s", i, d.Enqueued, d.Settled, d.Renewed, d.Slowest)
		if len(d.Errors) > 0 {
			t.Errorf("process %d: %d errors, the first: %s", i, len(d.Errors), d.Errors[0])
		}
		renewed += d.Renewed
		if d.Lost > 0 || d.Slowest > churnTTL {
			t.Errorf("process %d: %d of %d renewals lost, slowest %s", i, d.Lost, d.Renewed, d.Slowest)
		}
	}
	if renewed < 3 {
		t.Errorf("%d renewals in all", renewed)
	}
	a, b, c := did[0].Enqueued, did[1].Enqueued, did[2].Enqueued
	if min(a, b, c)*4 < max(a, b, c) {
		t.Errorf("the processes stored %d, %d and %d jobs", a, b, c)
	}
	mustCheck(t, s)
	counted, err := texts(t.Context(), s.DB(), "SELECT count(*) FROM pacht_attempts WHERE outcome = 'Completed'")
	if err != nil || counted[0][0] != fmt.Sprint(did[0].Settled+did[1].Settled+did[2].Settled) {
		t.Errorf("the ledger has %v completed (%v), the processes settled %d, %d and %d", counted, err, did[0].Settled, did[1].Settled, did[2].Settled)
	}
}
