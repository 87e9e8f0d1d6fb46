package lab

import (
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Life is one run of one of the fleet's processes.
type Life struct {
	*Process
	Number int
	Owner  string // of its leases

	slots int           // how many leases it may have at once
	deaf  bool          // its handlers go on although they were told to stop
	stop  time.Duration // what a stop in order takes at most
	hits  string        // the file in which its failpoints say that they were hit
	told  atomic.Bool   // we ended it, or asked it to end

	mu    sync.Mutex
	fates []fate
	thaws []time.Time
}

// fate is something that was done to a run.
type fate struct {
	deed  deed
	what  string // "killed", "frozen", "terminated", or the name of a failpoint
	at    time.Time
	until time.Time // of stands: when it went on; zero: never
}

type deed int

const (
	dies   deed = iota // it is gone from then on
	stands             // it does nothing until then
	stops              // it was asked to stop in order
)

// suffer notes what is about to be done.
func (l *Life) suffer(d deed, what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fates = append(l.fates, fate{deed: d, what: what, at: time.Now()})
	if d != stands {
		l.tell()
	}
}

// tell notes that it may end from now on.
func (l *Life) tell() { l.told.Store(true) }

func (l *Life) thaw() {
	l.Process.Thaw()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.thaws = append(l.thaws, time.Now())
}

// story is all that was done to this run, by us and by its failpoints.
func (l *Life) story() []fate {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := append([]fate(nil), l.fates...)
	if about, err := os.Stat(l.hits); err == nil {
		for _, hit := range l.Hits() {
			name, action, _ := strings.Cut(hit, " ")
			if d, ok := map[string]deed{"kill": dies, "stop": stands}[action]; ok {
				all = append(all, fate{deed: d, what: name, at: about.ModTime()}) // written before it was done
			}
		}
	}
	for i, f := range all {
		for _, thaw := range l.thaws {
			if f.deed == stands && f.until.IsZero() && thaw.After(f.at) {
				all[i].until = thaw
				break
			}
		}
	}
	return all
}

// Hits are the failpoints of this run that were hit, as "name action".
func (l *Life) Hits() []string {
	text, err := os.ReadFile(l.hits)
	if err != nil || len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}
