package worker_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/watch"
	"github.com/pacht-queue/pacht/worker"
)

// child is a worker process of its own: this test binary, started anew. It prints a line
// when a job begins and when it ends.
func child(url string) {
	s, err := openURL(url)
	if err != nil {
		fmt.Println("open:", err)
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	w, err := worker.New(s, worker.Config{
		Queues:   map[string]int{pacht.DefaultQueue: 10},
		Handlers: []worker.Handler{worker.Handle(childHandler)},
		Poll:     10 * time.Millisecond,
		NoWatch:  os.Getenv("PACHT_CHILD_NOWATCH") != "",
		Watch:    watch.Config{Period: 100 * time.Millisecond, Poll: 20 * time.Millisecond},
		Grace:    200 * time.Millisecond,
		Logger:   slog.New(slog.DiscardHandler),
	})
	if err == nil {
		err = w.Run(ctx)
	}
	if err != nil {
		fmt.Println("run:", err)
		os.Exit(1)
	}
}

func childHandler(ctx context.Context, job *pacht.Job[task]) error {
	fmt.Printf("begin %d %d\n", job.ID, job.Token)
	switch job.Args.Do {
	case "exit":
		os.Exit(3)
	case "spin": // no call, no yield: only the scheduler's preemption lets others run
		for start, n := time.Now(), uint64(0); time.Since(start) < 5*time.Second; {
			for range 1_000_000 {
				n = n*6364136223846793005 + 1
			}
		}
	case "sleep":
		select {
		case <-ctx.Done():
			fmt.Printf("cause %d %v\n", job.ID, context.Cause(ctx))
			return ctx.Err()
		case <-time.After(time.Minute):
		}
	}
	fmt.Printf("end %d %d\n", job.ID, job.Token)
	return nil
}

// process is a child that runs.
type process struct {
	*exec.Cmd
	mu    sync.Mutex
	lines []string
	ended chan error
}

func spawn(t *testing.T, db database, env ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(os.Args[0]), ended: make(chan error, 1)}
	p.Env = append(append(os.Environ(), "PACHT_CHILD="+db.url), env...)
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.Stderr = os.Stderr
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for scan := bufio.NewScanner(out); scan.Scan(); {
			p.mu.Lock()
			p.lines = append(p.lines, scan.Text())
			p.mu.Unlock()
		}
		p.ended <- p.Wait()
	}()
	t.Cleanup(func() {
		_ = p.Process.Signal(syscall.SIGCONT) // both fail if it has ended, and that is well
		_ = p.Process.Kill()
		p.ended <- <-p.ended
	})
	return p
}

// freeze stops the process, at a moment when it is not inside a write transaction: there it
// would pause the whole fleet on SQLite, as docs/databases.md says, and prove nothing.
func (p *process) freeze(t *testing.T, s store) {
	t.Helper()
	eventually(t, 20*time.Second, "the process is frozen outside a transaction", func() bool {
		if err := p.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if s.Leave(ctx, "nobody") == nil { // a write that changes nothing
			return true
		}
		if err := p.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		return false
	})
}

// printed counts the lines with a prefix.
func (p *process) printed(prefix string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, l := range p.lines {
		if strings.HasPrefix(l, prefix) {
			n++
		}
	}
	return n
}

func enqueueDoing(t *testing.T, s pacht.Store, do string, opts ...pacht.Option) pacht.ID {
	t.Helper()
	e, err := pacht.NewClient(s).Enqueue(t.Context(), task{Do: do}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return e.ID
}

// S004, S081, R6: after a kill each job comes back after its own TTL, which stands in its row,
// and not before.
func TestKilledWorkersJobsComeBackAfterTheirOwnTTL(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := db.open(t)
		short := enqueueDoing(t, s, "sleep", pacht.TTL(time.Second))
		long := enqueueDoing(t, s, "sleep", pacht.TTL(time.Hour))
		p := spawn(t, db)
		eventually(t, 20*time.Second, "both run", func() bool { return p.printed("begin") == 2 })
		if err := p.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		until := job(t, s, short).LeaseUntil
		start(t, s, quick(2, func(context.Context, *pacht.Job[task]) error { return nil }))
		becomes(t, s, short, pacht.Completed)
		got := ledger(t, s, short)
		if len(got) != 2 || got[0].Outcome != pacht.OutcomeExpired || got[0].EndedAt.Before(until) || got[1].Attempt != 2 {
			t.Errorf("ledger: %+v; lease until %s", got, until)
		}
		if st := status(t, s, long); st != pacht.Processing {
			t.Errorf("the job with a TTL of an hour is %s", st)
		}
		checked(t, s)
	})
}

