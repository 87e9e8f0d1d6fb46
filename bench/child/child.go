// Package child is the measured process: it does one act with one peer, and speaks with its
// parent in lines. Scripts of Node.js speak the same.
//
//	child:  ready                    connected
//	parent: go                       begin
//	child:  handled 1234             handlers called so far, at most each 10 ms
//	parent: stop                     workers only: stop in order
//	child:  report {...}             what was done; then ready for the next go
//	parent: closes standard input    end
package child

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/pacht-queue/pacht/bench/peer"
	"github.com/pacht-queue/pacht/internal/bench/meter"
)

// Task is what a child is told, as JSON, in its only argument.
type Task struct {
	Peer    string      `json:"peer"`
	Do      string      `json:"do"` // prepare, bulk, single, work or feed
	At      peer.Target `json:"at"`
	Jobs    int         `json:"jobs"`              // how many there are, or are to be made
	Bytes   int         `json:"bytes"`             // length of the args
	Seconds float64     `json:"seconds,omitempty"` // how long to insert single jobs
	Every   float64     `json:"every,omitempty"`   // seconds between two jobs of feed
	Out     string      `json:"out,omitempty"`     // file for Counts or Times
}

// Report is what a child did between go and its end.
type Report struct {
	Jobs    int     `json:"jobs"`    // inserted, or handlers called
	Seconds float64 `json:"seconds"` // as the child saw it
	CPU     float64 `json:"cpu"`     // seconds of this process, by the system's account
	Peak    int64   `json:"peak"`    // most memory resident so far, bytes
}

// Run is the life of a child.
func Run(ctx context.Context, task Task, in io.Reader, out io.Writer) (err error) {
	p, err := peer.Find(task.Peer)
	if err != nil {
		return err
	}
	if task.Do == "prepare" {
		return p.Prepare(ctx, task.At)
	}
	session, err := p.Open(ctx, task.At)
	if err != nil {
		return fmt.Errorf("open %s: %w", task.Peer, err)
	}
	defer func() { err = errors.Join(err, session.Close(ctx)) }()
	c := &child{task: task, session: session, out: out}
	lines := bufio.NewScanner(in)
	c.say("ready")
	for lines.Scan() {
		if lines.Text() != "go" {
			return fmt.Errorf("told %q, want go", lines.Text())
		}
		report, err := c.act(ctx, lines)
		if err != nil {
			return fmt.Errorf("%s by %s: %w", task.Do, task.Peer, err)
		}
		text, err := json.Marshal(report)
		if err != nil {
			return err
		}
		c.say("report " + string(text))
	}
	return lines.Err()
}

type child struct {
	task    Task
	session peer.Session
	mu      sync.Mutex
	out     io.Writer
}

func (c *child) say(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintln(c.out, line)
}

func (c *child) act(ctx context.Context, lines *bufio.Scanner) (Report, error) {
	account := open()
	var n int
	var err error
	switch c.task.Do {
	case "bulk":
		n, err = c.bulk(ctx)
	case "single":
		n, err = c.single(ctx)
	case "feed":
		n, err = c.feed(ctx)
	case "work":
		return c.work(ctx, lines, account)
	default:
		err = fmt.Errorf("%q is nothing to do", c.task.Do)
	}
	return account.close(n), err
}

// account is the time and the CPU that an act takes.
type account struct {
	began time.Time
	cpu   time.Duration
}

func open() account {
	cpu, _ := meter.OwnCPU()
	return account{began: time.Now(), cpu: cpu}
}

func (a account) close(n int) Report {
	cpu, _ := meter.OwnCPU()
	peak, _ := meter.PeakRSS()
	return Report{Jobs: n, Seconds: time.Since(a.began).Seconds(), CPU: (cpu - a.cpu).Seconds(), Peak: peak}
}

// Main runs a child with its task from the command line.
func Main(ctx context.Context, argument string) error {
	var task Task
	if err := json.Unmarshal([]byte(argument), &task); err != nil {
		return fmt.Errorf("the task of a child: %w", err)
	}
	return Run(ctx, task, os.Stdin, os.Stdout)
}
