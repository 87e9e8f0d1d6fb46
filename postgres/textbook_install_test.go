package postgres_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/pgtest"
	"github.com/pacht-queue/pacht/postgres"
)

func TestTextbookInstallsInAnySchemaAndGoesAwayWhole(t *testing.T) {
	t.Parallel()
	const schema = `Pay-B "x" 'y'`
	h := &hand{T: t, url: pgtest.Database(t)}
	h.store = openStore(t, h.url, schema)
	h.conn = h.session()
	h.sql(`SET search_path = poison`)
	name := func(object string) string { return pgx.Identifier{schema, object}.Sanitize() }
	left := func() (n int64) {
		h.must(h.conn.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM pg_proc WHERE proname LIKE 'textbook%')
			+ (SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'textbook%')
			+ (SELECT count(*) FROM pg_class WHERE relname = 'payment_jobs' AND relkind = 'v')`).Scan(&n))
		return n
	}
	h.must(h.store.RemoveTextbook(t.Context()))
	h.must(h.store.InstallTextbook(t.Context()))
	h.must(h.store.InstallTextbook(t.Context()))
	// Nothing in the way may be picked up instead of the built-in functions.
	h.sql(`CREATE SCHEMA poison`)
	h.sql(`CREATE FUNCTION poison.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT timestamptz '1999-01-01' $$`)
	h.sql(`SET search_path = poison, pg_catalog`)
	view := name("payment_jobs")
	id := h.enqueue()
	claim := strings.ReplaceAll(handClaim, "payment_jobs", view)
	h.same("claim", h.sql(claim, id, "a"), int64(1))
	h.age(2 * time.Minute)
	h.same("take-over", h.sql(claim, id, "a"), int64(1))
	h.same("release", h.sql(strings.ReplaceAll(handRelease, "payment_jobs", view), id), int64(1))
	h.same("claim", h.sql(claim, id, "a"), int64(1))
	h.sql(`SELECT ` + name("textbook_complete") + `(` + id.String() + `, 3)`)
	h.same("ledger", h.ledger(id), "1 Expired Processing by a, 2 Released Pending by a, 3 Completed Completed by a")
	found, err := h.store.Check(t.Context())
	if err != nil || len(found) > 0 {
		t.Errorf("check: %+v, %v", found, err)
	}

	public, err := h.store.InstallTextbookIn(t.Context(), "public")
	h.must(err)
	h.same("view", public, `"public"."payment_jobs"`)
	h.sql(`SET search_path = public`)
	h.same("claim through the view in public", h.sql(handClaim, h.enqueue(), "a"), int64(1))
	h.must(h.store.RemoveTextbook(t.Context()))
	h.same("objects left", left(), int64(0))
	h.must(h.store.RemoveTextbook(t.Context()))
	if _, ok, err := h.store.ClaimID(t.Context(), "w", h.enqueue()); err != nil || !ok {
		t.Errorf("claim after the removal: %v, %v", ok, err)
	}
}

func TestTextbookLeavesAPaymentJobsOfSomebodyElseAlone(t *testing.T) {
	t.Parallel()
	h := &hand{T: t, url: pgtest.Database(t)}
	h.store = openStore(t, h.url, "pacht")
	h.conn = h.session()
	for _, theirs := range []string{
		`CREATE VIEW public.payment_jobs AS SELECT 1::bigint AS id, 'x'::text AS status, 'y'::text AS lease_owner, now() AS lease_until`,
		`CREATE TABLE public.payment_jobs (id bigint)`,
	} {
		h.sql(`DROP VIEW IF EXISTS public.payment_jobs`)
		h.sql(theirs)
		var invalid *pacht.InvalidError
		if _, err := h.store.InstallTextbookIn(t.Context(), "public"); !errors.As(err, &invalid) {
			t.Errorf("beside %s: %v", theirs, err)
		}
		h.must(h.store.InstallTextbook(t.Context()))
		h.must(h.store.RemoveTextbook(t.Context()))
		h.same("theirs is there", h.sql(`SELECT FROM public.payment_jobs LIMIT 0`), int64(0))
	}
	for _, bad := range []string{"a$textbook$b", "a\x00b", strings.Repeat("x", 64)} {
		if _, err := h.store.InstallTextbookIn(t.Context(), bad); err == nil {
			t.Errorf("view schema %q was accepted", bad)
		}
	}
}

func TestTextbookNeedsTheTables(t *testing.T) {
	store, err := postgres.Open(t.Context(), pgtest.Database(t), postgres.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.InstallTextbook(t.Context()); !errors.Is(err, pacht.ErrSchema) {
		t.Errorf("install without tables: %v", err)
	}
}

func TestTextbookMayBeInstalledFromSeveralProcessesAtOnce(t *testing.T) {
	h := byHand(t)
	var wg sync.WaitGroup
	for range 4 {
		store := openStore(t, h.url, "pacht")
		wg.Go(func() {
			for range 3 {
				if err := store.InstallTextbook(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestTextbookInstallWaitsForAnOpenTransactionWithoutStallingOthers(t *testing.T) {
	h := byHand(t)
	h.must(h.store.RemoveTextbook(t.Context()))
	held := h.enqueue()
	tx, err := h.conn.Begin(t.Context())
	h.must(err)
	_, err = tx.Exec(t.Context(), `UPDATE pacht.leases SET rev = rev + 1 WHERE job_id = $1`, held)
	h.must(err)
	installed := make(chan error, 1)
	go func() { installed <- h.store.InstallTextbook(t.Context()) }()
	watcher := h.session()
	waiting := func() (n int) {
		h.must(watcher.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'pacht.leases'::regclass
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`).Scan(&n))
		return n
	}
	for deadline := time.Now().Add(20 * time.Second); waiting() == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the installation does not wait")
		}
	}
	// Whoever comes behind it is let through once it gives up its place.
	other := h.enqueue()
	_, err = watcher.Exec(t.Context(), `UPDATE pacht.leases SET rev = rev + 1 WHERE job_id = $1`, other)
	h.must(err)
	select {
	case err := <-installed:
		t.Fatalf("installed beside an open transaction: %v", err)
	default:
	}
	h.must(tx.Commit(t.Context()))
	h.must(<-installed)
}

