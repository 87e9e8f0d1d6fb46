package history

import (
	"context"
	"time"

	"github.com/pacht-queue/pacht"
)

// breaks of time, of crashes, and of what people do by hand.
var timeBreaks = []aBreak{
	{"R3", "a renewal with a stale token is accepted", func(b *broken) {
		renew := b.renew
		b.renew = func(ctx context.Context, refs []pacht.Ref) (pacht.Renewals, error) {
			asked := make([]pacht.Ref, len(refs))
			for i, r := range refs {
				asked[i] = b.current(ctx, r)
			}
			got, err := renew(ctx, asked)
			for i := range got.Rows {
				got.Rows[i].Ref = refs[i]
			}
			return got, err
		}
	}},
	{"R7", "a renewal after lease_until is accepted", func(b *broken) {
		renew := b.renew
		b.renew = func(ctx context.Context, refs []pacht.Ref) (pacht.Renewals, error) {
			for _, r := range refs {
				b.sql(ctx, `UPDATE {leases} SET lease_until = %s WHERE job_id = %d AND lease_until < {now}`, b.moment(time.Second), r.Job)
			}
			return renew(ctx, refs)
		}
	}},
	{"R7", "a renewal before lease_until is refused", func(b *broken) {
		renew := b.renew
		b.renew = func(ctx context.Context, refs []pacht.Ref) (pacht.Renewals, error) {
			got, err := renew(ctx, refs)
			for i := range got.Rows {
				got.Rows[i] = pacht.Renewed{Ref: refs[i], State: pacht.RenewLost}
			}
			return got, err
		}
	}},
	{"R6", "the watcher closes a lease before lease_until", func(b *broken) {
		expire := b.expire
		b.expire = func(ctx context.Context, req pacht.ExpireRequest) (pacht.Pass, error) {
			b.sql(ctx, `UPDATE {leases} SET lease_until = %s
				WHERE job_id = (SELECT min(job_id) FROM {leases} WHERE status = 'Processing' AND lease_until > {now})`, b.moment(-time.Second))
			return expire(ctx, req)
		}
	}},
	{"R9", "a crash at the last attempt is a failure: Dead instead of Stuck", func(b *broken) {
		expire := b.expire
		b.expire = func(ctx context.Context, req pacht.ExpireRequest) (pacht.Pass, error) {
			pass, err := expire(ctx, req)
			for i, e := range pass.Expired {
				if e.Next == pacht.Stuck {
					b.sql(ctx, `UPDATE {attempts} SET next_status = 'Dead' WHERE job_id = %d AND token = %d`, e.Ref.Job, e.Ref.Token)
					b.sql(ctx, `DELETE FROM {leases} WHERE job_id = %d`, e.Ref.Job)
					pass.Expired[i].Next = pacht.Dead
				}
			}
			return pass, err
		}
	}},
	{"R9", "an expiry forgets the cap of crashes in a row", func(b *broken) {
		expire := b.expire
		b.expire = func(ctx context.Context, req pacht.ExpireRequest) (pacht.Pass, error) {
			b.sql(ctx, `UPDATE {leases} SET max_crashes = 1000`)
			pass, err := expire(ctx, req)
			b.sql(ctx, `UPDATE {leases} SET max_crashes = (SELECT j.max_crashes FROM {jobs} AS j WHERE j.job_id = {leases}.job_id)`)
			return pass, err
		}
	}},
	{"R9", "an expiry forgets that its policy is hold", func(b *broken) {
		expire := b.expire
		b.expire = func(ctx context.Context, req pacht.ExpireRequest) (pacht.Pass, error) {
			b.sql(ctx, `UPDATE {leases} SET crash_policy = 'retry'`)
			pass, err := expire(ctx, req)
			b.sql(ctx, `UPDATE {leases} SET crash_policy = (SELECT j.crash_policy FROM {jobs} AS j WHERE j.job_id = {leases}.job_id)`)
			return pass, err
		}
	}},
	{"R9", "an expired job may run again at once, without its delay", func(b *broken) {
		expire := b.expire
		b.expire = func(ctx context.Context, req pacht.ExpireRequest) (pacht.Pass, error) {
			pass, err := expire(ctx, req)
			for _, e := range pass.Expired {
				b.sql(ctx, `UPDATE {leases} SET run_at = {now} WHERE job_id = %d AND status = 'Pending'`, e.Ref.Job)
			}
			return pass, err
		}
	}},
	{"R9", "a request to cancel is lost", func(b *broken) {
		cancel := b.cancel
		b.cancel = func(ctx context.Context, id pacht.ID, act pacht.Act) (pacht.Status, error) {
			status, err := cancel(ctx, id, act)
			b.sql(ctx, `UPDATE {leases} SET cancel_requested = false WHERE job_id = %d`, id)
			return status, err
		}
	}},
	{"R3", "a release with a stale token is accepted", func(b *broken) {
		release := b.release
		b.release = func(ctx context.Context, ref pacht.Ref, act pacht.Act) (pacht.Status, error) {
			return release(ctx, b.current(ctx, ref), act)
		}
	}},
	{"R3", "of two that resolve, both win", func(b *broken) {
		resolve := b.resolve
		b.resolve = func(ctx context.Context, ref pacht.Ref, res pacht.Resolution, act pacht.Act) error {
			ref.Token = b.job(ctx, ref.Job).Token
			return resolve(ctx, ref, res, act)
		}
	}},
	{"status", "a Completed job goes back", func(b *broken) {
		retry := b.retry
		b.retry = func(ctx context.Context, id pacht.ID, act pacht.Act) error {
			b.sql(ctx, `UPDATE {attempts} SET next_status = 'Dead' WHERE job_id = %d AND next_status = 'Completed'`, id)
			return retry(ctx, id, act)
		}
	}},
	{"R9", "a retry keeps the crashes in a row", func(b *broken) {
		retry := b.retry
		b.retry = func(ctx context.Context, id pacht.ID, act pacht.Act) error {
			err := retry(ctx, id, act)
			if err == nil {
				b.sql(ctx, `UPDATE {leases} SET crashes = 1 WHERE job_id = %d`, id)
			}
			return err
		}
	}},
	{"R5", "a retry gives more attempts than the original maximum", func(b *broken) {
		retry := b.retry
		b.retry = func(ctx context.Context, id pacht.ID, act pacht.Act) error {
			err := retry(ctx, id, act)
			if err == nil {
				b.sql(ctx, `UPDATE {leases} SET max_attempts = max_attempts + 5 WHERE job_id = %d`, id)
			}
			return err
		}
	}},
}
