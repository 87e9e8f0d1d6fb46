package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pacht-queue/pacht/internal/clock"
)

// process is a child that dies with this process.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// startProcess starts cmd from a thread that lives as long as the child: the kernel sends
// the signal of Pdeathsig when the thread that started the child ends, not the process.
func startProcess(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.done)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is in its log
		}
	}()
	return p, <-started
}

// end signals the child and waits for it, a minute at most.
func (p *process) end(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal process %d: %w", p.cmd.Process.Pid, err)
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(time.Minute):
		_ = p.cmd.Process.Kill()
		<-p.done
		return fmt.Errorf("process %d did not end within a minute of %s", p.cmd.Process.Pid, sig)
	}
}

// answers waits until a server takes connections, or its process has ended.
func answers(ctx context.Context, url string, ended <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, url)
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-ctx.Done():
			return err
		case <-ended:
			return fmt.Errorf("it ended: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

const folders = "pacht-pg-"

// makeFolder makes a temporary folder that says whose it is.
func makeFolder() (string, error) {
	return os.MkdirTemp("", fmt.Sprintf("%s%d-", folders, os.Getpid()))
}

// sweep removes what processes that died long ago left in the temporary folder.
func sweep() {
	old, _ := filepath.Glob(filepath.Join(os.TempDir(), folders+"*"))
	for _, dir := range old {
		pid, err := strconv.Atoi(strings.Split(filepath.Base(dir), "-")[2])
		info, statErr := os.Stat(dir)
		if err != nil || statErr != nil || clock.Since(info.ModTime()) < time.Hour || !gone(pid) {
			continue
		}
		_ = os.RemoveAll(dir) // somebody else's folder stays
	}
}
