package lab

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/internal/database"
	"github.com/pacht-queue/pacht/watch"
	"github.com/pacht-queue/pacht/worker"
)

// WorkerTask is what a worker process is told.
type WorkerTask struct {
	Database string        `json:"database"`
	Business string        `json:"business"`
	Recorder string        `json:"recorder,omitempty"` // its address; "" = nobody is told
	Slots    int           `json:"slots"`
	Poll     time.Duration `json:"poll"`
	Watch    time.Duration `json:"watch"` // the watcher's period; 0 = this process has none
	Grace    time.Duration `json:"grace,omitempty"`
	Unwind   time.Duration `json:"unwind,omitempty"`
	Handler  Handler       `json:"handler"`
	Extra    string        `json:"extra,omitempty"` // FleetConfig.Extra
}

// WorkerSaid is what it says when it is ready.
type WorkerSaid struct {
	Owner string `json:"owner"`
}

// openPatiently waits for a server that is down, as a service does that is started beside it.
func openPatiently(ctx context.Context, url string) (database.Database, error) {
	for start := clock.Now(); ; {
		db, err := database.Open(ctx, url)
		if err == nil || database.Hopeless(err) || start.Elapsed() > 25*time.Second {
			return db, err
		}
		if err := clock.Sleep(ctx, 100*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// exitUnfinished is the exit code of a worker that was stopped and left jobs to expire.
const exitUnfinished = 3

// runWorker is the role "worker": a service that runs jobs, and nothing of a test in it.
func runWorker(ctx context.Context, task []byte, ready func(any) error) (err error) {
	var order WorkerTask
	if err := json.Unmarshal(task, &order); err != nil {
		return err
	}
	db, err := openPatiently(ctx, order.Database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	c := &hands{Handler: order.Handler}
	if c.business, err = openBusiness(ctx, db, order.Business); err != nil {
		return err
	}
	defer c.business.close()
	if order.Recorder != "" {
		c.pen = NewPen(order.Recorder)
		defer c.pen.Close()
	}
	w, err := worker.New(db, worker.Config{
		Queues:   map[string]int{pacht.DefaultQueue: order.Slots},
		Handlers: []worker.Handler{worker.HandleWith(worker.HandlerOptions{Retry: pacht.Fixed(20 * time.Millisecond)}, c.handle)},
		Poll:     order.Poll,
		Grace:    order.Grace,
		Unwind:   order.Unwind,
		NoWatch:  order.Watch == 0,
		Watch:    watch.Config{Period: max(order.Watch, 10*time.Millisecond), Poll: max(order.Watch/4, 10*time.Millisecond)},
		NoSweep:  true,
		OnEvent:  c.heard,
		Logger:   slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		return err
	}
	c.owner = w.Owner()
	if err := ready(WorkerSaid{Owner: c.owner}); err != nil {
		return err
	}
	err = w.Run(ctx)
	ExitUnfinished(err)
	return err
}

// ExitUnfinished ends the process if that is the error of a worker some of whose handlers have not
// returned: they use the store, which is not closed under them.
func ExitUnfinished(err error) {
	var left *worker.UnfinishedError
	if errors.As(err, &left) {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(exitUnfinished)
	}
}
