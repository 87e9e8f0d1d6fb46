package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/internal/database"
)

// unopened stands for the store while only a configuration is checked, which asks nothing of it.
type unopened struct{ pacht.Store }

// await opens the database for a process that shall run for long. One that cannot be reached
// is waited for, with growing pauses and a line of log for each doubling; one without the
// right tables, or whose answer will not change, is refused at once.
func (g *globals) await(ctx context.Context, log *slog.Logger) (database.Database, error) {
	const longest = 30 * time.Second
	for wait, quiet := time.Second/4, time.Duration(0); ; {
		db, err := g.open(ctx)
		var invalid *pacht.InvalidError
		switch {
		case err == nil:
			return db, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.As(err, &invalid), errors.Is(err, pacht.ErrSchema), database.Hopeless(err), database.IsSQLite(g.url()):
			return nil, err
		}
		if quiet == 0 || quiet >= longest {
			log.Warn("the database cannot be reached; waiting for it", "database", database.Describe(g.url()), "error", err)
			quiet = 0
		}
		pause := clock.Jitter(wait)
		if err := clock.Sleep(ctx, pause); err != nil {
			return nil, err
		}
		quiet += pause
		wait = min(2*wait, longest/3)
	}
}
