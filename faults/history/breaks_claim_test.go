package history

import (
	"context"
	"time"

	"github.com/pacht-queue/pacht"
)

// aBreak is one way to break one rule.
type aBreak struct {
	rule string
	name string
	how  func(*broken)
}

// breaks of who may take a lease, and of what a claim counts.
var claimBreaks = []aBreak{
	{"R1", "a claim hands out a job that has an owner", func(b *broken) {
		claim := b.claim
		b.claim = func(ctx context.Context, req pacht.ClaimRequest) (pacht.Claims, error) {
			b.sql(ctx, `UPDATE {leases} SET status = 'Pending', lease_owner = NULL, claimed_at = NULL, lease_until = NULL, cancel_requested = false
				WHERE job_id = (SELECT min(job_id) FROM {leases} WHERE status = 'Processing' AND attempt < max_attempts)`)
			return claim(ctx, req)
		}
	}},
	{"R1", "a claim takes one more than asked", func(b *broken) {
		claim := b.claim
		b.claim = func(ctx context.Context, req pacht.ClaimRequest) (pacht.Claims, error) {
			req.Limit++
			return claim(ctx, req)
		}
	}},
	{"R1", "a claim takes kinds that were not asked for", func(b *broken) {
		claim := b.claim
		b.claim = func(ctx context.Context, req pacht.ClaimRequest) (pacht.Claims, error) {
			req.Kinds = []string{"a", "b"}
			return claim(ctx, req)
		}
	}},
	{"R1", "a claim by id takes a live lease from its owner", func(b *broken) {
		claimID := b.claimID
		b.claimID = func(ctx context.Context, owner string, id pacht.ID) (pacht.JobInfo, bool, error) {
			b.sql(ctx, `UPDATE {leases} SET lease_until = %s WHERE job_id = %d AND status = 'Processing'`, b.moment(-time.Second), id)
			return claimID(ctx, owner, id)
		}
	}},
	{"R1, R9", "a claim by id takes an expired lease of a hold job", func(b *broken) {
		claimID := b.claimID
		b.claimID = func(ctx context.Context, owner string, id pacht.ID) (pacht.JobInfo, bool, error) {
			hold := b.sql(ctx, `UPDATE {leases} SET crash_policy = 'retry' WHERE job_id = %d AND crash_policy = 'hold'`, id) > 0
			job, ok, err := claimID(ctx, owner, id)
			if hold {
				job.CrashPolicy = pacht.CrashHold
				b.sql(ctx, `UPDATE {leases} SET crash_policy = 'hold' WHERE job_id = %d`, id)
			}
			return job, ok, err
		}
	}},
	{"R1, R9", "a claim by id takes an expired lease whose cancel is requested", func(b *broken) {
		claimID := b.claimID
		b.claimID = func(ctx context.Context, owner string, id pacht.ID) (pacht.JobInfo, bool, error) {
			b.sql(ctx, `UPDATE {leases} SET cancel_requested = false WHERE job_id = %d AND lease_until < {now}`, id)
			return claimID(ctx, owner, id)
		}
	}},
	{"R1, R6", "a claim takes a job before it is due", func(b *broken) {
		claim := b.claim
		b.claim = func(ctx context.Context, req pacht.ClaimRequest) (pacht.Claims, error) {
			b.sql(ctx, `UPDATE {leases} SET run_at = %s WHERE status = 'Pending' AND run_at > {now}`, b.moment(-time.Second))
			return claim(ctx, req)
		}
	}},
	{"R2", "a claim does not raise the token", func(b *broken) {
		claim := b.claim
		b.claim = func(ctx context.Context, req pacht.ClaimRequest) (pacht.Claims, error) {
			got, err := claim(ctx, req)
			for i, j := range got.Jobs {
				got.Jobs[i].Token -= pacht.Token(b.sql(ctx, `UPDATE {leases} SET token = token - 1 WHERE job_id = %d AND token > attempt`, j.ID))
			}
			return got, err
		}
	}},
	{"R2", "a heartbeat raises the token", func(b *broken) {
		renew := b.renew
		b.renew = func(ctx context.Context, refs []pacht.Ref) (pacht.Renewals, error) {
			got, err := renew(ctx, refs)
			for _, row := range got.Rows {
				if row.State == pacht.RenewExtended {
					b.sql(ctx, `UPDATE {leases} SET token = token + 1 WHERE job_id = %d`, row.Ref.Job)
				}
			}
			return got, err
		}
	}},
	{"R2", "a retry resets the token", func(b *broken) {
		retry := b.retry
		b.retry = func(ctx context.Context, id pacht.ID, act pacht.Act) error {
			err := retry(ctx, id, act)
			if err == nil {
				b.sql(ctx, `UPDATE {leases} SET token = attempt WHERE job_id = %d`, id)
			}
			return err
		}
	}},
	{"R5", "a claim does not count the attempt", func(b *broken) {
		claim := b.claim
		b.claim = func(ctx context.Context, req pacht.ClaimRequest) (pacht.Claims, error) {
			got, err := claim(ctx, req)
			for i, j := range got.Jobs {
				got.Jobs[i].Attempt--
				b.sql(ctx, `UPDATE {leases} SET attempt = attempt - 1 WHERE job_id = %d`, j.ID)
			}
			return got, err
		}
	}},
	{"R6", "a claim writes lease_until from another TTL than the job's", func(b *broken) {
		claim := b.claim
		b.claim = func(ctx context.Context, req pacht.ClaimRequest) (pacht.Claims, error) {
			got, err := claim(ctx, req)
			for i, j := range got.Jobs {
				b.sql(ctx, `UPDATE {leases} SET lease_until = %s WHERE job_id = %d`, b.moment(5*time.Minute), j.ID)
				got.Jobs[i].LeaseUntil = b.job(ctx, j.ID).LeaseUntil
			}
			return got, err
		}
	}},
	{"R4", "HeldBy does not tell of a claim whose answer was lost", func(b *broken) {
		b.heldBy = func(ctx context.Context, owner string) (pacht.Claims, error) {
			got, err := b.Store.HeldBy(ctx, owner)
			got.Jobs = nil
			return got, err
		}
	}},
}
