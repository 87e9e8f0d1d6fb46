package psp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// ledger keeps entries in memory and in a file, one JSON object a line. What enter has
// answered is on the disk: many callers share one fsync.
type ledger struct {
	file *os.File
	wake chan struct{}
	done chan struct{}

	mu      sync.Mutex
	next    *batch // that takes the next entries
	last    *batch // that took the last ones
	account account
	closed  bool
}

// batch is what one fsync makes durable.
type batch struct {
	lines bytes.Buffer
	done  chan struct{}
	err   error
}

func newBatch() *batch { return &batch{done: make(chan struct{})} }

func openLedger(path string) (*ledger, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the provider's ledger: %w", err)
	}
	stored := newBatch()
	close(stored.done)
	l := &ledger{
		file: f, wake: make(chan struct{}, 1), done: make(chan struct{}),
		next: newBatch(), last: stored, account: newAccount(),
	}
	if err := l.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("read the provider's ledger %s: %w", path, err), f.Close())
	}
	go l.write()
	return l, nil
}

// load reads the file and cuts off a last line that was not written to its end: it was never
// answered.
func (l *ledger) load() error {
	r, good := bufio.NewReader(l.file), int64(0)
	for {
		line, err := r.ReadBytes('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("at byte %d: %w", good, err)
		}
		l.account.count(e)
		good += int64(len(line))
	}
	if err := l.file.Truncate(good); err != nil {
		return err
	}
	_, err := l.file.Seek(good, io.SeekStart)
	return err
}

// enter lets decide look at the account and say what to enter, if anything, alone among all
// callers. When it returns, that and all that decide has seen is on the disk.
func (l *ledger) enter(decide func(a *account) ([]entry, error)) error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return errors.New("the provider's ledger is closed")
	}
	entries, err := decide(&l.account)
	if err == nil {
		err = l.append(entries)
	}
	stored := l.last
	l.mu.Unlock()
	if err != nil {
		return err
	}
	<-stored.done
	return stored.err
}

// append takes entries into the next batch. The caller holds mu.
func (l *ledger) append(entries []entry) error {
	for _, e := range entries {
		line, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("encode a ledger entry: %w", err)
		}
		l.next.lines.Write(append(line, '\n'))
		l.account.count(e)
		l.last = l.next
	}
	if len(entries) > 0 {
		select {
		case l.wake <- struct{}{}:
		default: // the writer is about to look anyway
		}
	}
	return nil
}

// look lets see read the account.
func (l *ledger) look(see func(a *account)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	see(&l.account)
}

// told is what the simulator was told to do with a reference.
func (l *ledger) told(reference string) (s Scenario, ok bool) {
	l.look(func(a *account) { s, ok = a.scenarios[reference] })
	return s, ok
}

// write is the only writer of the file: one write and one fsync for all that has gathered.
// After a failure nothing is answered as stored any more.
func (l *ledger) write() {
	defer close(l.done)
	var broken error
	for range l.wake {
		l.mu.Lock()
		b := l.next
		l.next = newBatch()
		l.mu.Unlock()
		if broken == nil && b.lines.Len() > 0 {
			if _, broken = l.file.Write(b.lines.Bytes()); broken == nil {
				broken = l.file.Sync()
			}
		}
		b.err = broken
		close(b.done)
	}
}

func (l *ledger) close() error {
	l.mu.Lock()
	already := l.closed
	l.closed = true
	l.mu.Unlock()
	if already {
		return nil
	}
	// A wake-up may still be in the channel, for a batch that somebody waits for; it is
	// read before the range ends.
	close(l.wake)
	<-l.done
	return l.file.Close()
}
