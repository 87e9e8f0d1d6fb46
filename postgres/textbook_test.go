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
	"github.com/pacht-queue/pacht/internal/pgtest"
	"github.com/pacht-queue/pacht/postgres"
)

// The statements of the pattern, as people write them. $1 is the job, $2 the owner.
const (
	handClaim = `UPDATE payment_jobs SET status = 'Processing', lease_owner = $2, lease_until = now() + interval '60 seconds'
		WHERE id = $1 AND (status = 'Pending' OR (status = 'Processing' AND lease_until < now())) RETURNING id`
	handHeartbeat = `UPDATE payment_jobs SET lease_until = now() + interval '60 seconds'
		WHERE id = $1 AND lease_owner = $2 AND status = 'Processing'`
	handHeartbeatInTime = handHeartbeat + ` AND lease_until > now()`
	handSearch          = `SELECT id FROM payment_jobs WHERE status = 'Processing' AND lease_until < now() ORDER BY id`
	handReset           = `UPDATE payment_jobs SET status = 'Pending', lease_owner = NULL, lease_until = NULL
		WHERE id = $1 AND status = 'Processing' AND lease_until < now()`
	handResetShort = `UPDATE payment_jobs SET status = 'Pending' WHERE id = $1 AND status = 'Processing' AND lease_until < now()`
	handRelease    = `UPDATE payment_jobs SET status = 'Pending', lease_owner = NULL, lease_until = NULL WHERE id = $1 AND status = 'Processing'`
)

// hand is a database with the textbook view, and a person's session on it.
type hand struct {
	*testing.T
	url   string
	store *postgres.Store
	conn  *pgx.Conn
	// tampered says that the test broke rules behind the triggers' back, so that Check is
	// no judge of it.
	tampered bool
}

func byHand(t *testing.T) *hand {
	t.Helper()
	t.Parallel()
	h := &hand{T: t, url: pgtest.Database(t)}
	h.store = openStore(t, h.url, "pacht")
	h.must(h.store.InstallTextbook(t.Context()))
	h.conn = h.session()
	t.Cleanup(func() {
		if t.Failed() || h.tampered {
			return
		}
		found, err := h.store.Check(context.Background())
		if err != nil || len(found) > 0 {
			t.Errorf("check: %+v, %v", found, err)
		}
	})
	return h
}

func openStore(t *testing.T, url, schema string) *postgres.Store {
	t.Helper()
	store, err := postgres.Open(t.Context(), url, postgres.Config{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	if _, err := store.MigrateUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	return store
}

// session is one more connection, as psql would make it.
func (h *hand) session() *pgx.Conn {
	h.Helper()
	conn, err := pgx.Connect(h.Context(), h.url)
	h.must(err)
	h.Cleanup(func() { _ = conn.Close(context.Background()) })
	_, err = conn.Exec(h.Context(), `SET search_path = pacht, public`)
	h.must(err)
	return conn
}

func (h *hand) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

func (h *hand) same(what string, got, want any) {
	h.Helper()
	if got != want {
		h.Errorf("%s:\n got  %v\n want %v", what, got, want)
	}
}

// sql runs a statement and answers how many rows it changed.
func (h *hand) sql(sql string, args ...any) int64 {
	h.Helper()
	tag, err := h.conn.Exec(h.Context(), sql, args...)
	h.must(err)
	return tag.RowsAffected()
}

// refused asserts that a statement is an error which says these things, and changes nothing.
func (h *hand) refused(id pacht.ID, sql string, says ...string) {
	h.Helper()
	before := h.row(id)
	_, err := h.conn.Exec(h.Context(), sql, id)
	if err == nil {
		h.Errorf("%s: was accepted", sql)
		return
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			h.Errorf("%s: the error does not say %q: %v", sql, s, err)
		}
	}
	h.same("the row after "+sql, h.row(id), before)
}

// row is the whole lease row as text; "" if there is none.
func (h *hand) row(id pacht.ID) string {
	h.Helper()
	var row string
	err := h.conn.QueryRow(h.Context(), `SELECT l::text FROM pacht.leases AS l WHERE job_id = $1`, id).Scan(&row)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		h.Fatal(err)
	}
	return row
}

