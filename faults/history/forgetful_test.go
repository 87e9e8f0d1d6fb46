package history

import (
	"context"
	"fmt"

	"github.com/pacht-queue/pacht"
)

// forgetful is a store whose answers get lost as over a network that breaks: the call was
// carried out, or it was not. As a real store does, it repeats a renewal and a settle inside.
type forgetful struct {
	pacht.Store
	next fault
	turn int
}

var errForgotten = fmt.Errorf("the answer was lost on purpose: %w", pacht.ErrUnknown)

// lose says whether the answer is to be lost, and whether the call is carried out.
func (f *forgetful) lose() (lose, carryOut bool) {
	f.turn++
	return f.next != none, f.next == answer || f.turn%2 == 0
}

func forget[T any](f *forgetful, call func() (T, error)) (T, error) {
	lose, carryOut := f.lose()
	if !lose {
		return call()
	}
	var nothing T
	if carryOut {
		if _, err := call(); err != nil {
			return nothing, err
		}
	}
	return nothing, errForgotten
}

func (f *forgetful) Claim(ctx context.Context, req pacht.ClaimRequest) (pacht.Claims, error) {
	return forget(f, func() (pacht.Claims, error) { return f.Store.Claim(ctx, req) })
}

func (f *forgetful) ClaimID(ctx context.Context, owner string, id pacht.ID) (pacht.JobInfo, bool, error) {
	var ok bool
	job, err := forget(f, func() (job pacht.JobInfo, err error) {
		job, ok, err = f.Store.ClaimID(ctx, owner, id)
		return job, err
	})
	return job, ok && err == nil, err
}

// Renew is sent twice if its answer is lost, as a store does.
func (f *forgetful) Renew(ctx context.Context, refs []pacht.Ref) (pacht.Renewals, error) {
	if _, err := forget(f, func() (pacht.Renewals, error) { return pacht.Renewals{}, nil }); err != nil {
		if _, err := f.Store.Renew(ctx, refs); err != nil {
			return pacht.Renewals{}, err
		}
	}
	return f.Store.Renew(ctx, refs)
}

// Settle is sent twice if its answer is lost, or not answered at all.
func (f *forgetful) Settle(ctx context.Context, batch []pacht.Settlement) ([]pacht.Settled, error) {
	if lose, carryOut := f.lose(); lose {
		if _, err := f.Store.Settle(ctx, batch); err != nil || !carryOut {
			return nil, errForgotten
		}
	}
	return f.Store.Settle(ctx, batch)
}

func (f *forgetful) Expire(ctx context.Context, req pacht.ExpireRequest) (pacht.Pass, error) {
	return forget(f, func() (pacht.Pass, error) { return f.Store.Expire(ctx, req) })
}

func (f *forgetful) Retry(ctx context.Context, id pacht.ID, act pacht.Act) error {
	_, err := forget(f, func() (struct{}, error) { return struct{}{}, f.Store.Retry(ctx, id, act) })
	return err
}

func (f *forgetful) Cancel(ctx context.Context, id pacht.ID, act pacht.Act) (pacht.Status, error) {
	return forget(f, func() (pacht.Status, error) { return f.Store.Cancel(ctx, id, act) })
}

func (f *forgetful) Release(ctx context.Context, ref pacht.Ref, act pacht.Act) (pacht.Status, error) {
	return forget(f, func() (pacht.Status, error) { return f.Store.Release(ctx, ref, act) })
}

func (f *forgetful) Resolve(ctx context.Context, ref pacht.Ref, res pacht.Resolution, act pacht.Act) error {
	_, err := forget(f, func() (struct{}, error) { return struct{}{}, f.Store.Resolve(ctx, ref, res, act) })
	return err
}
