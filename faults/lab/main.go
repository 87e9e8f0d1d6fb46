package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/pacht-queue/pacht/internal/pgtest"
)

const (
	envRole = "PACHT_LAB_ROLE"
	envTask = "PACHT_LAB_TASK"
)

// Role is what a child process does: this test binary, started again. It must say once that it
// is ready, with whatever its parent wants to know.
type Role struct {
	Name string
	Run  func(ctx context.Context, task []byte, ready func(said any) error) error
}

// Except are goroutines that a library leaves behind, and nobody can end.
var Except []goleak.Option

// Main is the TestMain of the lab's packages. In a child it plays the role that the parent
// asks for; else it runs the tests, stops the servers that they share, and fails if a goroutine
// is left behind. Roles of the package's own come on top of the recorder and the worker.
func Main(m *testing.M, roles ...Role) {
	if name := os.Getenv(envRole); name != "" {
		os.Exit(play(name, append(roles, Role{"recorder", runRecorder}, Role{"worker", runWorker})))
	}
	os.Exit(pgtest.Run(m, Except...))
}

// play answers the exit code. The context of the role ends with SIGTERM.
func play(name string, roles []Role) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	for _, r := range roles {
		if r.Name != name {
			continue
		}
		if err := r.Run(ctx, []byte(os.Getenv(envTask)), say); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			return 1
		}
		return 0
	}
	fmt.Fprintf(os.Stderr, "no role %q\n", name)
	return 2
}

func say(said any) error {
	line, err := json.Marshal(said)
	if err == nil {
		_, err = os.Stdout.Write(append(line, '\n'))
	}
	return err
}
