package main

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// run starts a command in a process group of its own and waits for its end. When ctx ends
// first, the group is asked to stop and, after killAfter, killed; then stopped is true. The
// state is nil if the command could not be started.
func (r *runner) run(ctx context.Context, cmd *exec.Cmd) (state *os.ProcessState, stopped bool, err error) {
	// On Linux the kernel kills the child when the thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		return nil, false, err
	}
	r.started(cmd.Process)
	var stopping sync.WaitGroup
	ended := make(chan struct{})
	stopping.Go(func() {
		select {
		case <-ended:
			return
		case <-ctx.Done():
		}
		select {
		case <-ended: // both at once: it ended by itself
			return
		default:
		}
		stopped = true
		stopGroup(cmd.Process)
		kill := time.NewTimer(r.killAfter)
		defer kill.Stop()
		select {
		case <-ended:
		case <-kill.C:
			killGroup(cmd.Process)
		}
	})
	err = cmd.Wait()
	close(ended)
	stopping.Wait()
	killGroup(cmd.Process) // what it left behind must not go on without a lease
	r.ended(cmd.Process)
	return cmd.ProcessState, stopped, err
}

func (r *runner) started(p *os.Process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running == nil {
		r.running = map[*os.Process]bool{}
	}
	r.running[p] = true
}

func (r *runner) ended(p *os.Process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, p)
}

// killAll kills all that runs: this process ends next, without waiting. The lock is kept until
// then, so that no handler reports how a killed command ended.
func (r *runner) killAll() {
	r.mu.Lock()
	for p := range r.running {
		killGroup(p)
	}
}
