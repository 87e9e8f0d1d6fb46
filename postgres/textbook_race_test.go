package postgres_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pacht-queue/pacht"
)

// R1: the second session waits at the row's lock, and looks again when it gets it.
func TestTextbookOfTwoSessionsExactlyOneWins(t *testing.T) {
	h := byHand(t)
	second := h.session()
	cases := map[string]struct {
		prepare       func() pacht.ID
		first, second string
		ledger        string
	}{
		"claim against claim of a vacant job":   {func() pacht.ID { return h.enqueue() }, handClaim, handClaim, ""},
		"claim against claim of an expired one": {func() pacht.ID { return h.expired() }, handClaim, handClaim, "1 Expired Processing by a"},
		"claim against reset":                   {func() pacht.ID { return h.expired() }, handClaim, withOwner(handReset), "1 Expired Processing by a"},
		"reset against claim":                   {func() pacht.ID { return h.expired() }, withOwner(handReset), handClaim, "1 Expired Pending by a"},
		"reset against reset":                   {func() pacht.ID { return h.expired() }, withOwner(handReset), withOwner(handResetShort), "1 Expired Pending by a"},
		"claim against a late heartbeat":        {func() pacht.ID { return h.expired() }, handClaim, handHeartbeat, "1 Expired Processing by a"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			id := c.prepare()
			tx, err := h.conn.Begin(t.Context())
			h.must(err)
			tag, err := tx.Exec(t.Context(), c.first, id, "first")
			h.must(err)
			h.same("rows of the first", tag.RowsAffected(), int64(1))
			rows := make(chan int64, 1)
			go func() {
				tag, err := second.Exec(t.Context(), c.second, id, "a")
				if err != nil {
					t.Error(err)
				}
				rows <- tag.RowsAffected()
			}()
			h.until("the second waits", `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = 'Lock')`, second.PgConn().PID())
			h.must(tx.Commit(t.Context()))
			h.same("rows of the second", <-rows, int64(0))
			h.same("ledger", h.ledger(id), c.ledger)
		})
	}
}

// withOwner gives a statement the same parameters as the claim.
func withOwner(sql string) string { return sql + ` AND $2::text IS NOT NULL` }

// R1, R4: at the moment of expiry hands, a worker and the watcher want the same lease.
func TestTextbookAtTheMomentOfExpiryExactlyOneWins(t *testing.T) {
	const rounds = 60
	h := byHand(t)
	sessions := []*pgx.Conn{h.session(), h.session(), h.session()}
	for round := range rounds {
		id := h.claimed("dead", pacht.MaxAttempts(10))
		h.sql(`UPDATE payment_jobs SET lease_until = clock_timestamp() + interval '5 milliseconds' WHERE id = $1`, id)
		var taken, reset atomic.Int64
		var wg sync.WaitGroup
		// Each tries until the lease is no longer the dead one's.
		contend := func(try func() (int64, error), won *atomic.Int64) {
			wg.Go(func() {
				for t.Context().Err() == nil {
					n, err := try()
					if err != nil {
						t.Error(err)
						return
					}
					won.Add(n)
					j, err := h.store.Job(t.Context(), id)
					if err != nil || j.LeaseOwner != "dead" {
						return
					}
				}
			})
		}
		byConn := func(conn *pgx.Conn, sql string, args ...any) func() (int64, error) {
			return func() (int64, error) {
				tag, err := conn.Exec(t.Context(), sql, args...)
				return tag.RowsAffected(), err
			}
		}
		contend(byConn(sessions[0], handClaim, id, "hand 1"), &taken)
		contend(byConn(sessions[1], handClaim, id, "hand 2"), &taken)
		contend(byConn(sessions[2], handReset, id), &reset)
		contend(func() (int64, error) {
			_, ok, err := h.store.ClaimID(t.Context(), "worker", id)
			if ok {
				return 1, err
			}
			return 0, err
		}, &taken)
		contend(func() (int64, error) {
			pass, err := h.store.Expire(t.Context(), pacht.ExpireRequest{By: "watcher", Limit: pacht.MaxBatch, Period: time.Minute, Force: true})
			n := int64(0)
			for _, e := range pass.Expired {
				if e.Ref.Job == id {
					n++
				}
			}
			return n, err
		}, &reset)
		wg.Wait()
		if t.Failed() {
			return
		}
		list, err := h.store.Attempts(t.Context(), id)
		h.must(err)
		if taken.Load()+reset.Load() != 1 || len(list) != 1 || list[0].Outcome != pacht.OutcomeExpired {
			t.Fatalf("round %d: %d took it, %d reset it, ledger %+v; want one of them, one row", round, taken.Load(), reset.Load(), list)
		}
	}
}

