package lab

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Process is a child: this test binary in a role. It ends with the test at the latest.
type Process struct {
	t     testing.TB
	name  string
	log   string // the file that its standard error goes to
	said  []byte
	cmd   *exec.Cmd
	ended chan struct{}
	ours  atomic.Bool // we killed it
}

// Spawn starts a child in a role, with variables such as "GOMAXPROCS=1" on top of our own
// environment, and waits until it is ready.
func Spawn(t testing.TB, role string, task any, env ...string) *Process {
	t.Helper()
	p, err := spawn(t, role, task, env)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func spawn(t testing.TB, role string, task any, env []string) (*Process, error) {
	order, err := json.Marshal(task)
	if err != nil {
		return nil, fmt.Errorf("task of %s: %w", role, err)
	}
	p := &Process{t: t, name: role, log: filepath.Join(t.TempDir(), role+".log"), ended: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own descriptor
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(append(os.Environ(), env...), envRole+"="+role, envTask+"="+string(order))
	p.cmd.Stderr = log
	// A group of its own, so that what a terminal sends reaches us alone.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	started, read := make(chan error), make(chan struct{})
	// The kernel sends the signal of Pdeathsig when the thread that started the child ends.
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.ended)
		err := p.cmd.Start()
		started <- err
		if err == nil {
			<-read // Wait closes the pipe
			_ = p.cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", role, err)
	}
	t.Cleanup(p.Kill)
	late := time.AfterFunc(30*time.Second, func() { _ = p.cmd.Process.Kill() }) // fails only if it has ended
	p.said, err = bufio.NewReader(out).ReadBytes('\n')
	close(read)
	if !late.Stop() && err == nil {
		err = errors.New("it took longer than 30s")
	}
	if err != nil {
		p.Kill()
		return nil, fmt.Errorf("%s did not get ready: %w%s", role, err, p.LastWords())
	}
	return p, nil
}

// Said reads what the child said when it was ready.
func (p *Process) Said(into any) {
	p.t.Helper()
	if err := json.Unmarshal(p.said, into); err != nil {
		p.t.Fatalf("%s said %q: %v", p.name, p.said, err)
	}
}

// PID is the process's number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends a signal; none to a process that has ended.
func (p *Process) Signal(sig syscall.Signal) {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("signal %s to %s: %v", sig, p.name, err)
	}
}

// Kill ends the process at once, frozen or not, and waits for its end.
func (p *Process) Kill() {
	if !p.Ended() {
		p.ours.Store(true)
	}
	p.Signal(syscall.SIGKILL)
	<-p.ended
}

// Freeze stops the process where it is, and waits until it stands still.
func (p *Process) Freeze() {
	p.Signal(syscall.SIGSTOP)
	if !Within(10*time.Second, func() bool { return p.Frozen() || p.Ended() }) {
		p.t.Errorf("%s goes on although it was stopped", p.name)
	}
}

// Thaw lets a frozen process go on.
func (p *Process) Thaw() { p.Signal(syscall.SIGCONT) }

// Frozen says whether the process stands still.
func (p *Process) Frozen() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // the name before may hold anything
	return strings.HasPrefix(rest, "T")
}

// Ended says whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Wait waits for the end, and answers how it ended: the exit code, and whether SIGKILL ended it.
func (p *Process) Wait(patience time.Duration) (code int, killed bool, err error) {
	select {
	case <-p.ended:
	case <-time.After(patience):
		return 0, false, fmt.Errorf("%s did not end within %s%s", p.name, patience, p.LastWords())
	}
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return p.cmd.ProcessState.ExitCode(), ok && status.Signaled() && status.Signal() == syscall.SIGKILL, nil
}

// LastWords are the last lines that the child wrote to its standard error.
func (p *Process) LastWords() string {
	const most = 15
	text, err := os.ReadFile(p.log)
	if err != nil || len(text) == 0 {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return "\n  " + strings.Join(lines[max(0, len(lines)-most):], "\n  ")
}
