package run

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pacht-queue/pacht/bench/child"
	"github.com/pacht-queue/pacht/bench/peer"
)

// process is a measured child.
type process struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	said    chan line // all lines; closed at the end of its output
	log     journal
	claimed float64 // CPU seconds that it reported so far
}

// journal is what a child writes to its standard error.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

type line struct {
	word, rest string
}

// nodeDir holds the scripts of Node.js, from the folder of this module.
const nodeDir = "node"

// node is the Node.js that package.json names, else the machine's.
func node() (string, error) {
	own, err := filepath.Abs(filepath.Join(nodeDir, "node_modules", "node", "bin", "node"))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(own); err == nil {
		return own, nil
	}
	return exec.LookPath("node")
}

func (b *Bench) command(about peer.About, task child.Task) (*exec.Cmd, error) {
	text, err := json.Marshal(task)
	if err != nil {
		return nil, err
	}
	if about.Script == "" {
		return exec.Command(b.self, "child", string(text)), nil
	}
	program, err := node()
	if err != nil {
		return nil, err
	}
	return exec.Command(program, filepath.Join(nodeDir, about.Script+".js"), string(text)), nil
}

// start starts a child and waits until it is connected.
func (b *Bench) start(ctx context.Context, about peer.About, task child.Task) (*process, error) {
	task.Peer = about.Name
	cmd, err := b.command(about, task)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, said: make(chan line, 64)}
	cmd.Stderr = &p.log
	cmd.SysProcAttr = dieWithParent()
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := b.spawn(cmd); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.said)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			word, rest, _ := strings.Cut(lines.Text(), " ")
			p.said <- line{word, rest}
		}
	}()
	if task.Do == "prepare" {
		return p, nil
	}
	limit, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if _, err := p.expect(limit, "ready"); err != nil {
		return nil, errors.Join(err, p.end(ctx))
	}
	return p, nil
}

func (p *process) tell(word string) error {
	_, err := fmt.Fprintln(p.in, word)
	return err
}

// expect reads lines up to one with this word.
func (p *process) expect(ctx context.Context, word string) (string, error) {
	for {
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("waited for %q: %w", word, context.Cause(ctx))
		case l, ok := <-p.said:
			if !ok {
				return "", fmt.Errorf("it ended before it said %q", word)
			}
			if l.word == word {
				return l.rest, nil
			}
		}
	}
}

func (p *process) report(ctx context.Context) (r child.Report, err error) {
	text, err := p.expect(ctx, "report")
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return r, fmt.Errorf("its report: %w", err)
	}
	p.claimed += r.CPU
	return r, nil
}

// end closes the child's input and waits for its end, half a minute at most.
func (p *process) end(ctx context.Context) error {
	_ = p.in.Close() // it may have ended already
	kill := time.AfterFunc(30*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer kill.Stop()
	for range p.said {
	}
	err := p.cmd.Wait()
	if err != nil {
		return fmt.Errorf("child: %w\n%s", err, tail(p.log.String()))
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// The kernel's account of the whole process, by wait4, bounds what it said of itself.
	used, ok := p.cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if ok {
		total := time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
		if p.claimed > total+0.02 {
			return fmt.Errorf("child: it reported %.3f CPU seconds and used %.3f", p.claimed, total)
		}
	}
	return nil
}

// once runs a child that does one thing and reports it.
func (b *Bench) once(ctx context.Context, about peer.About, task child.Task) (r child.Report, err error) {
	p, err := b.start(ctx, about, task)
	if err != nil {
		return r, err
	}
	if task.Do != "prepare" {
		if err = p.tell("go"); err == nil {
			limit, cancel := context.WithTimeout(ctx, b.patience)
			r, err = p.report(limit)
			cancel()
		}
		if err != nil {
			_ = p.cmd.Process.Kill()
		}
	}
	return r, errors.Join(err, p.end(ctx))
}

func tail(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-6):], "\n")
}
