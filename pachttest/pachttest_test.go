package pachttest_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/pachttest"
	"github.com/pacht-queue/pacht/sqlite"
	"github.com/pacht-queue/pacht/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type mail struct {
	To string `json:"to"`
}

func (mail) Kind() string { return "mail" }

// send is a handler as a user writes it.
func send(ctx context.Context, job *pacht.Job[mail]) error {
	if _, sent, err := job.Step(ctx, "sent"); sent || err != nil {
		return err
	}
	if job.Args.To == "" {
		return pacht.Permanent(errors.New("no address"))
	}
	if err := job.Ensure(ctx, 10*time.Second); err != nil {
		return err
	}
	if err := job.SetStep(ctx, "sent", job.Args.To); err != nil {
		return err
	}
	return job.SetOutput(map[string]string{"to": job.Args.To})
}

func TestAHeldJobWithoutADatabase(t *testing.T) {
	job, lease := pachttest.Hold(t, mail{To: "a@example.com"}, pacht.TTL(30*time.Second))
	if job.Attempt != 1 || job.TTL != 30*time.Second || job.Queue != pacht.DefaultQueue || job.Remaining() != 30*time.Second {
		t.Errorf("held: %+v, %s left", job.JobInfo, job.Remaining())
	}
	if err := send(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	if step, ok, err := job.Step(t.Context(), "sent"); err != nil || !ok || string(step.Data) != `"a@example.com"` {
		t.Errorf("step: %+v, %v, %v", step, ok, err)
	}
	if string(lease.Output()) != `{"to":"a@example.com"}` {
		t.Errorf("output: %s", lease.Output())
	}
}

func TestAnEarlierAttemptsStepIsSeen(t *testing.T) {
	job, lease := pachttest.Hold(t, mail{To: "a@example.com"})
	if err := lease.AddStep("sent", "a@example.com"); err != nil {
		t.Fatal(err)
	}
	if err := send(t.Context(), job); err != nil || lease.Output() != nil {
		t.Errorf("sent again: %v, output %s", err, lease.Output())
	}
}

// R4: the double closes once, as a database does.
func TestALeaseIsClosedOnce(t *testing.T) {
	job, lease := pachttest.Hold(t, mail{To: "a@example.com"})
	if err := job.CompleteTx(t.Context(), nil); err != nil || !lease.Completed() {
		t.Errorf("first: %v, %v", err, lease.Completed())
	}
	if err := job.CompleteTx(t.Context(), nil); !errors.Is(err, pacht.ErrAlreadySettled) {
		t.Errorf("second: %v", err)
	}
	if err := lease.AddStep("", nil); err == nil {
		t.Error("a step without a name was accepted")
	}
}

func TestALostLeaseRefusesAllThatIsFenced(t *testing.T) {
	job, lease := pachttest.Hold(t, mail{To: "a@example.com"})
	lease.Lose()
	if err := send(t.Context(), job); !errors.Is(err, pacht.ErrLeaseLost) {
		t.Errorf("ensure: %v", err)
	}
	if err := job.SetStep(t.Context(), "sent", nil); !errors.Is(err, pacht.ErrLeaseLost) {
		t.Errorf("step: %v", err)
	}
	if err := job.CompleteTx(t.Context(), nil); !errors.Is(err, pacht.ErrLeaseLost) || lease.Completed() {
		t.Errorf("complete: %v, %v", err, lease.Completed())
	}
	if job.Remaining() > 0 {
		t.Errorf("%s left", job.Remaining())
	}
}

func open(t *testing.T) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "test.db"), sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if _, err := s.MigrateUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRunOneRunsOneDueJobToItsEnd(t *testing.T) {
	s, ctx := open(t), t.Context()
	client := pacht.NewClient(s)
	for _, to := range []string{"a@example.com", ""} {
		if _, err := client.Enqueue(ctx, mail{To: to}); err != nil {
			t.Fatal(err)
		}
	}
	first, ran := pachttest.RunOne(ctx, t, s, pacht.DefaultQueue, worker.Handle(send))
	if !ran || first.Status != pacht.Completed || first.Outcome != pacht.OutcomeCompleted || first.Err != nil {
		t.Errorf("first: %+v, %v", first, ran)
	}
	second, ran := pachttest.RunOne(ctx, t, s, pacht.DefaultQueue, worker.Handle(send))
	if !ran || second.Status != pacht.Dead || second.Outcome != pacht.OutcomeFailed {
		t.Errorf("second: %+v, %v", second, ran)
	}
	if _, ran := pachttest.RunOne(ctx, t, s, pacht.DefaultQueue, worker.Handle(send)); ran {
		t.Error("a third job was run, and there were two")
	}
}

func TestExpireAndAgeNeedNoSleep(t *testing.T) {
	s, ctx := open(t), t.Context()
	client := pacht.NewClient(s)
	enqueued, err := client.Enqueue(ctx, mail{To: "a@example.com"}, pacht.TTL(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	claim := func() bool {
		_, ok, err := s.ClaimID(ctx, "dies", enqueued.ID)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	for crash := 1; crash <= 3; crash++ {
		if !claim() {
			t.Fatalf("crash %d: not claimed", crash)
		}
		want := pacht.Pending
		if crash == pacht.DefaultMaxCrashes {
			want = pacht.Stuck
		}
		if got := pachttest.Expire(ctx, t, s, enqueued.ID); got != want {
			t.Errorf("crash %d: %s, want %s", crash, got, want)
		}
		if claim() {
			t.Errorf("crash %d: claimed within its crash delay", crash)
		}
		pachttest.Age(ctx, t, s, pacht.CrashDelay(time.Hour, crash))
	}
}