// S027, S028, S076: a job that kills its worker uses up its crashes and is set aside; others
// flow on. The attempt was counted by the claim, so nothing runs more often.
func TestJobThatKillsItsWorkerIsSetAside(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := db.open(t)
		poison := enqueueDoing(t, s, "exit", pacht.TTL(500*time.Millisecond), pacht.MaxCrashes(3))
		// Its holders die beside it, through no fault of its own.
		healthy := enqueueDoing(t, s, "", pacht.Priority(4), pacht.TTL(500*time.Millisecond), pacht.MaxCrashes(1000))
		begun := 0
		deadline := time.Now().Add(40 * time.Second)
		for status(t, s, poison) != pacht.Stuck { // a supervisor
			p := spawn(t, db)
			var ended bool
			eventually(t, time.Until(deadline), "the worker dies, or the job is set aside", func() bool {
				select {
				case err := <-p.ended:
					p.ended <- err
					ended = true
				default:
				}
				return ended || status(t, s, poison) == pacht.Stuck
			})
			begun += p.printed(fmt.Sprintf("begin %d ", poison))
		}
		if begun != 3 {
			t.Errorf("ran %d times", begun)
		}
		want := []pacht.Outcome{pacht.OutcomeExpired, pacht.OutcomeExpired, pacht.OutcomeExpired}
		if got := outcomes(t, s, poison); !slices.Equal(got, want) {
			t.Errorf("ledger: %v", got)
		}
		start(t, s, quick(1, func(context.Context, *pacht.Job[task]) error { return nil }))
		becomes(t, s, healthy, pacht.Completed)
		checked(t, s)
	})
}

// S008, S030: with one attempt, or under hold, a killed worker's job is parked, never re-run.
func TestKilledWorkersJobIsParkedWhereItMustNotRunAgain(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := db.open(t)
		once := enqueueDoing(t, s, "sleep", pacht.TTL(500*time.Millisecond), pacht.MaxAttempts(1))
		hold := enqueueDoing(t, s, "sleep", pacht.TTL(500*time.Millisecond), pacht.OnCrash(pacht.CrashHold))
		p := spawn(t, db)
		eventually(t, 20*time.Second, "both run", func() bool { return p.printed("begin") == 2 })
		if err := p.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		start(t, s, quick(2, func(context.Context, *pacht.Job[task]) error { t.Error("ran again"); return nil }))
		becomes(t, s, once, pacht.Stuck)
		becomes(t, s, hold, pacht.Stuck)
		checked(t, s)
	})
}

// S011, S013: a process that was stopped past its lease learns on waking that it has lost it,
// cancels its handler with the cause, and changes nothing.
func TestProcessStoppedPastItsLeaseLearnsOfIt(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := db.open(t)
		id := enqueueDoing(t, s, "sleep", pacht.TTL(time.Second))
		p := spawn(t, db, "PACHT_CHILD_NOWATCH=1")
		eventually(t, 20*time.Second, "it runs", func() bool { return p.printed("begin") == 1 })
		p.freeze(t, s)
		release := make(chan struct{})
		defer close(release)
		other := start(t, s, quick(1, func(ctx context.Context, _ *pacht.Job[task]) error {
			select {
			case <-release:
			case <-ctx.Done():
			}
			return nil
		}))
		eventually(t, 20*time.Second, "another has taken it", func() bool {
			j := job(t, s, id)
			return j.Status == pacht.Processing && j.LeaseOwner == other.Owner()
		})
		if err := p.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		eventually(t, 20*time.Second, "the handler is cancelled with the cause", func() bool { return p.printed(fmt.Sprintf("cause %d", id)) == 1 })
		p.mu.Lock()
		if last := p.lines[len(p.lines)-1]; !strings.Contains(last, "lease") {
			t.Errorf("cause: %s", last)
		}
		p.mu.Unlock()
		eventually(t, 20*time.Second, "its late report is kept", func() bool {
			reports, err := s.Reports(t.Context(), id)
			return err == nil && len(reports) == 1
		})
		if j := job(t, s, id); j.Token != 2 || j.LeaseOwner != other.Owner() {
			t.Errorf("the new holder's lease was changed: %+v", j)
		}
		checked(t, s)
	})
}

