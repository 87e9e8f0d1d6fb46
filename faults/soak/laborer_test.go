package soak

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/faults/lab"
	"github.com/pacht-queue/pacht/internal/database"
	"github.com/pacht-queue/pacht/watch"
	"github.com/pacht-queue/pacht/worker"
)

// order is what a laborer is told, and said what it says.
type order struct {
	Database string `json:"database"`
}

type said struct {
	Addr string `json:"addr"` // who connects there is told a state
}

// state is what a process has of what may grow.
type state struct {
	Goroutines int `json:"goroutines"`
	Files      int `json:"files"`
	Heap       int `json:"heap"` // bytes in use after a collection
	Resident   int `json:"resident"`
}

// labor is the role of a worker process that tells its state.
func labor(ctx context.Context, task []byte, ready func(any) error) (err error) {
	var o order
	if err := json.Unmarshal(task, &o); err != nil {
		return err
	}
	lis, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	var telling sync.WaitGroup
	defer telling.Wait()
	defer lis.Close()
	telling.Go(func() { tellState(lis) })
	db, err := database.Open(ctx, o.Database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	w, err := worker.New(db, config(nil))
	if err != nil {
		return err
	}
	if err := ready(said{Addr: lis.Addr().String()}); err != nil {
		return err
	}
	return w.Run(ctx)
}

// config is a worker that keeps finished jobs for a second, so that tables need not grow.
func config(done *atomic.Int64) worker.Config {
	return worker.Config{
		Queues: map[string]int{pacht.DefaultQueue: 50},
		Handlers: []worker.Handler{worker.Handle(func(context.Context, *pacht.Job[lab.Work]) error {
			if done != nil {
				done.Add(1)
			}
			return nil
		})},
		Poll:      20 * time.Millisecond,
		Watch:     watch.Config{Period: 200 * time.Millisecond, Poll: 50 * time.Millisecond},
		Retention: pacht.Retention{Completed: time.Second},
		Logger:    slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	}
}

// tellState answers each connection with the state of this process, until the listener is closed.
func tellState(lis net.Listener) {
	for {
		conn, err := lis.Accept()
		if err != nil {
			return
		}
		s, err := look()
		if err == nil {
			err = json.NewEncoder(conn).Encode(s)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "tell the state:", err)
		}
		_ = conn.Close() // all was said
	}
}

// look takes this process's state, after all that is not needed was given back.
func look() (state, error) {
	debug.FreeOSMemory()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return state{}, err
	}
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return state{}, err
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return state{}, fmt.Errorf("statm is %q", text)
	}
	pages, err := strconv.Atoi(fields[1])
	return state{
		Goroutines: runtime.NumGoroutine(), Files: len(files), Heap: int(mem.HeapAlloc), Resident: pages * os.Getpagesize(),
	}, err
}
