package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pacht-queue/pacht"
)

// R9, R12: every combination that decides, closed by hand in one statement over all rows, as
// people write it, and compared with the rule in Go.
func TestTextbookResetClosesAsTheRuleSays(t *testing.T) {
	for name, c := range map[string]struct {
		outcome pacht.Outcome
		left    string // of the lease, when it is reset
		sql     string
	}{
		"an expired lease":             {pacht.OutcomeExpired, "-1 second", `UPDATE payment_jobs SET status = 'Pending', lease_owner = NULL, lease_until = NULL WHERE status = 'Processing' AND lease_until < now()`},
		"an expired lease, short form": {pacht.OutcomeExpired, "-1 second", `UPDATE payment_jobs SET status = 'Pending' WHERE status = 'Processing' AND lease_until < now()`},
		"a live lease":                 {pacht.OutcomeReleased, "1 minute", `UPDATE payment_jobs SET status = 'Pending' WHERE status = 'Processing'`},
	} {
		t.Run(name, func(t *testing.T) {
			h := byHand(t)
			h.tampered = true // rows without the ledger that led to them
			var jobs []pacht.NewJob
			var attempts, crashCounts []int32
			var cancels []bool
			for attempt := range int32(3) {
				for crashes := range int32(8) {
					for _, policy := range []pacht.CrashPolicy{pacht.CrashRetry, pacht.CrashHold} {
						for _, cancel := range []bool{false, true} {
							jobs = append(jobs, pacht.New(charge{}, pacht.MaxAttempts(3), pacht.MaxCrashes(8), pacht.TTL(40*time.Second), pacht.OnCrash(policy)))
							attempts, crashCounts, cancels = append(attempts, attempt+1), append(crashCounts, crashes), append(cancels, cancel)
						}
					}
				}
			}
			answers, err := h.store.Enqueue(t.Context(), jobs)
			h.must(err)
			var ids []int64
			for _, a := range answers {
				h.must(a.Err)
				ids = append(ids, int64(a.ID))
			}
			h.same("claims", h.sql(`UPDATE payment_jobs SET status = 'Processing', lease_owner = 'a', lease_until = now() + interval '1 hour'`), int64(len(ids)))
			h.sql(`UPDATE pacht.leases AS l SET rev = rev + 1, token = 5, attempt = f.attempt, crashes = f.crashes, cancel_requested = f.cancel,
				claimed_at = now() - interval '1 hour', lease_until = now() + $5::interval
				FROM unnest($1::bigint[], $2::integer[], $3::integer[], $4::boolean[]) AS f (job_id, attempt, crashes, cancel)
				WHERE l.job_id = f.job_id`, ids, attempts, crashCounts, cancels, c.left)
			facts := h.jobs()
			h.sql(c.sql)
			after := h.jobs()
			for id, before := range facts {
				next := pacht.Next(before.Facts(), pacht.Settlement{Outcome: c.outcome})
				what := fmt.Sprintf("%+v", before.Facts())
				list, err := h.store.Attempts(t.Context(), id)
				h.must(err)
				if len(list) != 1 {
					t.Fatalf("%s: ledger %+v", what, list)
				}
				a, j := list[0], after[id]
				h.same(what+": ledger", fmt.Sprint(a.Token, a.Attempt, a.Owner, a.Late, a.Outcome, a.NextStatus, a.ClaimedAt.Equal(before.ClaimedAt)),
					fmt.Sprint(pacht.Token(5), before.Attempt, "a", false, c.outcome, next.Status, true))
				h.same(what+": status, token", fmt.Sprint(j.Status, j.Token), fmt.Sprint(next.Status, pacht.Token(5)))
				if next.Status.Finished() {
					continue
				}
				h.same(what+": row", fmt.Sprint(j.Attempt, j.Crashes, j.CancelRequested, j.LeaseOwner, j.LeaseUntil.IsZero(), j.ClaimedAt.IsZero()),
					fmt.Sprint(next.Attempt, next.Crashes, false, "", true, true))
				if next.Status != pacht.Pending {
					continue
				}
				want := before.RunAt
				if c.outcome == pacht.OutcomeExpired {
					want = a.EndedAt.Add(next.Delay)
				}
				if !j.RunAt.Equal(want) || !a.NextRunAt.Equal(want) {
					t.Errorf("%s: run_at %s, in the ledger %s, want %s", what, j.RunAt, a.NextRunAt, want)
				}
			}
		})
	}
}

// jobs is all jobs by their id.
func (h *hand) jobs() map[pacht.ID]pacht.JobInfo {
	h.Helper()
	list, err := h.store.Jobs(h.Context(), pacht.Filter{Limit: 1000})
	h.must(err)
	jobs := map[pacht.ID]pacht.JobInfo{}
	for _, j := range list {
		jobs[j.ID] = j
	}
	return jobs
}

