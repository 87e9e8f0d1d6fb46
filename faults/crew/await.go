package crew

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/faults/lab"
)

// Finished waits until no job of this queue is unfinished. A database that does not answer is
// asked again.
func Finished(t testing.TB, s pacht.Reader, within time.Duration, queue string) {
	t.Helper()
	said := ""
	defer func() {
		if said != "" {
			t.Log("unfinished:" + said)
		}
	}()
	lab.Await(t, within, "all jobs of queue "+queue+" are finished", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		counts, err := s.Counts(ctx)
		if err != nil {
			said = " " + err.Error()
			return false
		}
		said = ""
		for _, c := range counts {
			if c.Queue == queue && !c.Status.Finished() {
				said += fmt.Sprintf(" %d %s", c.Jobs, c.Status)
			}
		}
		return said == ""
	})
}

// Outcomes counts how the leases of these jobs ended, and fails the test for jobs that are not
// Completed.
func Outcomes(t testing.TB, s pacht.Reader, ids []pacht.ID) map[pacht.Outcome]int {
	t.Helper()
	all := map[pacht.Outcome]int{}
	for _, id := range ids {
		attempts, err := s.Attempts(context.Background(), id)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range attempts {
			all[a.Outcome]++
		}
		if n := len(attempts); n == 0 || attempts[n-1].NextStatus != pacht.Completed {
			t.Errorf("job %d is not Completed, its ledger: %+v", id, attempts)
		}
	}
	return all
}

// Checked fails the test for stored facts that no rule allows.
func Checked(t testing.TB, s pacht.Checker) {
	t.Helper()
	bad, err := s.Check(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range bad {
		t.Errorf("check: %+v", v)
	}
}
