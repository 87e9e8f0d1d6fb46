package history

import (
	"context"
	"fmt"

	"github.com/pacht-queue/pacht"
)

// settling replaces Settle by one that may change what is asked, and see what is answered.
func settling(ask func(ctx context.Context, b *broken, s *pacht.Settlement), answered func(ctx context.Context, b *broken, s pacht.Settlement, got *pacht.Settled)) func(*broken) {
	return func(b *broken) {
		settle := b.settle
		b.settle = func(ctx context.Context, batch []pacht.Settlement) ([]pacht.Settled, error) {
			asked := append([]pacht.Settlement(nil), batch...)
			for i := range asked {
				if ask != nil {
					ask(ctx, b, &asked[i])
				}
			}
			got, err := settle(ctx, asked)
			for i := range got {
				got[i].Ref = batch[i].Ref
				if answered != nil && got[i].Err == nil {
					answered(ctx, b, batch[i], &got[i])
				}
			}
			return got, err
		}
	}
}

// breaks of how a lease ends.
var settleBreaks = []aBreak{
	{"R3", "a settle with a stale token is accepted", settling(func(ctx context.Context, b *broken, s *pacht.Settlement) {
		s.Ref = b.current(ctx, s.Ref)
	}, nil)},
	{"R3", "a settle with a stale token is accepted in a transaction", func(b *broken) {
		b.settleTx = func(ctx context.Context, tx pacht.Tx, s pacht.Settlement) error {
			s.Ref = b.current(ctx, s.Ref)
			return tx.SettleTx(ctx, s)
		}
	}},
	{"R4", "a repeated settle is taken for the first", settling(nil, func(_ context.Context, _ *broken, _ pacht.Settlement, got *pacht.Settled) {
		got.Repeated = false
	})},
	{"R4", "a repeated settle closes the next lease as well", func(b *broken) {
		settle := b.settle
		b.settle = func(ctx context.Context, batch []pacht.Settlement) ([]pacht.Settled, error) {
			got, err := settle(ctx, batch)
			for i, g := range got {
				if g.Repeated {
					s := batch[i]
					s.Ref = b.current(ctx, s.Ref)
					if again, err := settle(ctx, []pacht.Settlement{s}); err == nil && again[0].Err == nil {
						got[i].Status = again[0].Status
					}
				}
			}
			return got, err
		}
	}},
	{"R4", "a completion is answered and not written", func(b *broken) {
		settle := b.settle
		b.settle = func(ctx context.Context, batch []pacht.Settlement) ([]pacht.Settled, error) {
			if len(batch) == 1 && batch[0].Outcome == pacht.OutcomeCompleted && b.held(ctx, batch[0].Ref) {
				now, err := b.Store.Now(ctx)
				return []pacht.Settled{{Ref: batch[0].Ref, Status: pacht.Completed, Late: b.job(ctx, batch[0].Ref.Job).LeaseUntil.Before(now)}}, err
			}
			return settle(ctx, batch)
		}
	}},
	{"R4", "the ledger loses the row of a closed lease", settling(nil, func(ctx context.Context, b *broken, s pacht.Settlement, _ *pacht.Settled) {
		b.sql(ctx, `DELETE FROM {attempts} WHERE job_id = %d AND token = %d`, s.Ref.Job, s.Ref.Token)
	})},
	{"R4", "CompleteTx is answered from the ledger", func(b *broken) {
		b.settleTx = func(ctx context.Context, tx pacht.Tx, s pacht.Settlement) error {
			if b.outcome(ctx, s.Ref) == s.Outcome {
				return nil
			}
			return tx.SettleTx(ctx, s)
		}
	}},
	{"R4", "CompleteTx of a lost lease leaves the transaction fit to commit", func(b *broken) {
		b.settleTx = func(ctx context.Context, tx pacht.Tx, s pacht.Settlement) error {
			switch {
			case b.held(ctx, s.Ref):
				return tx.SettleTx(ctx, s)
			case b.outcome(ctx, s.Ref) == s.Outcome:
				return fmt.Errorf("settle %s: %w", s.Ref, pacht.ErrAlreadySettled)
			}
			return b.loss(ctx, s.Ref)
		}
	}},
	{"R5", "a release does not give the attempt back", settling(nil, func(ctx context.Context, b *broken, s pacht.Settlement, _ *pacht.Settled) {
		if s.Outcome == pacht.OutcomeReleased {
			b.sql(ctx, `UPDATE {leases} SET attempt = attempt + 1 WHERE job_id = %d AND status = 'Pending' AND attempt + 1 < max_attempts AND token > attempt`, s.Ref.Job)
		}
	})},
	{"R5", "a snooze does not give the attempt back", settling(nil, func(ctx context.Context, b *broken, s pacht.Settlement, _ *pacht.Settled) {
		if s.Outcome == pacht.OutcomeSnoozed {
			b.sql(ctx, `UPDATE {leases} SET attempt = attempt + 1 WHERE job_id = %d AND status = 'Pending' AND attempt + 1 < max_attempts AND token > attempt`, s.Ref.Job)
		}
	})},
	{"R5", "a failure gives the attempt back without being asked to", settling(func(_ context.Context, _ *broken, s *pacht.Settlement) {
		s.GiveBack = s.GiveBack || s.Outcome == pacht.OutcomeFailed
	}, nil)},
	{"R7", "the last holder's late settle is refused", func(b *broken) {
		settle := b.settle
		b.settle = func(ctx context.Context, batch []pacht.Settlement) ([]pacht.Settled, error) {
			now, err := b.Store.Now(ctx)
			if err != nil {
				return nil, err
			}
			if ref := batch[0].Ref; len(batch) == 1 && b.held(ctx, ref) && b.job(ctx, ref.Job).LeaseUntil.Before(now) {
				return []pacht.Settled{{Ref: ref, Err: b.loss(ctx, ref)}}, nil
			}
			return settle(ctx, batch)
		}
	}},
	{"R7", "a late settle is not marked late", settling(nil, func(_ context.Context, _ *broken, _ pacht.Settlement, got *pacht.Settled) {
		got.Late = false
	})},
	{"R9", "a failure does not reset the crashes in a row", settling(nil, func(ctx context.Context, b *broken, s pacht.Settlement, _ *pacht.Settled) {
		if s.Outcome == pacht.OutcomeFailed {
			b.sql(ctx, `UPDATE {leases} SET crashes = 1 WHERE job_id = %d AND status = 'Pending'`, s.Ref.Job)
		}
	})},
	{"R9", "a requested cancel ends what was completed", settling(func(ctx context.Context, b *broken, s *pacht.Settlement) {
		if s.Outcome == pacht.OutcomeCompleted && b.held(ctx, s.Ref) && b.job(ctx, s.Ref.Job).CancelRequested {
			s.Outcome = pacht.OutcomeCancelled
		}
	}, nil)},
	{"R10", "what is unknown goes back to be tried again", settling(nil, func(ctx context.Context, b *broken, s pacht.Settlement, _ *pacht.Settled) {
		if s.Outcome == pacht.OutcomeUnknown {
			b.sql(ctx, `UPDATE {leases} SET status = 'Pending', run_at = {now} WHERE job_id = %d AND status = 'Stuck' AND attempt < max_attempts`, s.Ref.Job)
		}
	})},
}
