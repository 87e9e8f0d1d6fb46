package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pacht-queue/pacht"
)

// Claims at once would lock for a moment what the others have just taken, and their settles
// would find it busy. Where large ones are made all go one after the other, also the few jobs that a
// worker claims in between for the few slots that are free.
func TestClaimsAtOnceLeaveNothingBusyWhereLargeOnesAreMade(t *testing.T) { // R12
	s, _ := newStore(t)
	const claimers, each = 6, 1000
	enqueue(t, s, claimers*each)
	done := make(chan error, claimers)
	for range claimers {
		go func() {
			done <- func() error {
				other, err := New(s.pool, Config{})
				if err != nil {
					return err
				}
				defer other.Close()
				for n := 0; ; n++ {
					limit := 200
					if n%3 > 0 {
						limit = 11
					}
					got, err := other.Claim(context.Background(), request("owner", limit))
					if err != nil || len(got.Jobs) < limit { // the last ones go without a turn
						return err
					}
					answers, err := other.Settle(context.Background(), settlements(got.Jobs, pacht.OutcomeCompleted))
					if err != nil {
						return err
					}
					for _, a := range answers {
						if a.Err != nil {
							return a.Err
						}
					}
				}
			}()
		}()
	}
	for range claimers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// keepTurn takes the turn of the default queue and has it to the end of the test.
func keepTurn(t *testing.T, s *Store, pool *pgxpool.Pool) {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	if _, err := tx.Exec(t.Context(), s.sql.Gate, s.schema+" default"); err != nil {
		t.Fatal(err)
	}
}

// Whoever has the turn and does not end keeps nobody from claiming, and is waited for once.
func TestClaimsGoOnWithoutTurnsIfOneIsStuck(t *testing.T) {
	s, pool := newStore(t)
	enqueue(t, s, 200)
	keepTurn(t, s, pool)
	from := time.Now()
	first := claim(t, s, 100)
	waited := time.Since(from)
	if len(first) != 100 || waited < gateTimeout {
		t.Errorf("%d jobs after %s: nobody waited for the turn", len(first), waited)
	}
	from = time.Now()
	if second := claim(t, s, 100); len(second) != 100 || time.Since(from) >= gateTimeout {
		t.Errorf("%d jobs after %s: the turn was waited for again", len(second), time.Since(from))
	}
}
