package lab

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
)

// ErrFenced is the recorder's answer to an effect under a token than which it has seen a higher.
var ErrFenced = errors.New("the recorder has seen a higher token for this job")

// Pen writes to a recorder. It may be used by many goroutines.
type Pen struct {
	addr string

	mu   sync.Mutex
	idle []*penConn
}

type penConn struct {
	net.Conn
	in *bufio.Reader
}

// NewPen makes a pen for the recorder at an address. It connects when it is used.
func NewPen(addr string) *Pen { return &Pen{addr: addr} }

// Begin says that a handler has begun, and what its process's wall clock shows. It is no error
// that its token is stale: no clock covers a process that was frozen just before.
func (p *Pen) Begin(ref pacht.Ref, owner string) error {
	_, err := p.tell(Begin, ref, strconv.FormatInt(clock.Now().Time().Unix(), 10), owner)
	return err
}

// Effect does something outside that cannot be rolled back, or gets ErrFenced.
func (p *Pen) Effect(ref pacht.Ref, owner string) error {
	stale, err := p.tell(Effect, ref, "-", owner)
	if err == nil && stale {
		return fmt.Errorf("effect of %s: %w", ref, ErrFenced)
	}
	return err
}

// End says that the handler is about to return, and how, in one word.
func (p *Pen) End(ref pacht.Ref, owner, how string) error {
	_, err := p.tell(End, ref, how, owner)
	return err
}

// Settled says that the database has answered: the job is completed.
func (p *Pen) Settled(ref pacht.Ref, owner string) error {
	_, err := p.tell(Settled, ref, "-", owner)
	return err
}

func (p *Pen) tell(what string, ref pacht.Ref, word, owner string) (stale bool, err error) {
	answer, err := p.ask(fmt.Sprintf("%s %d %d %s %s", what, ref.Job, ref.Token, word, owner))
	return answer == "stale", err
}

func (p *Pen) ask(line string) (string, error) {
	c, err := p.take()
	if err != nil {
		return "", fmt.Errorf("recorder: %w", err)
	}
	_, err = c.Write([]byte(line + "\n"))
	var answer string
	if err == nil {
		answer, err = c.in.ReadString('\n')
	}
	if err != nil {
		_ = c.Close() // the first error is the one to tell
		return "", fmt.Errorf("recorder: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, c)
	return strings.TrimSuffix(answer, "\n"), nil
}

func (p *Pen) take() (*penConn, error) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return c, nil
	}
	p.mu.Unlock()
	conn, err := net.DialTimeout("tcp", p.addr, 10*time.Second)
	if err != nil {
		return nil, err
	}
	return &penConn{conn, bufio.NewReader(conn)}, nil
}

// Close closes the connections that are idle.
func (p *Pen) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.idle {
		_ = c.Close() // nothing was on its way
	}
	p.idle = nil
}
