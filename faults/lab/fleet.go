package lab

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pacht-queue/pacht/internal/database"
)

// FleetConfig says what a fleet of worker processes is. Only Database must be given.
type FleetConfig struct {
	Database  string    // URL, with Pacht's tables in it
	Recorder  *Recorder // nil: handlers tell nobody
	Processes int       // 0 = 3
	Slots     int       // of each; 0 = 8
	Handler   Handler
	// Role is one of the package's own, which is told a WorkerTask and says a WorkerSaid; "" = the lab's
	// worker, whose handlers do as Handler says. Extra is for that role.
	Role, Extra string
	// Business is another URL for the handlers' own transactions, through a proxy perhaps; "" =
	// Database.
	Business string

	Watch    time.Duration // the watchers' period; 0 = 200ms
	Watchers int           // only the first so many processes watch; 0 = all, -1 = none
	Poll     time.Duration // 0 = 100ms
	Grace    time.Duration // of a stop; 0 = 2s
	Unwind   time.Duration // 0 = 1s

	Failpoints string   // PACHT_FAILPOINT of all that start without one of their own
	Clock      string   // PACHT_CLOCK of all
	Env        []string // more variables for all
}

// Fleet is some worker processes, by number from 0. One that was killed comes back when
// Restart is called. Its methods may be called from many goroutines.
type Fleet struct {
	t     testing.TB
	cfg   FleetConfig
	store database.Database

	mu    sync.Mutex
	now   []*Life
	lives []*Life
	over  bool
}

// StartFleet starts the processes. At the end of the test those that are left are killed, and
// one that ended although nobody meant it to fails the test.
func StartFleet(t testing.TB, cfg FleetConfig) *Fleet {
	t.Helper()
	for _, d := range []struct {
		value    *int
		standard int
	}{{&cfg.Processes, 3}, {&cfg.Slots, 8}} {
		if *d.value == 0 {
			*d.value = d.standard
		}
	}
	for _, d := range []struct {
		value    *time.Duration
		standard time.Duration
	}{{&cfg.Watch, 200 * time.Millisecond}, {&cfg.Poll, 100 * time.Millisecond}, {&cfg.Grace, 2 * time.Second}, {&cfg.Unwind, time.Second}} {
		if *d.value == 0 {
			*d.value = d.standard
		}
	}
	f := &Fleet{t: t, cfg: cfg, store: Open(t, cfg.Database), now: make([]*Life, cfg.Processes)}
	t.Cleanup(f.end)
	var all sync.WaitGroup
	for i := range cfg.Processes {
		all.Go(func() { f.Restart(i) })
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return f
}

// Store is the fleet's database, opened by the test's own process.
func (f *Fleet) Store() database.Database { return f.store }

// Size is how many processes there are, dead ones included.
func (f *Fleet) Size() int { return f.cfg.Processes }

// Life is the present run of a process; nil if it could not be started.
func (f *Fleet) Life(i int) *Life {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now[i]
}

// Lives are all runs so far.
func (f *Fleet) Lives() []*Life {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]*Life(nil), f.lives...)
}

