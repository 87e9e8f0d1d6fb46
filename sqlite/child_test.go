package sqlite

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// Tests that need other processes start this test binary again, in a role.
const (
	roleVariable = "PACHT_SQLITE_TEST_ROLE"
	fileVariable = "PACHT_SQLITE_TEST_FILE"
)

var roles = map[string]func(ctx context.Context, path string) error{
	"churn":         churnRole,
	"migrate":       migrateRole,
	"half migrated": halfMigratedRole,
	"hold the lock": holdRole,
	"drain":         func(ctx context.Context, path string) error { return drain(ctx, path, 1000) },
	"work":          func(ctx context.Context, path string) error { return drain(ctx, path, 50) },
}

// childProcess runs the role that this process was started for, if there is one.
func childProcess() (code int, ok bool) {
	role, ok := roles[os.Getenv(roleVariable)]
	if !ok {
		return 0, false
	}
	if err := role(context.Background(), os.Getenv(fileVariable)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return 0, true
}

// child is a process in a role.
type child struct {
	*exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr bytes.Buffer
}

// startChild starts a role and waits until it says that it is ready. go lets it go on.
func startChild(t testing.TB, role, path string) *child {
	t.Helper()
	c := &child{Cmd: exec.Command(os.Args[0])}
	c.Env = append(os.Environ(), roleVariable+"="+role, fileVariable+"="+path)
	c.Stderr = &c.stderr
	var err error
	if c.in, err = c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewReader(out)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if c.ProcessState == nil {
			c.kill()
		}
	})
	if line, err := c.out.ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("role %s said %q, %v: %s", role, line, err, c.kill())
	}
	return c
}

// goOn lets the child go on from ready.
func (c *child) goOn(t testing.TB) {
	t.Helper()
	if _, err := fmt.Fprintln(c.in, "go"); err != nil {
		t.Fatal(err)
	}
}

// answer reads the child's answer and waits for its end.
func (c *child) answer(t *testing.T, into any) {
	t.Helper()
	if err := json.NewDecoder(c.out).Decode(into); err != nil {
		t.Errorf("answer of the child: %v", err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("child: %v: %s", err, c.stderr.String())
	}
}

// kill ends it as kill -9 does.
func (c *child) kill() string {
	_ = c.Process.Kill()
	_ = c.Wait()
	return c.stderr.String()
}

// ready says so, and waits to be let on.
func ready() error {
	fmt.Println("ready")
	_, err := bufio.NewReader(os.Stdin).ReadString('\n')
	return err
}

// holdRole takes the file's write lock and keeps it until it is let on.
func holdRole(ctx context.Context, path string) error {
	s, err := Open(path, Config{})
	if err != nil {
		return err
	}
	defer s.Close()
	tx, err := s.DB().BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := ready(); err != nil {
		return err
	}
	return tx.Rollback()
}

func exit(code int) { os.Exit(code) }

// eventually polls for a condition with a deadline.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	within(t, 20*time.Second, what, ok)
}

func within(t *testing.T, d time.Duration, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(d); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("still not so after %s: %s", d, what)
		}
		time.Sleep(time.Millisecond)
	}
}
