package netfault

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo answers each line with "did" and the line, and counts what it did.
func echo(t *testing.T) (addr string, did *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	did = new(atomic.Int64)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for lines := bufio.NewScanner(c); lines.Scan(); {
					did.Add(1)
					fmt.Fprintf(c, "did %s\n", lines.Text())
				}
			}()
		}
	}()
	t.Cleanup(func() { l.Close(); <-ended })
	return l.Addr().String(), did
}

func ask(t *testing.T, c net.Conn, line string) (string, error) {
	t.Helper()
	if _, err := fmt.Fprintln(c, line); err != nil {
		return "", err
	}
	if err := c.SetReadDeadline(time.Now().Add(300 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	answer, err := bufio.NewReader(c).ReadString('\n')
	return strings.TrimSpace(answer), err
}

func dial(t *testing.T, p *Proxy) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestProxyPassesBytesUntilCut(t *testing.T) {
	addr, _ := echo(t)
	p := New(t, addr)
	c := dial(t, p)
	if got, err := ask(t, c, "a"); got != "did a" {
		t.Fatalf("answer %q, %v", got, err)
	}
	p.Cut()
	if got, err := ask(t, c, "b"); err == nil {
		t.Errorf("a cut connection answered %q", got)
	}
}

func TestRefuseAndBlackholeEndWhenSwitchedOff(t *testing.T) {
	addr, did := echo(t)
	p := New(t, addr)
	p.Refuse(true)
	if got, err := ask(t, dial(t, p), "a"); err == nil {
		t.Errorf("a refused connection answered %q", got)
	}
	p.Refuse(false)
	c := dial(t, p)
	p.Blackhole(true)
	if got, err := ask(t, c, "b"); err == nil || did.Load() != 0 {
		t.Errorf("a black hole answered %q and let %d lines through", got, did.Load())
	}
	p.Blackhole(false)
	if got, err := ask(t, c, "c"); got != "did c" {
		t.Errorf("after the black hole: %q, %v", got, err)
	}
}

func TestDelayHoldsBytesBack(t *testing.T) {
	addr, _ := echo(t)
	p := New(t, addr)
	p.Delay(40 * time.Millisecond)
	from := time.Now()
	if got, err := ask(t, dial(t, p), "a"); got != "did a" || time.Since(from) < 80*time.Millisecond {
		t.Errorf("answer %q after %s, %v", got, time.Since(from), err)
	}
}

func TestCutAnswerLosesOneAnswerAfterTheServerDidTheWork(t *testing.T) {
	addr, did := echo(t)
	p := New(t, addr)
	trap := p.CutAnswer([]byte("commit"), []byte("did commit"))
	c := dial(t, p)
	if got, err := ask(t, c, "begin"); got != "did begin" {
		t.Fatalf("before the pattern: %q, %v", got, err)
	}
	if got, err := ask(t, c, "commit"); err == nil {
		t.Errorf("the answer came: %q", got)
	}
	trap.Wait(t)
	if did.Load() != 2 {
		t.Errorf("the server did %d of 2", did.Load())
	}
	if got, err := ask(t, dial(t, p), "commit"); got != "did commit" {
		t.Errorf("the trap sprang twice: %q, %v", got, err)
	}
}