func TestTextbookReleaseBearsTheUsersName(t *testing.T) {
	h := byHand(t)
	released, expired := h.claimed("a"), h.expired()
	h.same("claim again, since it has expired as well", h.sql(handClaim, released, "a"), int64(1))
	h.same("release", h.sql(handRelease, released), int64(1))
	h.same("reset", h.sql(handReset, expired), int64(1))
	audit, err := h.store.Audit(t.Context(), released)
	h.must(err)
	if len(audit) != 1 || audit[0].Act != "release" || audit[0].By != h.conn.Config().User || audit[0].Reason == "" {
		t.Errorf("audit of a release by hand: %+v", audit)
	}
	audit, err = h.store.Audit(t.Context(), expired)
	h.must(err)
	h.same("audit rows of what the watcher would do too", len(audit), 0)
}

func TestTextbookResetOfACancelledJobSaysSo(t *testing.T) { // R9
	h := byHand(t)
	id := h.claimed("a")
	_, err := h.store.Cancel(t.Context(), id, pacht.Act{By: "op", Reason: "not needed"})
	h.must(err)
	h.age(2 * time.Minute)
	h.same("rows", h.sql(handReset, id), int64(0))
	h.same("ledger", h.ledger(id), "1 Expired Cancelled by a")
	h.same("status", h.job(id).Status, pacht.Cancelled)
}

func TestTextbookHandsAndWorkersFenceEachOther(t *testing.T) { // R3, R4, R7
	h := byHand(t)
	id := h.enqueue()
	first, ok, err := h.store.ClaimID(t.Context(), "worker", id)
	h.must(err)
	h.same("the worker's claim", ok, true)
	h.age(2 * time.Minute)
	h.same("take-over by hand", h.sql(handClaim, id, "hand"), int64(1))
	answers, err := h.store.Settle(t.Context(), []pacht.Settlement{{Ref: first.Ref(), Outcome: pacht.OutcomeCompleted}})
	h.must(err)
	if !errors.Is(answers[0].Err, pacht.ErrLeaseLost) {
		t.Errorf("settle of a lease taken by hand: %+v", answers[0])
	}
	renewed, err := h.store.Renew(t.Context(), []pacht.Ref{first.Ref()})
	h.must(err)
	h.same("renewal", renewed.Rows[0].State, pacht.RenewLost)

	h.must(h.settle(id, pacht.OutcomeFailed)) // with the token, the product settles a lease taken by hand
	h.same("ledger", h.ledger(id), "1 Expired Processing by worker, 2 Failed Pending by hand")

	second, ok, err := h.store.ClaimID(t.Context(), "worker", id)
	h.must(err)
	h.same("the worker's second claim", ok, true)
	h.same("release by hand", h.sql(handRelease, id), int64(1))
	renewed, err = h.store.Renew(t.Context(), []pacht.Ref{second.Ref()})
	h.must(err)
	h.same("renewal after it", renewed.Rows[0].State, pacht.RenewLost)
	h.same("watcher's view", h.sql(handSearch), int64(0))
}

func TestTextbookCompleteIsFencedAndBreaksTheTransaction(t *testing.T) { // R3, R4, R7
	h := byHand(t)
	h.sql(`CREATE TABLE public.business (note text)`)
	complete := func(id pacht.ID, token int) error {
		return pgx.BeginFunc(t.Context(), h.conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), `INSERT INTO public.business VALUES ('done')`); err != nil {
				return err
			}
			_, err := tx.Exec(t.Context(), `SELECT pacht.textbook_complete($1, $2)`, id, token)
			if err != nil && !strings.Contains(err.Error(), "lease lost") {
				t.Errorf("not a lost lease: %v", err)
			}
			return nil // a caller who overlooks it
		})
	}
	id := h.expired()
	h.must(complete(id, 1))
	list, err := h.store.Attempts(t.Context(), id)
	h.must(err)
	h.same("late", fmt.Sprintf("%s %v", list[0].Outcome, list[0].Late), "Completed true")
	if complete(id, 1) == nil {
		t.Error("completed twice")
	}
	lost := h.expired()
	h.sql(handClaim, lost, "b")
	if complete(lost, 1) == nil {
		t.Error("completed with a stale token")
	}
	h.must(complete(lost, 2))
	h.same("ledger", h.ledger(lost), "1 Expired Processing by a, 2 Completed Completed by b")
	h.same("business rows", h.sql(`SELECT FROM public.business`), int64(2))
}

func TestTextbookEndInThePastEndsTheLease(t *testing.T) { // R6
	h := byHand(t)
	id := h.claimed("a")
	h.same("rows", h.sql(`UPDATE payment_jobs SET lease_until = now() - interval '1 hour' WHERE id = $1`, id), int64(1))
	var found pacht.ID
	h.must(h.conn.QueryRow(t.Context(), handSearch).Scan(&found))
	h.same("the watcher's search", found, id)
	pass, err := h.store.Expire(context.Background(), pacht.ExpireRequest{By: "watcher", Limit: 10, Period: time.Minute, Force: true})
	h.must(err)
	h.same("closed by the watcher", len(pass.Expired), 1)
}