// R1 to R10: whatever hands and workers do, in whatever order, the stored data keep the rules.
func TestTextbookRandomHandsAndWorkersLeaveTheLedgerWhole(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	h := byHand(t)
	ctx := t.Context()
	act := pacht.Act{By: "op", Reason: "random"}
	policy := func() pacht.CrashPolicy { return []pacht.CrashPolicy{pacht.CrashRetry, pacht.CrashHold}[rnd.IntN(2)] }
	var ids []pacht.ID
	for range 5 {
		ids = append(ids, h.enqueue(pacht.MaxAttempts(4), pacht.OnCrash(policy())))
	}
	owner := func() string { return fmt.Sprintf("o%d", rnd.IntN(2)) }
	outcomes := []pacht.Outcome{pacht.OutcomeCompleted, pacht.OutcomeFailed, pacht.OutcomeReleased, pacht.OutcomeSnoozed, pacht.OutcomeCancelled, pacht.OutcomeUnknown}
	for step := range 500 {
		i := rnd.IntN(len(ids))
		id := ids[i]
		j := h.job(id)
		stale := pacht.Ref{Job: id, Token: j.Token - pacht.Token(rnd.IntN(2))}
		switch rnd.IntN(16) {
		case 0, 1, 2:
			h.sql(handClaim, id, owner())
		case 3:
			h.sql(handHeartbeat, id, owner())
		case 4:
			h.sql(handReset, id)
		case 5:
			h.sql(handResetShort, id)
		case 6:
			h.sql(handRelease, id)
		case 7:
			h.sql(`UPDATE payment_jobs SET lease_until = now() - interval '1 minute' WHERE id = $1 AND status = 'Processing'`, id)
		case 8:
			_, _ = h.conn.Exec(ctx, `SELECT pacht.textbook_complete($1, $2)`, id, stale.Token) // refused or not, the rules hold
		case 9:
			h.age([]time.Duration{time.Second, 30 * time.Second, 2 * time.Minute}[rnd.IntN(3)])
		case 10:
			_, _, err := h.store.ClaimID(ctx, owner(), id)
			h.must(err)
		case 11:
			_, err := h.store.Claim(ctx, pacht.ClaimRequest{Owner: owner(), Queue: pacht.DefaultQueue, Kinds: []string{"charge"}, Limit: 2})
			h.must(err)
		case 12:
			_, err := h.store.Renew(ctx, []pacht.Ref{stale})
			h.must(err)
		case 13:
			_, err := h.store.Settle(ctx, []pacht.Settlement{{Ref: stale, Outcome: outcomes[rnd.IntN(len(outcomes))]}})
			h.must(err)
		case 14:
			_, err := h.store.Expire(ctx, pacht.ExpireRequest{By: "watcher", Limit: 2, Period: time.Minute, Force: true})
			h.must(err)
		case 15: // refused in some states, which is no matter
			if rnd.IntN(2) == 0 {
				_, _ = h.store.Cancel(ctx, id, act)
			} else {
				_ = h.store.Retry(ctx, id, act)
			}
		}
		now := h.job(id)
		if now.Token < j.Token {
			t.Fatalf("step %d: the token of job %d went from %d to %d", step, id, j.Token, now.Token)
		}
		if now.Status == pacht.Stuck && rnd.IntN(4) == 0 {
			h.must(h.store.Retry(ctx, id, act))
		}
		if now.Status == pacht.Completed || now.Status.Finished() && rnd.IntN(4) == 0 {
			ids[i] = h.enqueue(pacht.MaxAttempts(4), pacht.OnCrash(policy()))
		}
		if step%25 == 0 {
			found, err := h.store.Check(ctx)
			h.must(err)
			if len(found) > 0 {
				t.Fatalf("step %d: check: %+v", step, found)
			}
		}
	}
	var rows int
	h.must(h.conn.QueryRow(context.Background(), `SELECT count(*) FROM pacht.attempts`).Scan(&rows))
	t.Logf("%d closed leases", rows)
	if rows < 30 {
		t.Errorf("only %d closed leases: the steps prove nothing", rows)
	}
}
