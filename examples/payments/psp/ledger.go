package psp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/pacht-queue/pacht/internal/clock"
)

// errOtherBody: the key was used before with another charge.
var errOtherBody = errors.New("idempotency key already used with another body")

// ledger keeps entries in memory and in a file, one JSON object a line. What append has
// answered is on the disk: many callers share one fsync.
type ledger struct {
	file *os.File
	wake chan struct{}
	done chan struct{}

	mu      sync.Mutex
	next    *batch
	answers map[string]answer // by idempotency key
	byRef   map[string][]Entry
	order   []string // references, by their first charge
	totals  Totals
	closed  bool
}

type answer struct {
	entry  Entry
	stored *batch
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
	l := &ledger{
		file: f, wake: make(chan struct{}, 1), done: make(chan struct{}), next: newBatch(),
		answers: map[string]answer{}, byRef: map[string][]Entry{}, totals: Totals{AmountMinor: map[string]int64{}},
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
	stored := newBatch()
	close(stored.done)
	for {
		line, err := r.ReadBytes('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("at byte %d: %w", good, err)
		}
		l.count(e, stored)
		good += int64(len(line))
	}
	if err := l.file.Truncate(good); err != nil {
		return err
	}
	_, err := l.file.Seek(good, io.SeekStart)
	return err
}

// count enters e in memory. The caller holds mu, or is alone.
func (l *ledger) count(e Entry, stored *batch) {
	switch e.What {
	case Charged:
		l.totals.Charges++
		l.totals.AmountMinor[e.Currency] += e.AmountMinor
		switch len(l.byRef[e.Reference]) {
		case 0:
			l.totals.References++
			l.order = append(l.order, e.Reference)
		case 1:
			l.totals.ChargedMore++
		}
		l.byRef[e.Reference] = append(l.byRef[e.Reference], e)
		l.answers[e.Key] = answer{e, stored}
	case Declined:
		l.totals.Declined++
		l.answers[e.Key] = answer{e, stored}
	case Repeated:
		l.totals.Repeated++
	}
}

// answer makes the charge, or finds the answer that its key already has. A call that finds a
// charge is entered as repeated. With ignoreKeys every call is a new charge.
func (l *ledger) answer(key string, c Charge, decline, ignoreKeys bool) (Entry, error) {
	l.mu.Lock()
	before, known := l.answers[key]
	if known && !ignoreKeys && before.entry.Charge != c {
		l.mu.Unlock()
		return Entry{}, errOtherBody
	}
	e := Entry{What: Charged, Key: key, At: clock.Now().Time().UTC(), Charge: c}
	switch {
	case known && !ignoreKeys && before.entry.What == Declined:
		l.mu.Unlock()
		<-before.stored.done
		return before.entry, before.stored.err
	case known && !ignoreKeys:
		e.What, e.ID = Repeated, before.entry.ID
	case decline:
		e.What, e.ID = Declined, fmt.Sprintf("de_%06d", l.totals.Declined+1)
	default:
		e.ID = fmt.Sprintf("ch_%06d", l.totals.Charges+1)
	}
	stored, err := l.append(e)
	l.mu.Unlock()
	if err != nil {
		return Entry{}, err
	}
	<-stored.done
	if e.What == Repeated {
		return before.entry, stored.err // written after it, so it is stored too
	}
	return e, stored.err
}

// append enters e, to be written with the next batch. The caller holds mu.
func (l *ledger) append(e Entry) (*batch, error) {
	if l.closed {
		return nil, errors.New("the provider's ledger is closed")
	}
	line, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encode a ledger entry: %w", err)
	}
	l.next.lines.Write(append(line, '\n'))
	l.count(e, l.next)
	select {
	case l.wake <- struct{}{}:
	default: // the writer is about to look anyway
	}
	return l.next, nil
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
		b.lines = bytes.Buffer{} // answers point here for ever
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

func (l *ledger) sum() Totals {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.totals
	t.AmountMinor = maps.Clone(t.AmountMinor)
	return t
}

// charges lists the charges of one reference, or all of them if it is empty.
func (l *ledger) charges(reference string) []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	if reference != "" {
		return slices.Clone(l.byRef[reference])
	}
	all := make([]Entry, 0, l.totals.Charges)
	for _, ref := range l.order {
		all = append(all, l.byRef[ref]...)
	}
	return all
}
