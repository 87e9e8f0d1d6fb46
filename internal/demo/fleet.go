package demo

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/pacht-queue/pacht/examples/payments/psp"
)

// fleet is all processes of a run.
type fleet struct {
	executable string
	folder     string
	task       workerTask
	provider   *child

	mu      sync.Mutex
	workers []*child
	died    chan *child // one that ended and was not asked to
}

func newFleet(executable, folder string) *fleet {
	return &fleet{executable: executable, folder: folder, died: make(chan *child, 1)}
}

func (f *fleet) startProvider(ctx context.Context, cfg psp.Config) (url string, err error) {
	f.provider, err = f.start(ctx, "provider", "psp", cfg)
	if err != nil {
		return "", err
	}
	return f.provider.said.URL, nil
}

func (f *fleet) startWorker(ctx context.Context) (*child, error) {
	f.mu.Lock()
	name := fmt.Sprintf("worker %d", len(f.workers)+1)
	f.mu.Unlock()
	task := f.task
	task.Name = name
	c, err := f.start(ctx, name, "worker", task)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.workers = append(f.workers, c)
	return c, nil
}

func (f *fleet) start(ctx context.Context, name, command string, task any) (*child, error) {
	c, err := startChild(ctx, name, f.executable, []string{"demo", command}, filepath.Join(f.folder, name+".log"), task)
	if err != nil {
		return nil, err
	}
	go func() {
		<-c.exited
		if c.running() {
			select {
			case f.died <- c:
			default: // one is enough to end the run
			}
		}
	}()
	return c, nil
}

// watch returns an error when a process ends that should not have.
func (f *fleet) watch(ctx context.Context) error {
	select {
	case c := <-f.died:
		return fmt.Errorf("%s ended by itself: %w%s", c.name, errors.Join(c.err, errDied), c.lastWords())
	case <-ctx.Done():
		return nil
	}
}

var errDied = errors.New("a process of the demo died that nobody killed")

// running lists the workers that are not ended.
func (f *fleet) running() []*child {
	f.mu.Lock()
	defer f.mu.Unlock()
	var alive []*child
	for _, c := range f.workers {
		if c.running() {
			alive = append(alive, c)
		}
	}
	return alive
}

// stopWorkers ends all workers in order, at the same time.
func (f *fleet) stopWorkers() error {
	var wg sync.WaitGroup
	alive := f.running()
	errs := make([]error, len(alive))
	for i, c := range alive {
		wg.Go(func() { errs[i] = c.stop(10 * time.Second) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// kill ends all that is left, stopped processes too, and waits for it.
func (f *fleet) kill() error {
	var errs []error
	for _, c := range f.running() {
		errs = append(errs, c.kill())
	}
	if f.provider != nil {
		errs = append(errs, f.provider.kill())
	}
	return errors.Join(errs...)
}
