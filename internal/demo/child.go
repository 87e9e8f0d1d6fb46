package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// child is one process of the run. It gets its task as one JSON line on its standard input,
// which stays open as long as we live, and says as one JSON line on its standard output that
// it is ready.
type child struct {
	name string
	said greeting
	log  string // the file its standard error goes to

	cmd    *exec.Cmd
	stdin  io.Closer
	exited chan struct{}
	err    error // of Wait; set when exited is closed

	mu     sync.Mutex
	ending bool // we asked it to end, or killed it
}

// greeting is what a child says when it is ready.
type greeting struct {
	Owner string `json:"owner,omitempty"` // of a worker's leases
	URL   string `json:"url,omitempty"`   // of the provider
}

// startChild starts a process and waits until it is ready.
func startChild(ctx context.Context, name, executable string, args []string, log string, task any) (*child, error) {
	order, err := json.Marshal(task)
	if err != nil {
		return nil, fmt.Errorf("task of %s: %w", name, err)
	}
	errs, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer errs.Close() // the child has its own descriptor
	cmd := exec.Command(executable, args...)
	cmd.SysProcAttr = ownGroup()
	cmd.Stderr = errs
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	c := &child{name: name, log: log, cmd: cmd, stdin: stdin, exited: make(chan struct{})}
	ready, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	unready := context.AfterFunc(ready, func() { _ = cmd.Process.Kill() }) // fails only if it has ended
	_, err = stdin.Write(append(order, '\n'))
	if err == nil {
		var line []byte
		if line, err = bufio.NewReader(stdout).ReadBytes('\n'); err == nil {
			err = json.Unmarshal(line, &c.said)
		}
	}
	if !unready() && err == nil {
		err = context.Cause(ready)
	}
	go func() {
		defer close(c.exited)
		c.err = cmd.Wait()
	}()
	if err != nil {
		err = fmt.Errorf("%s did not get ready: %w%s", name, err, c.lastWords())
		return nil, errors.Join(err, c.kill())
	}
	return c, nil
}

func (c *child) pid() int { return c.cmd.Process.Pid }

func (c *child) signal(sig syscall.Signal) error {
	if err := c.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s (pid %d): %w", c.name, c.pid(), err)
	}
	return nil
}

// kill ends the process at once, stopped or not, and waits for its end.
func (c *child) kill() error {
	c.expectEnd()
	if err := c.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-c.exited
	return nil
}

// stop asks the process to end in order, and kills it if it does not. A process that is
// stopped is woken by kill alone.
func (c *child) stop(patience time.Duration) error {
	c.expectEnd()
	if err := c.signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-c.exited:
		if c.err != nil {
			return fmt.Errorf("%s did not end well: %w%s", c.name, c.err, c.lastWords())
		}
		return nil
	case <-time.After(patience):
		return errors.Join(fmt.Errorf("%s did not end within %s and was killed", c.name, patience), c.kill())
	}
}

func (c *child) expectEnd() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ending = true
}

func (c *child) running() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.ending
}

// lastWords are the last lines that the child wrote to its log.
func (c *child) lastWords() string {
	const most = 10
	text, err := os.ReadFile(c.log)
	if err != nil || len(text) == 0 {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return "\n  " + strings.Join(lines[max(0, len(lines)-most):], "\n  ")
}
