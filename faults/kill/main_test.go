// Package kill tries what docs/lease.md claims against processes that are killed and frozen: the
// workers, the watcher and the server, at random and in every named point.
package kill

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"testing"

	"github.com/pacht-queue/pacht/faults/lab"
	"github.com/pacht-queue/pacht/internal/demo"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "demo" {
		os.Exit(demoChild(os.Args[2]))
	}
	// In short these tests wait for leases to run out, most of the time, and so may do that all at once. At
	// length they keep a machine busy: with all at once, leases of a second run out for want of time.
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(lab.Scale(16, 1))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	lab.Main(m, lab.Role{Name: "caller", Run: runCaller}, lab.Role{Name: "payer", Run: runPayer}, lab.Role{Name: "shop", Run: runShop})
}

// demoChild is what the pacht command is to the demo: its workers and its provider.
func demoChild(role string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var err error
	switch role {
	case "worker":
		err = demo.ServeWorker(ctx, os.Stdin, os.Stdout, os.Stderr)
	case "psp":
		err = demo.ServeProvider(ctx, os.Stdin, os.Stdout)
	default:
		err = fmt.Errorf("no role %q", role)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
