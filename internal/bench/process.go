package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"
)

// processes are workers in processes of their own: this program again, as "bench worker".
type processes struct {
	all  []*process
	jobs int
}

// process is one of them. Orders go to its standard input, one word a line, news come from its
// standard output, one JSON object a line. Its input ends when we end, and it with it.
type process struct {
	cmd   *exec.Cmd
	stdin interface {
		Write([]byte) (int, error)
		Close() error
	}
	stderr lastWords
	count  atomic.Int64
	fresh  chan news // everything but counts
	ended  chan struct{}
	err    error // how it ended; set when ended is closed
}

// task is what a worker process is told. The URL may hold a password: it goes by pipe.
type task struct {
	URL         string `json:"url"`
	Concurrency int    `json:"concurrency"`
	Jobs        int    `json:"jobs"`
}

// news is what it says.
type news struct {
	Ready   bool     `json:"ready,omitempty"`
	Ran     int64    `json:"ran,omitempty"`     // handlers so far
	Settled bool     `json:"settled,omitempty"` // all of them, with the CPU seconds since "begin"
	CPU     *float64 `json:"cpu,omitempty"`
	Final   bool     `json:"final,omitempty"` // the worker has stopped
	Runs    []byte   `json:"runs,omitempty"`  // see runs.compact
	Strange int64    `json:"strange,omitempty"`
}

// Orders to a worker process.
const (
	orderBegin  = "begin"
	orderSettle = "settle" // wait until nothing is held
	orderEnd    = "end"
)

func newProcesses(ctx context.Context, p *Place, executable string, n, concurrency, jobs int) (*processes, error) {
	c := &processes{jobs: jobs}
	for range n {
		proc, err := startProcess(executable, task{URL: p.pooled(), Concurrency: concurrency, Jobs: jobs})
		if err != nil {
			return nil, errors.Join(err, c.kill())
		}
		c.all = append(c.all, proc)
	}
	for _, proc := range c.all {
		if _, err := proc.wait(ctx, func(n news) bool { return n.Ready }); err != nil {
			return nil, errors.Join(err, c.kill())
		}
	}
	return c, nil
}

func startProcess(executable string, t task) (*process, error) {
	cmd := exec.Command(executable, "bench", "worker")
	cmd.SysProcAttr = ownGroup()
	p := &process{cmd: cmd, fresh: make(chan news, 8), ended: make(chan struct{})}
	cmd.Stderr = &p.stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.stdin = stdin
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a worker process: %w", err)
	}
	go func() {
		defer close(p.ended)
		dec := json.NewDecoder(bufio.NewReader(stdout))
		for {
			var n news
			if dec.Decode(&n) != nil {
				break // how it ended is what counts
			}
			if n.Ran > 0 {
				p.count.Store(n.Ran)
				continue
			}
			p.fresh <- n // there are three in all
		}
		p.err = cmd.Wait()
	}()
	line, err := json.Marshal(t)
	if err == nil {
		_, err = stdin.Write(append(line, '\n'))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("tell a worker process its task: %w", err), p.kill())
	}
	return p, nil
}

func (p *process) order(word string) error {
	if _, err := p.stdin.Write([]byte(word + "\n")); err != nil {
		return fmt.Errorf("worker process %d: %s: %w%s", p.cmd.Process.Pid, word, err, p.stderr.said())
	}
	return nil
}

func (p *process) wait(ctx context.Context, is func(news) bool) (news, error) {
	for {
		select {
		case n := <-p.fresh:
			if is(n) {
				return n, nil
			}
		case <-ctx.Done():
			return news{}, context.Cause(ctx)
		case <-p.ended:
			select { // what it said last
			case n := <-p.fresh:
				if is(n) {
					return n, nil
				}
			default:
				return news{}, fmt.Errorf("worker process %d has ended (%v)%s", p.cmd.Process.Pid, p.err, p.stderr.said())
			}
		}
	}
}

func (p *process) kill() error {
	_ = p.cmd.Process.Kill() // fails only if it has ended
	<-p.ended
	return p.stdin.Close()
}

func (c *processes) kill() (err error) {
	for _, p := range c.all {
		_ = p.kill() // they were not asked to end well
	}
	return nil
}

func (c *processes) begin(context.Context) error {
	for _, p := range c.all {
		if err := p.order(orderBegin); err != nil {
			return err
		}
	}
	return nil
}

func (c *processes) ran() (sum int64, err error) {
	for _, p := range c.all {
		sum += p.count.Load()
		select {
		case <-p.ended:
			return sum, fmt.Errorf("worker process %d has ended (%v)%s", p.cmd.Process.Pid, p.err, p.stderr.said())
		default:
		}
	}
	return sum, nil
}

func (c *processes) settled(ctx context.Context) (*float64, error) {
	for _, p := range c.all {
		if err := p.order(orderSettle); err != nil {
			return nil, err
		}
	}
	sum, known := 0.0, true
	for _, p := range c.all {
		n, err := p.wait(ctx, func(n news) bool { return n.Settled })
		if err != nil {
			return nil, err
		}
		if n.CPU == nil {
			known = false
		} else {
			sum += *n.CPU
		}
	}
	if !known {
		return nil, nil
	}
	return &sum, nil
}

// end asks all of them, and kills who does not end within a worker's own time for it.
func (c *processes) end() (*runs, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	all := newRuns(c.jobs)
	var failed error
	for _, p := range c.all {
		failed = errors.Join(failed, p.order(orderEnd))
	}
	for _, p := range c.all {
		n, err := p.wait(ctx, func(n news) bool { return n.Final })
		if err == nil {
			all.add(n.Runs, n.Strange)
			_ = p.stdin.Close() // it may have gone already
			select {
			case <-p.ended:
				if p.err != nil {
					err = fmt.Errorf("worker process %d: %w%s", p.cmd.Process.Pid, p.err, p.stderr.said())
				}
			case <-ctx.Done():
				err = fmt.Errorf("worker process %d does not end", p.cmd.Process.Pid)
			}
		}
		failed = errors.Join(failed, err)
	}
	if failed != nil {
		_ = c.kill()
	}
	return all, failed
}

// lastWords keeps the end of what a process says on its standard error.
type lastWords struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *lastWords) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text.Len()+len(b) > 64<<10 {
		l.text.Reset()
	}
	return l.text.Write(b)
}

func (l *lastWords) said() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := bytes.TrimSpace(l.text.Bytes())
	if len(text) == 0 {
		return ""
	}
	return ":\n" + string(text[max(0, len(text)-2000):])
}