// The triggers look at rev. With track_functions the server counts each call of a function:
// while every verb of the product runs, theirs must stay at zero.
func TestTextbookTriggersAreNotFiredByTheProduct(t *testing.T) {
	h := byHand(t)
	h.sql(`ALTER DATABASE ` + pgx.Identifier{h.conn.Config().Database}.Sanitize() + ` SET track_functions = 'all'`)
	ctx := t.Context()
	act := pacht.Act{By: "op", Reason: "test"}
	store, err := postgres.Open(ctx, h.url, postgres.Config{Schema: "pacht"})
	h.must(err)
	outcomes := []pacht.Outcome{pacht.OutcomeCompleted, pacht.OutcomeFailed, pacht.OutcomeReleased, pacht.OutcomeSnoozed, pacht.OutcomeCancelled, pacht.OutcomeUnknown}
	take := func() pacht.JobInfo {
		j, ok, err := store.ClaimID(ctx, "w", h.enqueue())
		if err != nil || !ok {
			t.Fatalf("claim: %v, %v", ok, err)
		}
		return j
	}
	for _, outcome := range outcomes {
		j := take()
		_, err := store.Renew(ctx, []pacht.Ref{j.Ref()})
		h.must(err)
		_, err = store.Settle(ctx, []pacht.Settlement{{Ref: j.Ref(), Outcome: outcome}})
		h.must(err)
		h.must(h.settleTx(store, take().Ref(), outcome))
	}
	for range 10 {
		h.enqueue()
	}
	claimed, err := store.Claim(ctx, pacht.ClaimRequest{Owner: "w", Queue: pacht.DefaultQueue, Kinds: []string{"charge"}, Limit: 10})
	h.must(err)
	h.same("claimed", len(claimed.Jobs), 10)
	h.must(store.SetStep(ctx, claimed.Jobs[0].Ref(), "reached", nil))
	_, err = store.Cancel(ctx, claimed.Jobs[0].ID, act)
	h.must(err)
	_, err = store.Release(ctx, claimed.Jobs[1].Ref(), act)
	h.must(err)
	h.must(store.Age(ctx, 2*time.Minute))
	_, ok, err := store.ClaimID(ctx, "w2", claimed.Jobs[2].ID)
	h.must(err)
	h.same("take-over", ok, true)
	pass, err := store.Expire(ctx, pacht.ExpireRequest{By: "watcher", Limit: 100, Period: time.Minute, Force: true})
	h.must(err)
	if len(pass.Expired) < 8 {
		t.Errorf("expired: %+v", pass)
	}
	parked := take()
	_, err = store.Settle(ctx, []pacht.Settlement{{Ref: parked.Ref(), Outcome: pacht.OutcomeUnknown}})
	h.must(err)
	h.must(store.Retry(ctx, parked.ID, act))
	h.must(store.Resolve(ctx, parked.Ref(), pacht.Resolution{Status: pacht.Completed}, act))
	_, err = store.Cancel(ctx, h.enqueue(), act)
	h.must(err)
	h.must(store.Close()) // its sessions report what they counted
	calls := func() (n int64) {
		h.must(h.conn.QueryRow(ctx, `SELECT coalesce(sum(calls), 0) FROM pg_stat_user_functions WHERE funcname LIKE 'textbook%'`).Scan(&n))
		return n
	}
	// One claim by hand shows that the server counts, and that those before have been counted.
	conn := h.session()
	_, err = conn.Exec(ctx, handClaim, h.enqueue(), "hand")
	h.must(err)
	h.must(conn.Close(ctx))
	for deadline := time.Now().Add(20 * time.Second); calls() == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the server does not count calls")
		}
	}
	// textbook_lease and textbook_fits, once each.
	h.same("calls", calls(), int64(2))
}

// settleTx closes a lease in a transaction of the caller's.
func (h *hand) settleTx(store *postgres.Store, ref pacht.Ref, outcome pacht.Outcome) error {
	conn := h.session()
	defer conn.Close(context.Background())
	return pgx.BeginFunc(h.Context(), conn, func(tx pgx.Tx) error {
		return store.Tx(tx).SettleTx(h.Context(), pacht.Settlement{Ref: ref, Outcome: outcome})
	})
}

// What the triggers tell hands from the product by.
func TestEveryStatementThatUpdatesALeaseRaisesRev(t *testing.T) {
	files, err := filepath.Glob("sql/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("no statements: %v", err)
	}
	update := regexp.MustCompile(`(?is)\bUPDATE\s+pacht\.leases\b`)
	raise := regexp.MustCompile(`(?is)\brev\s*=\s*(\w+\.)?rev\s*\+\s*1\b`)
	updates := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n := len(update.FindAll(text, -1))
		updates += n
		if raised := len(raise.FindAll(text, -1)); raised < n {
			t.Errorf("%s updates leases in %d places and raises rev in %d", file, n, raised)
		}
	}
	if updates == 0 {
		t.Error("no statement updates leases: the pattern is wrong")
	}
}
