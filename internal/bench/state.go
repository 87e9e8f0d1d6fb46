package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// State is what stands in the tables before the clock starts. The rows are written by SQL, as
// the product would have left them, in the benchmark's own queue.
type State struct {
	Finished int // completed jobs: history
	Future   int // scheduled for tomorrow, at the best priority
	Foreign  int // due before all others, of a kind that nobody handles
	Parked   int // Stuck
	Held     int // due before all others, held by somebody else for a day
	// StaleStatistics leaves the planner with statistics of the empty table of leases.
	StaleStatistics bool
}

// often is how many rows go into one transaction.
const often = 100_000

// mostState bounds one kind of rows.
const mostState = 1_000_000_000

// Validate refuses what is out of bounds.
func (s State) Validate() error {
	return errors.Join(
		within("finished", s.Finished, 0, mostState),
		within("future", s.Future, 0, mostState),
		within("foreign", s.Foreign, 0, mostState),
		within("parked", s.Parked, 0, mostState),
		within("held", s.Held, 0, mostState),
	)
}

// write puts the rows there.
func (s State) write(ctx context.Context, p *Place) error {
	if s.StaleStatistics {
		if err := p.stale(ctx); err != nil {
			return err
		}
	}
	const day, hour = 24 * 60 * 60, 60 * 60
	for _, rows := range []struct {
		what     string
		n        int
		kind     string
		priority int
		due      int // in seconds
		follow   []string
	}{
		{"finished", s.Finished, kind, 3, -hour, []string{p.sql.StateFinished}},
		{"future", s.Future, kind, 1, day, []string{p.sql.StatePending}},
		{"foreign", s.Foreign, foreign, 3, -hour, []string{p.sql.StatePending}},
		{"parked", s.Parked, kind, 3, -hour, []string{p.sql.StateParked, p.sql.StateParkedAttempts}},
		{"held", s.Held, kind, 3, -hour, []string{p.sql.StateHeld}},
	} {
		for left := rows.n; left > 0; left -= often {
			err := p.tables.write(ctx, func(run func(string, ...any) error, ask func(string, any) error) error {
				var base int64
				if err := ask(p.sql.Newest, &base); err != nil {
					return err
				}
				if err := run(p.sql.StateJobs, min(left, often), rows.kind, rows.priority, rows.due); err != nil {
					return err
				}
				for _, q := range rows.follow {
					if err := run(q, base); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return fmt.Errorf("write %d %s jobs: %w", rows.n, rows.what, err)
			}
		}
	}
	if p.server == nil || s.StaleStatistics || s == (State{}) {
		return nil
	}
	if _, err := p.conn.Exec(ctx, p.serve.Vacuum); err != nil {
		return fmt.Errorf("vacuum the tables: %w", err)
	}
	if _, err := p.conn.Exec(ctx, p.serve.Checkpoint); err != nil {
		return fmt.Errorf("write out what was filled in: %w", err)
	}
	return nil
}

// stale makes statistics of the empty table, and keeps everybody from making others. It changes
// a setting of the table, so it is for databases of our own.
func (p *Place) stale(ctx context.Context) error {
	if err := p.needsOwnServer("stale-statistics"); err != nil {
		return err
	}
	return p.tables.write(ctx, func(run func(string, ...any) error, _ func(string, any) error) error {
		if err := run(p.serve.Analyze); err != nil {
			return err
		}
		return run(p.serve.Stale)
	})
}

// snapshot opens a REPEATABLE READ transaction in a session of its own, which sees the tables
// as they are now and keeps what is deleted from being removed. The caller ends it.
func (p *Place) snapshot(ctx context.Context) (end func() error, err error) {
	if err := p.needsPostgres("snapshot"); err != nil {
		return nil, err
	}
	cfg, err := pgxpool.ParseConfig(p.conn.Config().ConnString())
	if err != nil {
		return nil, fmt.Errorf("read the URL of the database: %w", err)
	}
	conn, err := pgx.ConnectConfig(ctx, cfg.ConnConfig)
	if err != nil {
		return nil, fmt.Errorf("open a snapshot: %w", err)
	}
	closing := func() error { return conn.Close(context.WithoutCancel(ctx)) }
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open a snapshot: %w", err), closing())
	}
	var newest int64 // the snapshot is taken by the first statement
	if err := tx.QueryRow(ctx, p.sql.Newest).Scan(&newest); err != nil {
		return nil, errors.Join(fmt.Errorf("open a snapshot: %w", err), closing())
	}
	return closing, nil
}

// said lists what was set, for the line under a result.
func (s State) said() string {
	var all []string
	for _, rows := range []struct {
		what string
		n    int
	}{{"finished", s.Finished}, {"future", s.Future}, {"foreign", s.Foreign}, {"parked", s.Parked}, {"held", s.Held}} {
		if rows.n > 0 {
			all = append(all, fmt.Sprintf("%d %s", rows.n, rows.what))
		}
	}
	if s.StaleStatistics {
		all = append(all, "stale statistics")
	}
	if len(all) == 0 {
		return "no other rows"
	}
	return strings.Join(all, ", ")
}
