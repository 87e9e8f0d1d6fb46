package pgserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Crash ends all processes of the server at once with SIGKILL, as a power failure does: no
// session finishes what it was at, and no standby hears more. It may be started again.
func (s *Server) Crash() error {
	if s.proc == nil {
		return nil
	}
	all, err := s.freeze()
	if err != nil {
		return err
	}
	for _, pid := range all {
		err = errors.Join(err, signal(pid, syscall.SIGKILL))
	}
	<-s.proc.done
	s.proc = nil
	return errors.Join(err, s.unshare())
}

// Freeze stops all processes of the server: connections stay open, and nobody answers.
func (s *Server) Freeze() error {
	_, err := s.freeze()
	return err
}

// Thaw lets them go on.
func (s *Server) Thaw() error {
	if s.proc == nil {
		return nil
	}
	all, err := family(s.PID())
	for _, pid := range all {
		err = errors.Join(err, signal(pid, syscall.SIGCONT))
	}
	return err
}

// freeze stops the postmaster first, which then starts no more sessions, and then the sessions:
// each is the leader of a group of its own, so that no signal reaches them together.
func (s *Server) freeze() ([]int, error) {
	if s.proc == nil {
		return nil, errors.New("pgserver: the server does not run")
	}
	if err := signal(s.PID(), syscall.SIGSTOP); err != nil {
		return nil, err
	}
	all, err := family(s.PID())
	for _, pid := range all {
		err = errors.Join(err, signal(pid, syscall.SIGSTOP))
	}
	return all, err
}

func signal(pid int, sig syscall.Signal) error {
	if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("pgserver: signal process %d: %w", pid, err)
	}
	return nil
}

// family is a process and its children.
func family(pid int) ([]int, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	all := []int{pid}
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// The name in brackets may hold anything; state and parent come after the last one.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) < 2 || fields[1] != strconv.Itoa(pid) {
			continue
		}
		child, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			return nil, err
		}
		all = append(all, child)
	}
	return all, nil
}

// unshare removes the segment of shared memory that a server leaves which was killed: the
// seventh line of its lock file names it.
func (s *Server) unshare() error {
	lock, err := os.ReadFile(filepath.Join(s.dir, "data", "postmaster.pid"))
	if err != nil {
		return err
	}
	lines := strings.Split(string(lock), "\n")
	if len(lines) < 7 {
		return nil
	}
	key := strings.Fields(lines[6])
	if len(key) < 2 {
		return nil
	}
	id, err := strconv.Atoi(key[1])
	if err != nil {
		return err
	}
	if _, err := unix.SysvShmCtl(id, unix.IPC_RMID, nil); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("pgserver: remove shared memory %d: %w", id, err)
	}
	return nil
}