func (h *hand) enqueue(opts ...pacht.Option) pacht.ID {
	h.Helper()
	answer, err := pacht.NewClient(h.store).Enqueue(h.Context(), charge{}, opts...)
	h.must(err)
	return answer.ID
}

type charge struct{}

func (charge) Kind() string { return "charge" }

// claimed enqueues a job and takes it by hand.
func (h *hand) claimed(owner string, opts ...pacht.Option) pacht.ID {
	h.Helper()
	id := h.enqueue(opts...)
	h.same("rows of a claim", h.sql(handClaim, id, owner), int64(1))
	return id
}

func (h *hand) job(id pacht.ID) pacht.JobInfo {
	h.Helper()
	j, err := h.store.Job(h.Context(), id)
	h.must(err)
	return j
}

// state is what a person sees of a job: "Processing a, attempt 1, token 1, crashes 0".
func (h *hand) state(id pacht.ID) string {
	h.Helper()
	j := h.job(id)
	return fmt.Sprintf("%s %s, attempt %d, token %d, crashes %d", j.Status, j.LeaseOwner, j.Attempt, j.Token, j.Crashes)
}

// ledger is a job's closed leases: "1 Expired Processing by a".
func (h *hand) ledger(id pacht.ID) string {
	h.Helper()
	list, err := h.store.Attempts(h.Context(), id)
	h.must(err)
	var parts []string
	for _, a := range list {
		parts = append(parts, fmt.Sprintf("%d %s %s by %s", a.Token, a.Outcome, a.NextStatus, a.Owner))
	}
	return strings.Join(parts, ", ")
}

// age lets time pass in the database.
func (h *hand) age(d time.Duration) {
	h.Helper()
	h.must(h.store.Age(h.Context(), d))
}

func TestTextbookClaimTakesADueJobOnce(t *testing.T) { // R1, R2, R5
	h := byHand(t)
	id := h.enqueue(pacht.TTL(5 * time.Second))
	var got pacht.ID
	h.must(h.conn.QueryRow(t.Context(), handClaim, id, "a").Scan(&got))
	h.same("RETURNING id", got, id)
	h.same("job", h.state(id), "Processing a, attempt 1, token 1, crashes 0")
	j := h.job(id)
	now, err := h.store.Now(t.Context())
	h.must(err)
	if d := now.Sub(j.ClaimedAt); d < 0 || d > 10*time.Second {
		t.Errorf("claimed_at %s, now %s", j.ClaimedAt, now)
	}
	if d := j.LeaseUntil.Sub(j.ClaimedAt); d < 50*time.Second || d > time.Minute {
		t.Errorf("lease_until is %s after claimed_at, the person wrote 60s", d)
	}
	h.same("claims while it is held", h.sql(handClaim, id, "b")+h.sql(handClaim, id, "a"), int64(0))
	h.same("rev", h.sql(`SELECT FROM pacht.leases WHERE job_id = $1 AND rev = 0`, id), int64(1))
	h.same("ledger", h.ledger(id), "")
}

func TestTextbookTellsATakeOverFromAHeartbeat(t *testing.T) { // R1, R2, R7, R9
	for name, next := range map[string]string{"another owner": "b", "the same owner string": "a"} {
		t.Run(name, func(t *testing.T) {
			h := byHand(t)
			id := h.claimed("a")
			h.age(30 * time.Second)
			until := h.job(id).LeaseUntil
			h.same("heartbeat", h.sql(handHeartbeat, id, "a"), int64(1))
			h.same("heartbeat in time", h.sql(handHeartbeatInTime, id, "a"), int64(1))
			if grown := h.job(id).LeaseUntil.Sub(until); grown < 20*time.Second {
				t.Errorf("lease_until grew by %s", grown)
			}
			h.same("heartbeat of another", h.sql(handHeartbeat, id, "b"), int64(0))
			h.same("after heartbeats", h.state(id), "Processing a, attempt 1, token 1, crashes 0")

			h.age(2 * time.Minute)
			expired := h.row(id)
			h.same("heartbeats on an expired lease", h.sql(handHeartbeat, id, "a")+h.sql(handHeartbeatInTime, id, "a"), int64(0))
			h.same("row after them", h.row(id), expired)
			h.same("take-over", h.sql(handClaim, id, next), int64(1))
			h.same("after it", h.state(id), "Processing "+next+", attempt 2, token 2, crashes 1")
			h.same("ledger", h.ledger(id), "1 Expired Processing by a")
			h.same("a second take-over", h.sql(handClaim, id, "c"), int64(0))
		})
	}
}

