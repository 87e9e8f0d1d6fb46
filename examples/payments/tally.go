package payments

import (
	"context"
	"fmt"
	"time"
)

// Tally is how far a run has come, in one snapshot.
type Tally struct {
	Payments, Paid, Unpaid     int64         // Unpaid are still pending
	OldestPending              time.Duration // how long the oldest of them has been
	Pending, Processing, Stuck int64         // jobs of all kinds, by the status of their lease
	Attempts                   int64         // closed leases: the ledger
	Completed, EndedBadly      int64         // finished charge jobs, as Completed or otherwise
	Expired                    int64         // leases that ended with nobody closing them
	Unknown                    int64         // leases that were closed because nobody knew
	RefusedLate                int64         // outcomes that came after their lease was closed
}

// Unfinished is how many jobs still have a lease.
func (t Tally) Unfinished() int64 { return t.Pending + t.Processing + t.Stuck }

// Tally counts everything in the database.
func (b *Book) Tally(ctx context.Context) (t Tally, err error) {
	var oldest int64
	err = b.db.QueryRowContext(ctx, b.sql.Tally).Scan(&t.Payments, &t.Paid, &t.Unpaid, &oldest, &t.Pending, &t.Processing, &t.Stuck,
		&t.Attempts, &t.Completed, &t.EndedBadly, &t.Expired, &t.Unknown, &t.RefusedLate)
	if err != nil {
		return Tally{}, fmt.Errorf("count: %w", err)
	}
	t.OldestPending = time.Duration(oldest) * time.Millisecond
	return t, nil
}
