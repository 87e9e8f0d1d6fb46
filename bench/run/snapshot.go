package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pacht-queue/pacht/bench/peer"
)

// Rounds of a snapshot run: so many drains in the same database.
const (
	FreeRounds = 3
	HeldRounds = 5
)

// FreeVariant and HeldVariant name the rounds, from 1.
func FreeVariant(round int) string { return fmt.Sprintf("free %d", round) }

// HeldVariant names a round with an open snapshot.
func HeldVariant(round int) string { return fmt.Sprintf("held %d", round) }

var snapshotScenario = scenario{
	name:   "snapshot",
	rounds: func(int) int { return 1 }, // it has rounds of its own
	takes:  func(p peer.About) bool { return !p.SQLite && p.Snapshot },
	measure: func(b *Bench, ctx context.Context, p peer.About, record func(string, int, map[string]float64, error)) {
		n := jobs(p, b.cfg.Jobs)
		if p.Share != 0 {
			n /= 2 // it falls so far that it would take minutes
		}
		for _, s := range []struct {
			held   bool
			rounds int
			name   func(int) string
		}{{false, FreeRounds, FreeVariant}, {true, HeldRounds, HeldVariant}} {
			if ctx.Err() == nil {
				b.repeat(ctx, p, n, s.held, s.rounds, func(round int, values map[string]float64, err error) {
					record(s.name(round), n, values, err)
				})
			}
		}
	},
}

// repeat fills and drains one database again and again, by the same process, perhaps with
// somebody else's REPEATABLE READ transaction open throughout.
func (b *Bench) repeat(ctx context.Context, p peer.About, n int, held bool, rounds int, record func(int, map[string]float64, error)) {
	done := 0
	err := b.fresh(ctx, p, "", func(d *database) (err error) {
		t, err := b.team(ctx, d, n, 1)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, t.end(ctx)) }()
		if held {
			reader, err := openSnapshot(ctx, d)
			if err != nil {
				return err
			}
			defer reader.Close(context.WithoutCancel(ctx))
		}
		for done < rounds {
			if _, err := b.fill(ctx, d, n, smallArgs); err != nil {
				return err
			}
			values, err := t.drain(ctx)
			if err != nil {
				return err
			}
			done++
			record(done, values, nil)
		}
		return nil
	})
	if err != nil {
		record(done+1, nil, err)
	}
}

// openSnapshot leaves a transaction open, as a long report or a forgotten session does. It
// ends with its connection.
func openSnapshot(ctx context.Context, d *database) (*pgx.Conn, error) {
	conn, err := pgx.Connect(ctx, d.at.URL)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT txid_current_snapshot()"); err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	return conn, nil
}