func TestTextbookInAnOldTransactionExpiryIsJudgedByTheClock(t *testing.T) { // R6, R7
	h := byHand(t)
	id := h.enqueue()
	tx, err := h.session().Begin(t.Context()) // its now() stands still from here
	h.must(err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	_, err = tx.Exec(t.Context(), `SELECT 1`)
	h.must(err)
	h.same("claim", h.sql(handClaim, id, "a"), int64(1))
	h.sql(`UPDATE payment_jobs SET lease_until = clock_timestamp() + interval '1 millisecond' WHERE id = $1`, id)
	h.until("the lease is over", `SELECT lease_until < clock_timestamp() FROM pacht.leases WHERE job_id = $1`, id)
	tag, err := tx.Exec(t.Context(), handHeartbeatInTime, id, "a")
	h.must(err)
	h.same("rows of the heartbeat", tag.RowsAffected(), int64(0))
	_, err = tx.Exec(t.Context(), handRelease, id)
	h.must(err)
	h.must(tx.Commit(t.Context()))
	h.same("ledger", h.ledger(id), "1 Expired Pending by a")
}

// until waits for a query to answer true.
func (h *hand) until(what, sql string, args ...any) {
	h.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) {
		var ok bool
		h.must(h.conn.QueryRow(h.Context(), sql, args...).Scan(&ok))
		if ok {
			return
		}
	}
	h.Fatalf("not within 20s: %s", what)
}

func TestTextbookClaimTakesNothingThatR1Forbids(t *testing.T) { // R1, R9, R10
	h := byHand(t)
	act := pacht.Act{By: "op", Reason: "test"}
	cases := map[string]func() pacht.ID{
		"for later": func() pacht.ID { return h.enqueue(pacht.RunIn(time.Hour)) },
		"parked": func() pacht.ID {
			id := h.claimed("a")
			h.must(h.settle(id, pacht.OutcomeUnknown))
			return id
		},
		"held":                  func() pacht.ID { return h.claimed("a") },
		"expired under hold":    func() pacht.ID { return h.expired(pacht.OnCrash(pacht.CrashHold)) },
		"expired, last attempt": func() pacht.ID { return h.expired(pacht.MaxAttempts(1)) },
		"expired, last crash":   func() pacht.ID { return h.expired(pacht.MaxCrashes(1)) },
		"waiting after a crash": func() pacht.ID { id := h.expired(); h.sql(handReset, id); return id },
		"expired, to be stopped": func() pacht.ID {
			id := h.claimed("a")
			_, err := h.store.Cancel(t.Context(), id, act)
			h.must(err)
			h.age(2 * time.Minute)
			return id
		},
	}
	for name, prepare := range cases {
		id := prepare()
		before := h.row(id)
		for _, sql := range []string{
			handClaim,
			`UPDATE payment_jobs SET status = 'Processing', lease_owner = $2, lease_until = now() + interval '1 minute' WHERE id = $1`,
			`UPDATE payment_jobs SET status = 'Processing', lease_owner = $2, lease_until = clock_timestamp() + interval '1 minute' WHERE id = $1 AND lease_owner IS DISTINCT FROM $2`,
		} {
			h.same(name+": rows", h.sql(sql, id, "thief"), int64(0))
			h.same(name+": row", h.row(id), before)
		}
	}
}

