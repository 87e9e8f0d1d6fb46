package lab

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
)

// tables is what the database says, job by job.
type tables struct {
	jobs    map[pacht.ID]*jobRows
	reports int
	tooLate map[pacht.Ref]bool // releases that came when the lease was closed
}

// jobRows is all that is stored of one job.
type jobRows struct {
	id     pacht.ID
	ledger []pacht.Attempt // by token
	lease  *leaseRow       // nil: it is finished
	booked []pacht.Token   // rows in the business table
}

type leaseRow struct {
	status    pacht.Status
	attempt   int
	token     pacht.Token
	owner     string
	claimedAt time.Time
}

// status is what the job is now.
func (j *jobRows) status() pacht.Status {
	if j.lease != nil {
		return j.lease.status
	}
	if n := len(j.ledger); n > 0 {
		return j.ledger[n-1].NextStatus
	}
	return ""
}

// readTables reads them with statements of its own: the audit believes no store.
func readTables(t testing.TB, url string) *tables {
	t.Helper()
	db := connect(t, url)
	defer db.Close()
	all := &tables{jobs: map[pacht.ID]*jobRows{}, tooLate: map[pacht.Ref]bool{}}
	job := func(id pacht.ID) *jobRows {
		if all.jobs[id] == nil {
			all.jobs[id] = &jobRows{id: id}
		}
		return all.jobs[id]
	}
	read := func(statement string, row func(scan func(...any) error) error) {
		t.Helper()
		rows, err := db.QueryContext(t.Context(), statement)
		if err == nil {
			defer rows.Close()
			for err == nil && rows.Next() {
				err = row(rows.Scan)
			}
			err = cmp.Or(err, rows.Err())
		}
		if err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	micros := func(column string) string {
		if locate(t, url).File != "" {
			return fmt.Sprintf("coalesce(%s, 0) * 1000", column)
		}
		return fmt.Sprintf("coalesce(extract(epoch FROM %s) * 1000000, 0)::bigint", column)
	}
	read(`SELECT job_id FROM `+Table(t, url, "jobs"), func(scan func(...any) error) error {
		var id pacht.ID
		err := scan(&id)
		job(id)
		return err
	})
	read(`SELECT job_id, token, attempt, owner, late, outcome, next_status, `+micros("claimed_at")+`, `+micros("ended_at")+
		` FROM `+Table(t, url, "attempts"), func(scan func(...any) error) error {
		var a pacht.Attempt
		var claimed, ended int64
		err := scan(&a.Job, &a.Token, &a.Attempt, &a.Owner, &a.Late, &a.Outcome, &a.NextStatus, &claimed, &ended)
		a.ClaimedAt, a.EndedAt = time.UnixMicro(claimed), time.UnixMicro(ended)
		j := job(a.Job)
		j.ledger = append(j.ledger, a)
		return err
	})
	read(`SELECT job_id, status, attempt, token, coalesce(lease_owner, ''), `+micros("claimed_at")+` FROM `+Table(t, url, "leases"), func(scan func(...any) error) error {
		var id pacht.ID
		var l leaseRow
		var claimed int64
		err := scan(&id, &l.status, &l.attempt, &l.token, &l.owner, &claimed)
		l.claimedAt = time.UnixMicro(claimed)
		job(id).lease = &l
		return err
	})
	read(`SELECT job_id, token FROM lab_books`, func(scan func(...any) error) error {
		var ref pacht.Ref
		err := scan(&ref.Job, &ref.Token)
		j := job(ref.Job)
		j.booked = append(j.booked, ref.Token)
		return err
	})
	read(`SELECT job_id, token, outcome FROM `+Table(t, url, "reports"), func(scan func(...any) error) error {
		var ref pacht.Ref
		var outcome pacht.Outcome
		err := scan(&ref.Job, &ref.Token, &outcome)
		all.reports++
		if outcome == pacht.OutcomeReleased {
			all.tooLate[ref] = true
		}
		return err
	})
	for _, j := range all.jobs {
		slices.SortFunc(j.ledger, func(a, b pacht.Attempt) int { return cmp.Compare(a.Token, b.Token) })
	}
	return all
}
