package netfault

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
)

// Late is a network that breaks a client's connection when it sends certain bytes, and delivers them
// to the server later: what the client was never answered is carried out all the same.
type Late struct {
	mu      sync.Mutex
	pattern []byte
	left    int
	caught  []delivery
}

// delivery is bytes on their way, and the connection that they will come by.
type delivery struct {
	server net.Conn
	bytes  []byte
}

var errReset = errors.New("netfault: connection reset")

// Catch lets the next n messages with these bytes be late. A request to cancel what runs is lost.
func (l *Late) Catch(pattern string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pattern, l.left = []byte(pattern), n
}

// Dial opens a connection; it fits a pool of pgx.
func (l *Late) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	server, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &lateConn{Conn: server, late: l}, nil
}

// Caught is how many messages are on their way.
func (l *Late) Caught() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.caught)
}

// Deliver lets all that is on its way arrive, waits until the server has answered, and closes those
// connections.
func (l *Late) Deliver() {
	l.mu.Lock()
	caught := l.caught
	l.caught = nil
	l.mu.Unlock()
	for _, d := range caught {
		if _, err := d.server.Write(d.bytes); err == nil {
			_, _ = d.server.Read(make([]byte, 1<<16)) // an end is an answer too
		}
		d.server.Close()
	}
}

// lateConn is the client's side.
type lateConn struct {
	net.Conn
	late *Late
	mu   sync.Mutex
	lost bool
}

// cancelRequest begins a connection that asks PostgreSQL to cancel what another one runs.
var cancelRequest = []byte("\x00\x00\x00\x10\x04\xd2\x16\x2e")

func (c *lateConn) Write(b []byte) (int, error) {
	l := c.late
	l.mu.Lock()
	defer l.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.lost:
		return 0, errReset
	case l.pattern != nil && bytes.HasPrefix(b, cancelRequest):
		return len(b), c.Conn.Close() // nobody waits for an answer to it
	case l.left > 0 && bytes.Contains(b, l.pattern):
		l.left--
		l.caught = append(l.caught, delivery{c.Conn, bytes.Clone(b)})
		c.lost = true
		return len(b), nil // it has left this machine
	}
	return c.Conn.Write(b)
}

func (c *lateConn) Read(b []byte) (int, error) {
	if c.isLost() {
		return 0, errReset
	}
	return c.Conn.Read(b)
}

// Close leaves a connection open by which something is on its way.
func (c *lateConn) Close() error {
	if c.isLost() {
		return nil
	}
	return c.Conn.Close()
}

func (c *lateConn) isLost() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost
}