// Restart starts a process anew, with variables on top of the fleet's. One that still runs is
// killed first.
func (f *Fleet) Restart(i int, env ...string) {
	if l := f.Life(i); l != nil && !l.Ended() {
		f.Kill(i)
	}
	hits := filepath.Join(f.t.TempDir(), "failpoints")
	all := []string{"PACHT_FAILPOINT_LOG=" + hits}
	if f.cfg.Failpoints != "" {
		all = append(all, "PACHT_FAILPOINT="+f.cfg.Failpoints)
	}
	if f.cfg.Clock != "" {
		all = append(all, "PACHT_CLOCK="+f.cfg.Clock)
	}
	all = append(append(all, f.cfg.Env...), env...) // the last one counts
	task := WorkerTask{
		Database: f.cfg.Database, Business: cmp.Or(f.cfg.Business, f.cfg.Database), Slots: f.cfg.Slots, Poll: f.cfg.Poll, Watch: f.cfg.Watch,
		Grace: f.cfg.Grace, Unwind: f.cfg.Unwind, Handler: f.cfg.Handler, Extra: f.cfg.Extra,
	}
	if f.cfg.Recorder != nil {
		task.Recorder = f.cfg.Recorder.Addr()
	}
	if w := f.cfg.Watchers; w < 0 || w > 0 && i >= w {
		task.Watch = 0
	}
	p, err := spawn(f.t, cmp.Or(f.cfg.Role, "worker"), task, all)
	if err != nil {
		f.t.Errorf("process %d: %v", i, err)
		return
	}
	var said WorkerSaid
	p.Said(&said)
	l := &Life{
		Process: p, Number: i, Owner: said.Owner, hits: hits,
		slots: f.cfg.Slots, deaf: f.cfg.Handler.Deaf, stop: f.cfg.Grace + f.cfg.Unwind,
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now[i] = l
	f.lives = append(f.lives, l)
}

// Kill ends a process at once with SIGKILL.
func (f *Fleet) Kill(i int) {
	if l := f.Life(i); l != nil {
		l.suffer(dies, "killed")
		l.Process.Kill()
	}
}

// Terminate asks a process to stop in order, and does not wait.
func (f *Fleet) Terminate(i int) {
	if l := f.Life(i); l != nil {
		l.suffer(stops, "terminated")
		l.Signal(syscall.SIGTERM)
	}
}

// Freeze stops a process with SIGSTOP; on SQLite at a moment when it is not inside a write
// transaction, where it would pause the whole fleet, as docs/databases.md says.
func (f *Fleet) Freeze(i int) {
	l := f.Life(i)
	if l == nil {
		return
	}
	l.suffer(stands, "frozen")
	done := Within(20*time.Second, func() bool {
		l.Process.Freeze()
		if l.Ended() || !database.IsSQLite(f.cfg.Database) {
			return true
		}
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		defer cancel()
		if f.store.Leave(ctx, "nobody") == nil { // a write that changes nothing
			return true
		}
		l.Process.Thaw()
		return false
	})
	if !done {
		f.t.Errorf("process %d could not be frozen outside of a write transaction", i)
	}
}

// Thaw lets a frozen process go on.
func (f *Fleet) Thaw(i int) {
	if l := f.Life(i); l != nil {
		l.thaw()
	}
}

// Revive starts all processes anew that have ended, by whatever.
func (f *Fleet) Revive() {
	for i := range f.now {
		if l := f.Life(i); l == nil || l.Ended() {
			f.Restart(i)
		}
	}
}

// Finish waits until no job is left that is Pending or Processing. A database that does not
// answer is asked again.
func (f *Fleet) Finish(patience time.Duration) {
	f.t.Helper()
	var last string
	done := Within(patience, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		counts, err := f.store.Counts(ctx)
		if err != nil {
			last = err.Error()
			return false
		}
		var open int64
		for _, c := range counts {
			if c.Status == "Pending" || c.Status == "Processing" {
				open += c.Jobs
			}
		}
		last = fmt.Sprintf("%d jobs are unfinished: %+v", open, counts)
		return open == 0
	})
	if !done {
		f.t.Fatalf("the fleet did not finish within %s: %s", patience, last)
	}
}

// Shutdown stops all processes in order, frozen ones too, and waits for them. It explains
// nothing to an audit: every process comes to it.
func (f *Fleet) Shutdown() {
	f.t.Helper()
	for i := range f.now {
		if l := f.Life(i); l != nil && !l.Ended() {
			l.thaw()
			l.tell()
			l.Signal(syscall.SIGTERM)
		}
	}
	for i := range f.now {
		l := f.Life(i)
		if l == nil {
			continue
		}
		code, killed, err := l.Wait(f.cfg.Grace + f.cfg.Unwind + 15*time.Second)
		if err != nil {
			f.t.Error(err)
			l.Process.Kill()
		} else if !killed && code != 0 && code != exitUnfinished {
			f.t.Errorf("process %d ended with code %d%s", i, code, l.LastWords())
		}
	}
	f.end()
}

// end kills what is left, and tells of processes that ended although nobody meant them to.
func (f *Fleet) end() {
	f.mu.Lock()
	over := f.over
	f.over = true
	f.mu.Unlock()
	if over {
		return
	}
	for _, l := range f.Lives() {
		if l.Ended() && !l.told.Load() && !l.ours.Load() && len(l.Hits()) == 0 {
			f.t.Errorf("process %d ended, and nobody meant it to: %s%s", l.Number, l.cmd.ProcessState, l.LastWords())
		}
		l.Process.Kill()
	}
}
