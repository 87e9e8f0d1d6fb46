package net_test

import (
	"bytes"
	"net"
	"net/url"
	"sync"
	"testing"
)

// commitTag is what a server of PostgreSQL says of a commit that went through.
var commitTag = []byte("C\x00\x00\x00\x0bCOMMIT\x00")

// cutter is a proxy that loses answers to commits: the transaction is committed, and whoever
// asked never hears of it, because the connection ends.
type cutter struct {
	url      string // of the database, through it
	target   string
	listener net.Listener
	done     sync.WaitGroup

	mu    sync.Mutex
	lose  func() bool // asked at each commit; nil: none is lost
	torn  bool        // what stands before the commit's tag arrives
	lost  int
	conns map[net.Conn]bool
}

func newCutter(t testing.TB, database string) *cutter {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{target: u.Host, listener: l, conns: map[net.Conn]bool{}}
	u.Host = l.Addr().String()
	c.url = u.String()
	c.done.Go(c.accept)
	t.Cleanup(func() {
		l.Close()
		c.mu.Lock()
		for conn := range c.conns {
			conn.Close()
		}
		c.mu.Unlock()
		c.done.Wait()
	})
	return c
}

// arm loses the answers of which lose says so.
func (c *cutter) arm(torn bool, lose func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.torn, c.lose = torn, lose
}

// once loses the next answer to a commit.
func (c *cutter) once(torn bool) {
	spent := false
	c.arm(torn, func() bool { was := spent; spent = true; return !was })
}

// count is how many answers were lost so far.
func (c *cutter) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost
}

func (c *cutter) accept() {
	for {
		client, err := c.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", c.target)
		if err != nil {
			client.Close()
			continue
		}
		c.mu.Lock()
		c.conns[client], c.conns[server] = true, true
		c.mu.Unlock()
		c.done.Go(func() { c.pass(client, server, false) })
		c.done.Go(func() { c.pass(server, client, true) })
	}
}

// pass copies bytes until one side ends, and then ends the other.
func (c *cutter) pass(from, to net.Conn, answers bool) {
	defer func() {
		from.Close()
		to.Close()
		c.mu.Lock()
		delete(c.conns, from)
		c.mu.Unlock()
	}()
	var seen []byte // the end of what went by, in which a tag may have begun
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		piece := buf[:n]
		cut := false
		if answers {
			whole := append(seen, piece...)
			if at := bytes.Index(whole, commitTag); at >= 0 {
				if cut = c.loses(); cut {
					piece = c.rest(piece, at-len(seen))
				}
				whole = nil
			}
			seen = bytes.Clone(whole[max(0, len(whole)-len(commitTag)+1):])
		}
		if len(piece) > 0 {
			if _, err := to.Write(piece); err != nil {
				return
			}
		}
		if err != nil || cut {
			return
		}
	}
}

func (c *cutter) loses() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lose == nil || !c.lose() {
		return false
	}
	c.lost++
	return true
}

// rest is what still arrives of a piece in which the tag stands at this place.
func (c *cutter) rest(piece []byte, at int) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.torn {
		return nil
	}
	return piece[:max(at, 0)]
}
