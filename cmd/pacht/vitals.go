package main

import (
	"context"
	"fmt"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/internal/database"
)

// vitals is what doctor has read, before it thinks.
type vitals struct {
	now        time.Time
	claimSQL   string
	stats      []pacht.LeaseStats
	held       []pacht.JobInfo // Processing: the newest, and of the rest those that are expired
	heldMore   bool            // there are more than were read
	waiting    []pacht.Waiting // due, by queue and kind
	counts     []pacht.Count
	breaks     []pacht.BreakCount // open ones
	workers    []pacht.WorkerInfo
	watch      pacht.WatchInfo
	violations []pacht.Violation
	skipped    bool // the rules were not checked
	found      int  // schema versions
	wanted     int
	skew       time.Duration // the database's clock minus ours
	roundTrip  time.Duration
}

// page is how many held leases doctor reads at most.
const page = 1000

func (v *vitals) take(ctx context.Context, db database.Database, f doctorFlags) (err error) {
	if err := v.compareClocks(ctx, db); err != nil {
		return err
	}
	if v.found, v.wanted, err = db.Schema(ctx); err != nil {
		return err
	}
	v.claimSQL = db.ClaimSQL()
	if v.stats, err = db.LeaseStats(ctx, f.sample); err != nil {
		return fmt.Errorf("measure closed leases: %w", err)
	}
	if v.held, err = db.Jobs(ctx, pacht.Filter{Status: pacht.Processing, Limit: page}); err != nil {
		return fmt.Errorf("list held leases: %w", err)
	}
	v.heldMore = len(v.held) == page
	if v.heldMore {
		// The oldest may be the worst.
		expired, err := db.Jobs(ctx, pacht.Filter{Expired: true, Before: v.held[page-1].ID, Limit: page})
		if err != nil {
			return fmt.Errorf("list expired leases: %w", err)
		}
		v.held = append(v.held, expired...)
	}
	if v.waiting, err = db.Waiting(ctx); err != nil {
		return err
	}
	// Read after the leases, so that none of them seems to lie in the future.
	if v.now, err = db.Now(ctx); err != nil {
		return err
	}
	if v.counts, err = db.Counts(ctx); err != nil {
		return err
	}
	if v.breaks, err = db.BreakCounts(ctx, v.now); err != nil {
		return err
	}
	if v.workers, err = db.Workers(ctx); err != nil {
		return err
	}
	if v.watch, err = db.Watch(ctx); err != nil {
		return err
	}
	if v.skipped = f.skipCheck; v.skipped {
		return nil
	}
	if v.violations, err = db.Check(ctx); err != nil {
		return fmt.Errorf("check the rules: %w", err)
	}
	return nil
}

// compareClocks takes the reading with the shortest round trip of a few: the database's
// clock was read somewhere in the middle of it.
func (v *vitals) compareClocks(ctx context.Context, db pacht.Reader) error {
	for i := range 5 {
		before := clock.Now()
		theirs, err := db.Now(ctx)
		if err != nil {
			return err
		}
		trip := before.Elapsed()
		if i == 0 || trip < v.roundTrip {
			v.roundTrip = trip
			v.skew = theirs.Sub(before.Time().Add(trip / 2))
		}
	}
	return nil
}

// broken are the violations of some rules.
func (v *vitals) broken(rules ...string) int {
	n := 0
	for _, found := range v.violations {
		for _, rule := range rules {
			if found.Rule == rule {
				n++
			}
		}
	}
	return n
}

func (v *vitals) count(status pacht.Status) (jobs, due, expired int64) {
	for _, c := range v.counts {
		if c.Status == status {
			jobs, due, expired = jobs+c.Jobs, due+c.Due, expired+c.Expired
		}
	}
	return jobs, due, expired
}

// closed is how many closed leases were measured.
func (v *vitals) closed() int64 {
	n := int64(0)
	for _, s := range v.stats {
		n += s.Leases
	}
	return n
}

// live are the workers that run, as far as the database can know.
func (v *vitals) live() []pacht.WorkerInfo {
	var live []pacht.WorkerInfo
	for _, w := range v.workers {
		if w.StoppedAt.IsZero() && !w.Missed(v.now) {
			live = append(live, w)
		}
	}
	return live
}
