package netfault

import (
	"bytes"
	"net"
	"sync"
	"testing"
	"time"
)

// Trap loses one answer. See CutAnswer.
type Trap struct {
	request, answer []byte
	sprung          chan struct{} // closed when the answer came and the connection was cut

	mu    sync.Mutex
	armed bool
}

// CutAnswer loses the answer to one request: the next connection on which the client sends
// these bytes hears nothing any more, and is cut when the server has answered with those
// (nil: with anything), which shows that it has carried the request out. Only once.
//
// For PostgreSQL the answer "Z\x00\x00\x00\x05I" says that the server is outside any
// transaction, so a commit is through.
func (p *Proxy) CutAnswer(request, answer []byte) *Trap {
	t := &Trap{request: request, answer: answer, sprung: make(chan struct{}), armed: true}
	p.set(func() { p.trap = t })
	return t
}

// Committed is the answer to wait for if the request commits on PostgreSQL.
var Committed = []byte("Z\x00\x00\x00\x05I")

// Wait fails the test if the trap does not spring within ten seconds.
func (t *Trap) Wait(tb testing.TB) {
	tb.Helper()
	select {
	case <-t.sprung:
	case <-time.After(10 * time.Second):
		tb.Fatalf("netfault: no client sent %q, or no server answered with %q", t.request, t.answer)
	}
}

// take arms one connection with the trap.
func (t *Trap) take() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.armed
	t.armed = false
	return was
}

// link is one connection through the proxy.
type link struct {
	proxy          *Proxy
	client, server net.Conn

	mu         sync.Mutex
	sent, back []byte // the ends of what went by, as long as a pattern could straddle them
	caught     *Trap  // set once the request went by: no answer goes back any more
}

// copy moves bytes until one side ends, and then ends the other.
func (l *link) copy(from, to net.Conn, pass func([]byte) bool) {
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && l.proxy.hold() && pass(buf[:n]) {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// up sees what the client sends. All of it goes on to the server.
func (l *link) up(b []byte) bool {
	l.proxy.mu.Lock()
	trap := l.proxy.trap
	l.proxy.mu.Unlock()
	if trap == nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.caught == nil && passes(&l.sent, b, trap.request) && trap.take() {
		l.caught, l.back = trap, nil
	}
	return true
}

// down sees what the server answers.
func (l *link) down(b []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	trap := l.caught
	if trap == nil {
		return true
	}
	if passes(&l.back, b, trap.answer) {
		l.client.Close()
		l.server.Close()
		select {
		case <-trap.sprung:
		default:
			close(trap.sprung)
		}
	}
	return false
}

// passes says whether the pattern has gone by with b, and keeps the end of it.
func passes(seen *[]byte, b, pattern []byte) bool {
	all := append(*seen, b...)
	*seen = bytes.Clone(all[max(0, len(all)-max(0, len(pattern)-1)):])
	return bytes.Contains(all, pattern)
}