// expired enqueues a job, takes it by hand and lets its lease run out.
func (h *hand) expired(opts ...pacht.Option) pacht.ID {
	h.Helper()
	id := h.claimed("a", opts...)
	h.age(2 * time.Minute)
	return id
}

// settle closes the lease that stands in the row, as its holder.
func (h *hand) settle(id pacht.ID, outcome pacht.Outcome) error {
	h.Helper()
	answers, err := h.store.Settle(h.Context(), []pacht.Settlement{{Ref: h.job(id).Ref(), Outcome: outcome}})
	h.must(err)
	return answers[0].Err
}

func TestTextbookRefusesWhatIsNotSetByHand(t *testing.T) {
	h := byHand(t)
	held, vacant, parked := h.claimed("a"), h.enqueue(), h.claimed("a")
	h.must(h.settle(parked, pacht.OutcomeUnknown))
	for _, id := range []pacht.ID{held, vacant, parked} {
		resolve := fmt.Sprintf("pacht jobs resolve %d --as ", id)
		h.refused(id, `UPDATE payment_jobs SET status = 'Completed' WHERE id = $1`, resolve+"completed", "pacht.textbook_complete", "Settle")
		h.refused(id, `UPDATE payment_jobs SET status = 'Dead', lease_owner = NULL WHERE id = $1`, resolve+"dead")
		h.refused(id, `UPDATE payment_jobs SET status = 'Cancelled' WHERE id = $1`, fmt.Sprintf("pacht jobs cancel %d", id))
		h.refused(id, `UPDATE payment_jobs SET status = 'done' WHERE id = $1`, "'done'", "'Processing' or 'Pending'")
		h.refused(id, `UPDATE payment_jobs SET status = NULL WHERE id = $1`, "NULL", "'Processing' or 'Pending'")
		h.refused(id, `UPDATE payment_jobs SET id = id + 1000000 WHERE id = $1`, "never changes")
		h.refused(id, `DELETE FROM payment_jobs WHERE id = $1`, fmt.Sprintf("pacht jobs cancel %d", id))
		h.refused(id, `INSERT INTO payment_jobs (id, status) VALUES ($1 + 1000, 'Pending')`, "pacht enqueue")
	}
	for _, id := range []pacht.ID{held, vacant} {
		h.refused(id, `UPDATE payment_jobs SET status = 'Stuck' WHERE id = $1`, "Unknown")
		for until, says := range map[string]string{
			"NULL": "NULL", "'infinity'": "24 hours", "'-infinity'": "24 hours", "now() + interval '25 hours'": "24 hours",
		} {
			h.refused(id, `UPDATE payment_jobs SET status = 'Processing', lease_owner = 'a', lease_until = `+until+` WHERE id = $1`, "lease_until", says)
		}
	}
	for _, owner := range []string{"NULL", "''", "repeat('x', 257)"} {
		h.refused(vacant, `UPDATE payment_jobs SET status = 'Processing', lease_until = now() + interval '1 minute', lease_owner = `+owner+` WHERE id = $1`,
			"lease_owner", "1 to 256 bytes")
	}
	h.refused(held, `UPDATE payment_jobs SET lease_owner = NULL WHERE id = $1`, "lease_owner", "NULL", "status = 'Pending'")
	h.refused(held, `UPDATE payment_jobs SET lease_until = NULL WHERE id = $1`, "lease_until", "NULL")
	h.refused(held, `UPDATE payment_jobs SET lease_until = now() + interval '25 hours' WHERE id = $1`, "lease_until", "24 hours")
	h.refused(parked, `UPDATE payment_jobs SET status = 'Pending' WHERE id = $1`, fmt.Sprintf("pacht jobs retry %d", parked))
	for _, id := range []pacht.ID{vacant, parked} {
		h.refused(id, `UPDATE payment_jobs SET lease_owner = 'x' WHERE id = $1`, "together with status")
		h.refused(id, `UPDATE payment_jobs SET lease_until = now() WHERE id = $1`, "together with status")
	}
	h.same("an absent job", h.sql(handClaim, 1<<40, "a"), int64(0))
}
