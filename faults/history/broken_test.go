package history

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
)

// broken is a store that breaks one rule: some of its verbs are replaced, and may change the
// tables behind the store's back. Whoever calls it cannot tell but by its answers.
type broken struct {
	pacht.Store
	of handle
	t  *testing.T

	claim    func(ctx context.Context, req pacht.ClaimRequest) (pacht.Claims, error)
	claimID  func(ctx context.Context, owner string, id pacht.ID) (pacht.JobInfo, bool, error)
	heldBy   func(ctx context.Context, owner string) (pacht.Claims, error)
	renew    func(ctx context.Context, refs []pacht.Ref) (pacht.Renewals, error)
	settle   func(ctx context.Context, batch []pacht.Settlement) ([]pacht.Settled, error)
	settleTx func(ctx context.Context, tx pacht.Tx, s pacht.Settlement) error
	expire   func(ctx context.Context, req pacht.ExpireRequest) (pacht.Pass, error)
	retry    func(ctx context.Context, id pacht.ID, act pacht.Act) error
	cancel   func(ctx context.Context, id pacht.ID, act pacht.Act) (pacht.Status, error)
	release  func(ctx context.Context, ref pacht.Ref, act pacht.Act) (pacht.Status, error)
	resolve  func(ctx context.Context, ref pacht.Ref, res pacht.Resolution, act pacht.Act) error
	cut      bool // its connections are cut on purpose: what it could not write it has not done
}

// breakStore puts a break between the recorders and a store.
func breakStore(t *testing.T, of handle, how func(*broken)) *broken {
	b := &broken{Store: of.store, of: of, t: t}
	s := of.store
	b.claim, b.claimID, b.heldBy, b.renew, b.settle, b.expire = s.Claim, s.ClaimID, s.HeldBy, s.Renew, s.Settle, s.Expire
	b.retry, b.cancel, b.release, b.resolve = s.Retry, s.Cancel, s.Release, s.Resolve
	b.settleTx = func(ctx context.Context, tx pacht.Tx, s pacht.Settlement) error { return tx.SettleTx(ctx, s) }
	how(b)
	return b
}

func (b *broken) Claim(ctx context.Context, req pacht.ClaimRequest) (pacht.Claims, error) {
	return b.claim(ctx, req)
}

func (b *broken) ClaimID(ctx context.Context, owner string, id pacht.ID) (pacht.JobInfo, bool, error) {
	return b.claimID(ctx, owner, id)
}

func (b *broken) HeldBy(ctx context.Context, owner string) (pacht.Claims, error) {
	return b.heldBy(ctx, owner)
}

func (b *broken) Renew(ctx context.Context, refs []pacht.Ref) (pacht.Renewals, error) {
	return b.renew(ctx, refs)
}

func (b *broken) Settle(ctx context.Context, batch []pacht.Settlement) ([]pacht.Settled, error) {
	return b.settle(ctx, batch)
}

func (b *broken) Expire(ctx context.Context, req pacht.ExpireRequest) (pacht.Pass, error) {
	return b.expire(ctx, req)
}

func (b *broken) Retry(ctx context.Context, id pacht.ID, act pacht.Act) error {
	return b.retry(ctx, id, act)
}

func (b *broken) Cancel(ctx context.Context, id pacht.ID, act pacht.Act) (pacht.Status, error) {
	return b.cancel(ctx, id, act)
}

func (b *broken) Release(ctx context.Context, ref pacht.Ref, act pacht.Act) (pacht.Status, error) {
	return b.release(ctx, ref, act)
}

func (b *broken) Resolve(ctx context.Context, ref pacht.Ref, res pacht.Resolution, act pacht.Act) error {
	return b.resolve(ctx, ref, res, act)
}

func (b *broken) beginTx(ctx context.Context) (Txn, error) {
	tx, err := b.of.begin(ctx)
	if err != nil {
		return nil, err
	}
	return brokenTx{Txn: tx, of: b}, nil
}

type brokenTx struct {
	Txn
	of *broken
}

func (t brokenTx) SettleTx(ctx context.Context, s pacht.Settlement) error {
	return t.of.settleTx(ctx, t.Txn, s)
}

// sql changes tables behind the store: {leases} is the name of that table here, and {now} its
// clock.
func (b *broken) sql(ctx context.Context, format string, args ...any) int64 {
	b.t.Helper()
	query := fmt.Sprintf(format, args...)
	for _, name := range []string{"leases", "attempts", "jobs"} {
		query = strings.ReplaceAll(query, "{"+name+"}", b.of.table(name))
	}
	query = strings.ReplaceAll(query, "{now}", b.moment(0))
	n, err := b.of.exec(ctx, query)
	if err != nil && !b.cut {
		b.t.Errorf("%s: %v", query, err)
	}
	return n
}

// moment is a time on the database's clock as its SQL has it, so long from now.
func (b *broken) moment(d time.Duration) string {
	if strings.HasPrefix(b.of.table(""), "pacht.") {
		return fmt.Sprintf("(statement_timestamp() + %d * interval '1 millisecond')", d.Milliseconds())
	}
	return fmt.Sprintf("(CAST(unixepoch('subsec') * 1000 AS INTEGER) + %d)", d.Milliseconds())
}

// job reads what a job is now.
func (b *broken) job(ctx context.Context, id pacht.ID) pacht.JobInfo {
	b.t.Helper()
	j, err := b.Store.Job(ctx, id)
	if err != nil && !b.cut {
		b.t.Error(err)
	}
	return j
}

// held says whether the lease is held now.
func (b *broken) held(ctx context.Context, ref pacht.Ref) bool {
	j := b.job(ctx, ref.Job)
	return j.Status == pacht.Processing && j.Token == ref.Token
}

// outcome is how the ledger says that a lease was closed.
func (b *broken) outcome(ctx context.Context, ref pacht.Ref) pacht.Outcome {
	b.t.Helper()
	list, err := b.Store.Attempts(ctx, ref.Job)
	if err != nil {
		b.t.Error(err)
	}
	for _, a := range list {
		if a.Token == ref.Token {
			return a.Outcome
		}
	}
	return ""
}

// loss is an honest error for a lease that is not held.
func (b *broken) loss(ctx context.Context, ref pacht.Ref) error {
	j := b.job(ctx, ref.Job)
	return &pacht.LeaseLostError{Ref: ref, Status: j.Status, Token: j.Token, Owner: j.LeaseOwner, Until: j.LeaseUntil, Outcome: b.outcome(ctx, ref)}
}

// current is the ref with the token that the job has now, if it is held.
func (b *broken) current(ctx context.Context, ref pacht.Ref) pacht.Ref {
	if j := b.job(ctx, ref.Job); j.Status == pacht.Processing {
		ref.Token = j.Token
	}
	return ref
}
