// Package netfault is a small TCP proxy that breaks connections on purpose. Only tests
// import it.
package netfault

import (
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy stands between a client and a server.
type Proxy struct {
	listener net.Listener
	done     sync.WaitGroup

	mu        sync.Mutex
	target    string
	wake      chan struct{} // closed and replaced whenever a setting changes
	conns     map[net.Conn]bool
	closed    bool
	refuse    bool
	blackhole bool
	delay     time.Duration
	trap      *Trap
}

// New starts a proxy to target, ended with the test.
func New(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("netfault: %v", err)
	}
	p := &Proxy{target: target, listener: l, wake: make(chan struct{}), conns: map[net.Conn]bool{}}
	p.done.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Addr is host and port of the proxy.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Cut closes all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

// Lead lets new connections go to another target, as a name does that leads elsewhere now. Those
// that are there stay where they are.
func (p *Proxy) Lead(target string) { p.set(func() { p.target = target }) }

// Refuse closes new connections at once while it is on.
func (p *Proxy) Refuse(on bool) { p.set(func() { p.refuse = on }) }

// Blackhole swallows all bytes in both directions while it is on: nothing is closed, nothing
// answers. What was swallowed is lost.
func (p *Proxy) Blackhole(on bool) { p.set(func() { p.blackhole = on }) }

// Delay holds back each piece in each direction for d; 0 ends it.
func (p *Proxy) Delay(d time.Duration) { p.set(func() { p.delay = d }) }

func (p *Proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.wake)
	p.wake = make(chan struct{})
}

func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.set(func() {})
	p.listener.Close()
	p.Cut()
	p.done.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.done.Go(func() { p.serve(client) })
	}
}

func (p *Proxy) serve(client net.Conn) {
	defer client.Close()
	if !p.keep(client) {
		return
	}
	defer p.drop(client)
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer server.Close()
	if !p.keep(server) {
		return
	}
	defer p.drop(server)
	l := &link{proxy: p, client: client, server: server}
	p.done.Go(func() { l.copy(client, server, l.up) })
	l.copy(server, client, l.down)
}

func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.refuse {
		return false
	}
	p.conns[c] = true
	return true
}

func (p *Proxy) drop(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// hold waits for the delay, and says whether bytes may pass.
func (p *Proxy) hold() bool {
	p.mu.Lock()
	delay, wake, closed := p.delay, p.wake, p.closed
	p.mu.Unlock()
	if delay > 0 && !closed {
		select {
		case <-time.After(delay):
		case <-wake:
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.blackhole
}
