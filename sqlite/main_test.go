package sqlite

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/pacht-queue/pacht"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if code, ok := childProcess(); ok {
		exit(code)
	}
	goleak.VerifyTestMain(m)
}

// newStore opens a migrated store in a folder of its own; its rules are checked at the end.
func newStore(t *testing.T) *Store {
	t.Helper()
	return openStore(t, filepath.Join(t.TempDir(), "pacht.db"), Config{}, true)
}

func openStore(t *testing.T, path string, cfg Config, migrate bool) *Store {
	t.Helper()
	s, err := Open(path, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	if migrate {
		if _, err := s.MigrateUp(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// newJob is a small job of kind "charge".
func newJob(n int) pacht.NewJob {
	return pacht.NewJob{Kind: "charge", Args: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))}
}

func mustEnqueue(t *testing.T, s *Store, n int) []pacht.ID {
	t.Helper()
	jobs := make([]pacht.NewJob, n)
	for i := range jobs {
		jobs[i] = newJob(i)
	}
	answers, err := s.Enqueue(t.Context(), jobs)
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]pacht.ID, n)
	for i, a := range answers {
		if a.Err != nil {
			t.Fatal(a.Err)
		}
		ids[i] = a.ID
	}
	return ids
}

func mustClaim(t *testing.T, s *Store, owner string, limit int) []pacht.JobInfo {
	t.Helper()
	claims, err := s.Claim(t.Context(), claimRequest(owner, limit))
	if err != nil {
		t.Fatal(err)
	}
	return claims.Jobs
}

func claimRequest(owner string, limit int) pacht.ClaimRequest {
	return pacht.ClaimRequest{Owner: owner, Queue: pacht.DefaultQueue, Kinds: []string{"charge"}, Limit: limit}
}

func mustCheck(t *testing.T, s *Store) {
	t.Helper()
	list, err := s.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range list {
		t.Errorf("%s: job %d: %s", v.Rule, v.Job, v.Detail)
	}
}