// S009: one processor and a handler that never yields: renewals still go out in time.
func TestRenewalsGoOutBesideABusyHandler(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := db.open(t)
		id := enqueueDoing(t, s, "spin", pacht.TTL(2*time.Second))
		p := spawn(t, db, "GOMAXPROCS=1")
		becomes(t, s, id, pacht.Completed)
		if n := p.printed("begin"); n != 1 || len(ledger(t, s, id)) != 1 {
			t.Errorf("ran %d times, ledger %+v", n, ledger(t, s, id))
		}
	})
}

// S036: a signal to stop, then a kill before the handler is through: nothing is lost, what is
// left returns by expiry.
func TestKillDuringTheStopLosesNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := db.open(t)
		id := enqueueDoing(t, s, "spin", pacht.TTL(time.Second)) // does not heed the stop
		p := spawn(t, db)
		eventually(t, 20*time.Second, "it runs", func() bool { return p.printed("begin") == 1 })
		if err := p.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		eventually(t, 20*time.Second, "the stop has begun or is over", func() bool {
			workers, err := s.Workers(t.Context())
			return err == nil && len(workers) == 1
		})
		if err := p.Process.Kill(); err != nil && err != os.ErrProcessDone {
			t.Fatal(err)
		}
		start(t, s, quick(1, func(context.Context, *pacht.Job[task]) error { return nil }))
		becomes(t, s, id, pacht.Completed)
		checked(t, s)
	})
}

// S026: the watcher holds nothing that outlives it: one is killed, another goes on, and so does
// one that starts afterwards.
func TestWatcherThatIsKilledIsReplaced(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := db.open(t)
		first, second := spawn(t, db), spawn(t, db)
		watching := func(n int) {
			eventually(t, 20*time.Second, "the processes have signed on", func() bool {
				workers, err := s.Workers(t.Context())
				return err == nil && len(workers) == n
			})
		}
		watching(2)
		forgotten := func() {
			t.Helper()
			// In a queue that nobody serves, so that only a watcher can free it.
			id := enqueueDoing(t, s, "", pacht.Queue("elsewhere"), pacht.TTL(300*time.Millisecond))
			if _, ok, err := s.ClaimID(t.Context(), "forgets", id); err != nil || !ok {
				t.Fatalf("claim: %v, %v", ok, err)
			}
			becomes(t, s, id, pacht.Pending)
			if got := outcomes(t, s, id); !slices.Equal(got, []pacht.Outcome{pacht.OutcomeExpired}) {
				t.Errorf("ledger: %v", got)
			}
		}
		forgotten()
		if err := first.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		forgotten()
		if err := second.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		spawn(t, db)
		watching(3)
		forgotten()
		checked(t, s)
	})
}

// R6: a beat tells of the first lease that a worker holds, so that a short one is found soon
// after its end, however long the watcher's period is.
func TestShortLeaseOfAKilledWorkerIsFoundSoon(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := db.open(t)
		cfg := quick(1, func(context.Context, *pacht.Job[task]) error { return nil })
		cfg.Watch.Period, cfg.Watch.Poll = time.Hour, 20*time.Millisecond
		cfg.Queues = map[string]int{"elsewhere": 1} // it only watches
		start(t, s, cfg)
		eventually(t, 10*time.Second, "the first pass is over", func() bool {
			info, err := s.Watch(t.Context())
			return err == nil && !info.PassedAt.IsZero()
		})
		p := spawn(t, db, "PACHT_CHILD_NOWATCH=1")
		eventually(t, 20*time.Second, "the process has signed on", func() bool {
			list, err := s.Workers(t.Context())
			return err == nil && len(list) == 2
		})
		id := enqueueDoing(t, s, "sleep", pacht.TTL(time.Second))
		eventually(t, 20*time.Second, "it runs, and its beat has told of its lease", func() bool {
			info, err := s.Watch(t.Context())
			return err == nil && p.printed("begin") == 1 && info.NextAt.Before(info.PassedAt.Add(time.Minute))
		})
		if err := p.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		becomes(t, s, id, pacht.Pending)
		a := ledger(t, s, id)[0]
		if late := a.EndedAt.Sub(a.ClaimedAt); late > 15*time.Second {
			t.Errorf("closed %s after its claim, with a TTL of 1s", late)
		}
	})
}
