package lab

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
)

// What handlers tell the recorder.
const (
	Begin  = "begin"  // a handler has begun
	Effect = "effect" // something that cannot be rolled back, at an outside resource with a fence
	End    = "end"    // the handler is about to return
	// Settled: the database has answered that the job is completed. Only with Handler.Tell.
	Settled = "settled"
)

// Event is one line of the recorder, in the order in which it came.
type Event struct {
	At    time.Time // by the recorder's clock
	What  string    // Begin, Effect, End or Settled
	Ref   pacht.Ref
	Stale bool   // a higher token had been seen for the job: an effect was refused
	Word  string // of an End: how; of a Begin: its process's wall clock, in seconds
	Owner string // the holder
}

// Recorder is the process that handlers write to: what was begun, what had an effect outside,
// what ended. It is never killed, and it is the outside resource with a fence: an effect under
// a token is refused if a higher one was seen for the job.
type Recorder struct {
	t    testing.TB
	addr string
	file string
	pen  *Pen
}

type recorderTask struct {
	File string `json:"file"`
	// Unfenced takes every effect: sabotage, to see that the audit sees it.
	Unfenced bool `json:"unfenced,omitempty"`
}

type recorderSaid struct {
	Addr string `json:"addr"`
}

// StartRecorder starts a recorder, which ends with the test.
func StartRecorder(t testing.TB) *Recorder { t.Helper(); return startRecorder(t, false) }

// StartUnfencedRecorder starts one that takes every effect: sabotage, for tests of the audit.
func StartUnfencedRecorder(t testing.TB) *Recorder { t.Helper(); return startRecorder(t, true) }

func startRecorder(t testing.TB, unfenced bool) *Recorder {
	t.Helper()
	r := &Recorder{t: t, file: filepath.Join(t.TempDir(), "events")}
	p := Spawn(t, "recorder", recorderTask{File: r.file, Unfenced: unfenced})
	var said recorderSaid
	p.Said(&said)
	r.addr, r.pen = said.Addr, NewPen(said.Addr)
	t.Cleanup(r.pen.Close)
	return r
}

// Addr is where a Pen finds the recorder.
func (r *Recorder) Addr() string { return r.addr }

// Events reads all that was recorded so far.
func (r *Recorder) Events() []Event {
	r.t.Helper()
	if _, err := r.pen.ask("flush"); err != nil {
		r.t.Fatal(err)
	}
	file, err := os.Open(r.file)
	if err != nil {
		r.t.Fatal(err)
	}
	defer file.Close()
	var events []Event
	scan := bufio.NewScanner(file)
	for scan.Scan() {
		e, err := parseEvent(scan.Text())
		if err != nil {
			r.t.Fatalf("line %d of the recorder: %v", len(events)+1, err)
		}
		events = append(events, e)
	}
	if err := scan.Err(); err != nil {
		r.t.Fatal(err)
	}
	return events
}

// Count counts the events of one kind so far; of effects, those that were accepted.
func (r *Recorder) Count(what string) int {
	r.t.Helper()
	answer, err := r.pen.ask("count " + what)
	if err != nil {
		r.t.Fatal(err)
	}
	n, err := strconv.Atoi(answer)
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

// ClockOff is how far the wall clock of this owner was off the recorder's when a handler of its last
// began, to the minute; 0 if none has.
func (r *Recorder) ClockOff(owner string) (off time.Duration) {
	r.t.Helper()
	for _, e := range r.Events() {
		if e.What != Begin || e.Owner != owner {
			continue
		}
		shown, err := strconv.ParseInt(e.Word, 10, 64)
		if err != nil {
			r.t.Fatalf("the clock of %s: %v", owner, err)
		}
		off = time.Unix(shown, 0).Sub(e.At).Round(time.Minute)
	}
	return off
}

// line is the event as the recorder writes it.
func (e Event) line() string {
	return fmt.Sprintf("%d %s %d %d %t %s %s\n", e.At.UnixNano(), e.What, e.Ref.Job, e.Ref.Token, e.Stale, e.Word, e.Owner)
}

func parseEvent(line string) (e Event, err error) {
	parts := strings.SplitN(line, " ", 7)
	if len(parts) != 7 {
		return e, fmt.Errorf("%q: want seven words", line)
	}
	var at, job, token int64
	for i, into := range map[int]*int64{0: &at, 2: &job, 3: &token} {
		if *into, err = strconv.ParseInt(parts[i], 10, 64); err != nil {
			return e, fmt.Errorf("%q: %w", line, err)
		}
	}
	return Event{
		At: time.Unix(0, at), What: parts[1], Ref: pacht.Ref{Job: pacht.ID(job), Token: pacht.Token(token)},
		Stale: parts[4] == "true", Word: parts[5], Owner: parts[6],
	}, nil
}
