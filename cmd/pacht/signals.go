package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
)

// echo is how long after the first signal another is taken for the same: timeout(1) signals
// its child and then the group with the child in it, and some supervisors do likewise.
const echo = 250 * time.Millisecond

// untilSignal makes a context that ends at the first SIGINT or SIGTERM: the ordered stop. At
// the second it calls abandon and ends the process at once. The returned function gives the
// signals back and waits for its goroutine.
func untilSignal(parent context.Context, log *slog.Logger, abandon func()) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		var first *clock.Instant
		for {
			select {
			case <-quit:
				return
			case s := <-signals:
				if first != nil {
					if first.Elapsed() < echo {
						continue
					}
					abandon()
					os.Exit(128 + number(s))
				}
				now := clock.Now()
				first = &now
				log.Info("stopping in order; a second signal stops at once", "signal", s.String())
				cancel(fmt.Errorf("%w: %s", pacht.ErrStopping, s))
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(quit)
		<-done
		cancel(nil)
	}
}

func number(s os.Signal) int {
	if n, ok := s.(syscall.Signal); ok {
		return int(n)
	}
	return 0
}
