package postgres

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/pgtest"
)

var modes = []pgx.QueryExecMode{
	pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
	pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
}

func TestEveryVerbWorksInEveryExecMode(t *testing.T) { // S047
	url := pgtest.Database(t)
	for _, m := range modes {
		t.Run(m.String(), func(t *testing.T) {
			s, pool := storeAt(t, url, Config{Schema: m.String()}, mode(m))
			everyVerb(t, s, func() (pacht.Tx, func() error) { return pgxTx(t, s, pool) })
		})
	}
}

func TestEveryVerbWorksThroughPgBouncer(t *testing.T) { // S047
	url := pgtest.Bouncer(t, pgtest.Database(t))
	for _, m := range []pgx.QueryExecMode{pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		t.Run(m.String(), func(t *testing.T) {
			s, pool := storeAt(t, url, Config{Schema: m.String()}, mode(m))
			done := make(chan error, 4)
			for w := range cap(done) {
				go func() { done <- lives(t, s, fmt.Sprint("w", w), 15) }()
			}
			for range cap(done) {
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
			everyVerb(t, s, func() (pacht.Tx, func() error) { return pgxTx(t, s, pool) })
		})
	}
}

// A pool left at pgx's default prepares statements, which this PgBouncer loses. The caller's
// own statements suffer, the store's do not.
func TestStoreWorksThroughPgBouncerOnAPoolThatPrepares(t *testing.T) { // S047
	s, _ := storeAt(t, pgtest.Bouncer(t, pgtest.Database(t)), Config{})
	done := make(chan error, 6)
	for w := range cap(done) {
		go func() { done <- lives(t, s, fmt.Sprint("w", w), 10) }()
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// lives lets n jobs live from enqueue to history.
func lives(t *testing.T, s *Store, owner string, n int) error {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := range n {
		if _, err := s.Enqueue(ctx, []pacht.NewJob{pacht.New(charge{i}, pacht.IdempotencyKey(fmt.Sprint(owner, i)))}); err != nil {
			return err
		}
		got, err := s.Claim(ctx, request(owner, 2))
		if err != nil {
			return err
		}
		var refs []pacht.Ref
		for _, j := range got.Jobs {
			refs = append(refs, j.Ref())
		}
		if _, err := s.Renew(ctx, refs); err != nil {
			return err
		}
		for left := settlements(got.Jobs, pacht.OutcomeCompleted); len(left) > 0; {
			answers, err := s.Settle(ctx, left)
			if err != nil {
				return err
			}
			var busy []pacht.Settlement // another claim has them locked for a moment
			for i, a := range answers {
				switch {
				case errors.Is(a.Err, pacht.ErrBusy):
					busy = append(busy, left[i])
				case a.Err != nil:
					return a.Err
				}
			}
			left = busy
		}
	}
	return nil
}

func pgxTx(t *testing.T, s *Store, pool interface {
	Begin(context.Context) (pgx.Tx, error)
}) (pacht.Tx, func() error) {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return s.Tx(tx), func() error { return tx.Commit(t.Context()) }
}

// everyVerb calls each verb once, with all kinds of values that it sends and reads.
func everyVerb(t *testing.T, s *Store, begin func() (pacht.Tx, func() error)) {
	t.Helper()
	ctx, act := t.Context(), pacht.Act{By: "O'Hara \\ \"x\"", Reason: "because $1 'it' is"}
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	args := `{"big": 12345678901234567890, "text": "it's \\ \"quoted\" $1 {a,b} ü"}`
	jobs := []pacht.NewJob{
		{Kind: "charge", Args: []byte(args), Metadata: []byte(`{"a": 1}`), Key: "k'1", Scope: `s"`, Priority: 1, TTL: time.Second},
		{Kind: "charge", Args: []byte(args), Key: "k'1", Scope: `s"`},
		{Kind: "charge", Args: []byte(`{}`), Key: "k'1", Scope: `s"`},
		{Kind: "charge", Args: []byte(args), Delay: time.Hour, CrashPolicy: pacht.CrashHold, MaxAttempts: 3, MaxCrashes: 2},
		{Kind: "charge", Args: []byte(args), RunAt: time.Now().Add(time.Hour)},
	}
	must("set queue", s.SetQueue(ctx, "default", pacht.QueueSettings{TTL: 2 * time.Second}, act))
	stored, err := s.Enqueue(ctx, jobs)
	must("enqueue", err)
	if !stored[1].Duplicate || stored[1].ID != stored[0].ID || !errors.Is(stored[2].Err, pacht.ErrKeyConflict) || stored[4].ID == 0 {
		t.Fatalf("enqueued %+v", stored)
	}
	tx, commit := begin()
	inTx, err := tx.EnqueueTx(ctx, append(jobs, pacht.NewJob{Kind: "other kind!"}))
	must("enqueue in a transaction", err)
	must("commit", commit())
	if !inTx[0].Duplicate || inTx[3].ID == 0 || inTx[5].Err == nil {
		t.Fatalf("enqueued in a transaction %+v", inTx)
	}
	got := claim(t, s, 5)
	if len(got) != 1 || string(got[0].Args) != args || string(got[0].Metadata) != `{"a": 1}` {
		t.Fatalf("claimed %+v", got)
	}
	one := got[0]
	must("step", s.SetStep(ctx, one.Ref(), "authorized", []byte(`{"it's": "$1"}`)))
	tx, commit = begin()
	must("step in a transaction", tx.SetStepTx(ctx, one.Ref(), "captured", nil))
	must("commit", commit())
	steps, err := s.Steps(ctx, one.ID)
	if must("steps", err); len(steps) != 2 || string(steps[0].Data) != `{"it's": "$1"}` {
		t.Fatalf("steps %+v", steps)
	}
	begun, err := s.BeginEffect(ctx, one.Ref(), pacht.EffectIntent{Name: "charge", Key: "k'1", Reference: `r"1`, Request: []byte(`{"it's": "$1"}`)})
	if must("begin effect", err); !begun.Begun || begun.Effect.Key != "k'1" || string(begun.Effect.Request) != `{"it's": "$1"}` {
		t.Fatalf("begun %+v", begun)
	}
	open, err := s.OpenEffects(ctx, pacht.EffectCursor{}, 10)
	if must("open effects", err); len(open) != 0 {
		t.Fatalf("open effects %+v", open)
	}
	_, err = s.AnswerEffect(ctx, pacht.EffectAnswer{Job: one.ID, Name: "charge", Rev: 1, State: pacht.EffectReady, Error: "it's", Wait: time.Second})
	must("answer effect", err)
	_, err = s.AnswerEffect(ctx, pacht.EffectAnswer{Job: one.ID, Name: "charge", State: pacht.EffectSucceeded, Answer: []byte(`"it's"`)})
	must("answer effect", err)
	effects, err := s.Effects(ctx, one.ID)
	if must("effects", err); len(effects) != 1 || string(effects[0].Answer) != `"it's"` || effects[0].Rev != 3 {
		t.Fatalf("effects %+v", effects)
	}
	renewed, err := s.Renew(ctx, []pacht.Ref{one.Ref(), {Job: one.ID, Token: 9}})
	if must("renew", err); renewed.Rows[0].State != pacht.RenewExtended || renewed.Rows[1].State != pacht.RenewLost {
		t.Fatalf("renewed %+v", renewed)
	}
	settled, err := s.Settle(ctx, []pacht.Settlement{{Ref: one.Ref(), Outcome: pacht.OutcomeFailed, Error: "it's $1 \\ bad", Output: []byte(`[1]`)}})
	if must("settle", err); settled[0].Status != pacht.Pending {
		t.Fatalf("settled %+v", settled)
	}
	settled, err = s.Settle(ctx, []pacht.Settlement{{Ref: one.Ref(), Outcome: pacht.OutcomeCompleted}})
	if must("settle late", err); !errors.Is(settled[0].Err, pacht.ErrLeaseLost) {
		t.Fatalf("settled %+v", settled)
	}
	ledger, err := s.Attempts(ctx, one.ID)
	if must("attempts", err); len(ledger) != 1 || ledger[0].Error != "it's $1 \\ bad" || string(ledger[0].Output) != "[1]" {
		t.Fatalf("attempts %+v", ledger)
	}
	reports, err := s.Reports(ctx, one.ID)
	if must("reports", err); len(reports) != 1 {
		t.Fatalf("reports %+v", reports)
	}
	again, ok, err := s.ClaimID(ctx, "o'w", one.ID)
	if must("claim by id", err); !ok {
		t.Fatal("claim by id took nothing")
	}
	mine, err := s.HeldBy(ctx, "o'w")
	if must("held by", err); len(mine.Jobs) != 1 {
		t.Fatalf("held %+v", mine)
	}
	must("beat", s.Beat(ctx, pacht.WorkerInfo{Owner: "o'w", Host: "h", Queues: []string{"a,b"}, BeatEvery: time.Second, LastUntil: again.LeaseUntil}))
	must("age", s.Age(ctx, time.Minute))
	pass, err := s.Expire(ctx, pacht.ExpireRequest{By: "w", Limit: 5, Period: time.Minute})
	if must("expire", err); !pass.Turn || len(pass.Expired) != 1 {
		t.Fatalf("pass %+v", pass)
	}
	must("leave", s.Leave(ctx, "o'w"))
	_, err = s.Cancel(ctx, one.ID, act)
	must("cancel", err)
	must("retry", s.Retry(ctx, one.ID, act))
	last, _, err := s.ClaimID(ctx, "x", one.ID)
	must("claim by id", err)
	tx, commit = begin()
	must("settle in a transaction", tx.SettleTx(ctx, pacht.Settlement{Ref: last.Ref(), Outcome: pacht.OutcomeUnknown}))
	must("commit", commit())
	must("resolve", s.Resolve(ctx, last.Ref(), pacht.Resolution{Status: pacht.Completed, Output: []byte(`{"r": "'"}`)}, act))
	tx, commit = begin()
	must("resolve in a transaction", tx.ResolveTx(ctx, pacht.Ref{Job: stored[4].ID}, pacht.Resolution{Status: pacht.Dead, Output: []byte(`{"r": "'"}`), Error: "it's"}, act))
	must("commit", commit())
	pruned, err := s.Prune(ctx, pacht.PruneRequest{Status: pacht.Completed, Limit: 10})
	if must("prune", err); pruned < 1 {
		t.Fatalf("pruned %d", pruned)
	}
	breakVerbs(t, s, begin)
	readAll(t, s, stored[3].ID)
	check(t, s)
	many := make([]pacht.NewJob, 120)
	for i := range many {
		many[i] = pacht.New(charge{i}, pacht.Queue("turn"))
	}
	_, err = s.Enqueue(ctx, many)
	must("enqueue", err)
	must("age", s.Age(ctx, time.Minute)) // so that claims tell how far they have got
	for range 2 {
		got, err := s.Claim(ctx, pacht.ClaimRequest{Owner: "o'w", Queue: "turn", Kinds: []string{"charge", "o:ther"}, Limit: 60})
		if must("claim in turn", err); len(got.Jobs) != 60 {
			t.Fatalf("claimed %d jobs in turn", len(got.Jobs))
		}
		complete(t, s, got.Jobs)
	}
}

func breakVerbs(t *testing.T, s *Store, begin func() (pacht.Tx, func() error)) {
	t.Helper()
	ctx := t.Context()
	d := pacht.Decision{Reference: `p'1 "x" \\ $1`, Class: "c", Status: pacht.BreakWaiting, Wait: time.Minute, AmountMinor: 1<<63 - 1, Currency: "EUR",
		Ours: []byte(`{"it's": "$1"}`), By: "o'w", Reason: "it's $1", Since: time.Now().Add(-time.Hour)}
	b, err := s.Decide(ctx, d)
	if err != nil || b.Rev != 1 || b.Reference != d.Reference || string(b.Ours) != string(d.Ours) || b.LastSeen.Sub(b.FirstSeen) < 59*time.Minute {
		t.Fatalf("decide: %+v, %v", b, err)
	}
	tx, commit := begin()
	d.Rev, d.Status, d.Wait, d.Job, d.Currency, d.Ours = 1, pacht.BreakHealed, 0, 7, "", nil
	if err := errors.Join(tx.DecideTx(ctx, d), commit()); err != nil {
		t.Fatalf("decide in a transaction: %v", err)
	}
	var refused *pacht.BreakError
	tx, commit = begin()
	if err := tx.DecideTx(ctx, d); !errors.As(err, &refused) || refused.Break.Rev != 2 || commit() == nil {
		t.Fatalf("decide again: %v", err)
	}
	if _, err := s.Decide(ctx, d); !errors.As(err, &refused) || refused.Break.Job != 7 {
		t.Fatalf("decide again: %v", err)
	}
	for _, f := range []pacht.BreakFilter{{Reference: d.Reference, Ended: true}, {Ended: true}, {Status: pacht.BreakHealed, Class: "c"}, {Due: true}, {}} {
		if list, err := s.Breaks(ctx, f); err != nil || len(list) != 1 && f.Ended {
			t.Fatalf("breaks %+v: %+v, %v", f, list, err)
		}
	}
	entries, err := s.Decisions(ctx, d.Reference)
	if err != nil || len(entries) != 2 || entries[0].Reason != "it's $1" || entries[0].Wait != time.Minute {
		t.Fatalf("decisions %+v, %v", entries, err)
	}
	counts, err := s.BreakCounts(ctx, time.Now().Add(-time.Hour))
	if err != nil || len(counts) != 1 || counts[0].AmountMinor != 1<<63-1 {
		t.Fatalf("counts %+v, %v", counts, err)
	}
}

// readAll asks every question.
func readAll(t *testing.T, s *Store, id pacht.ID) {
	t.Helper()
	ctx := t.Context()
	_, jobErr := s.Job(ctx, id)
	_, countsErr := s.Counts(ctx)
	_, workersErr := s.Workers(ctx)
	_, queuesErr := s.Queues(ctx)
	_, watchErr := s.Watch(ctx)
	_, statsErr := s.LeaseStats(ctx, 10)
	_, auditErr := s.Audit(ctx, id)
	_, nowErr := s.Now(ctx)
	if err := errors.Join(jobErr, countsErr, workersErr, queuesErr, watchErr, statsErr, auditErr, nowErr); err != nil {
		t.Fatal(err)
	}
	for _, f := range []pacht.Filter{{}, {Status: pacht.Pending, Kind: "charge"}, {Status: pacht.Dead, Queue: "q"}, {Status: pacht.Completed}, {Owner: "o'w"}, {Expired: true}} {
		if _, err := s.Jobs(ctx, f); err != nil {
			t.Fatalf("jobs %+v: %v", f, err)
		}
	}
}
