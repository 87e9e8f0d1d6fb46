package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pacht-queue/pacht"
)

// Settle implements pacht.Leaser. A settlement whose answer was lost is repeated, and then
// answered from the ledger (R4).
func (s *Store) Settle(ctx context.Context, batch []pacht.Settlement) ([]pacht.Settled, error) {
	if len(batch) > pacht.MaxBatch {
		return nil, tooMany("settlements", len(batch))
	}
	answers := make([]pacht.Settled, len(batch))
	todo := make([]int, 0, len(batch))
	for i, one := range batch {
		answers[i].Ref = one.Ref
		if answers[i].Err = one.Validate(); answers[i].Err == nil {
			todo = append(todo, i)
		}
	}
	// In the order of the jobs, as the rows are locked. The same lease twice in one batch: the second
	// is answered after the first.
	slices.SortStableFunc(todo, func(a, b int) int { return compareRefs(batch[a].Ref, batch[b].Ref) })
	for len(todo) > 0 {
		now, later := todo[:1], []int(nil)
		for _, i := range todo[1:] {
			if batch[i].Ref == batch[now[len(now)-1]].Ref {
				later = append(later, i)
			} else {
				now = append(now, i)
			}
		}
		if err := s.settleEach(ctx, batch, now, answers); err != nil {
			return nil, err
		}
		todo = later
	}
	return answers, nil
}

func compareRefs(a, b pacht.Ref) int {
	return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Token, b.Token))
}

// settleEach settles different leases, and one by one if that fails as a batch: one bad row
// never stops the others (R12).
func (s *Store) settleEach(ctx context.Context, batch []pacht.Settlement, which []int, answers []pacht.Settled) error {
	err := s.settle(ctx, batch, which, answers)
	if err == nil || len(which) == 1 || !badRow(err) {
		return err
	}
	for _, i := range which {
		if err := s.settle(ctx, batch, []int{i}, answers); badRow(err) {
			answers[i].Err = err
		} else if err != nil {
			return err
		}
	}
	return nil
}

// badRow says whether the server refused what one row holds: a constraint or a value. Other
// errors would meet the rows one by one as well.
func badRow(err error) bool {
	class := code(err)
	return len(class) == 5 && (class[:2] == "22" || class[:2] == "23")
}

// settle settles those of a batch, which stand in the order of their jobs, in one transaction.
func (s *Store) settle(ctx context.Context, batch []pacht.Settlement, which []int, answers []pacht.Settled) error {
	closed := make([]bool, len(which))
	err := s.again(ctx, true, fmt.Sprintf("settle %d leases", len(which)), func() error {
		clear(closed) // what an earlier try said may have been undone, or its commit unanswered
		_, err := s.transact(ctx, s.own, lockTimeout, s.closing(batch, which, func(n int, status pacht.Status, late bool) {
			closed[n] = true
			i := which[n]
			answers[i] = pacht.Settled{Ref: batch[i].Ref, Status: status, Late: late}
		})...)
		return err
	})
	if err != nil {
		return err
	}
	if slices.ContainsFunc(which, func(i int) bool { return batch[i].Outcome == pacht.OutcomeReleased }) {
		s.floors.reset() // a released job keeps its place, which is behind them
	}
	var rest []pacht.Settlement
	var where []int
	for n, i := range which {
		if !closed[n] {
			rest, where = append(rest, batch[i]), append(where, i)
		}
	}
	if len(rest) == 0 {
		return nil
	}
	fates, err := s.fates(ctx, rest)
	for n, f := range fates {
		answers[where[n]] = f.answer(rest[n])
	}
	return err
}

// closing is the statements that close leases: one for completions that have nothing to say,
// and one for all others. It calls done for each that was closed, with its place in which.
func (s *Store) closing(batch []pacht.Settlement, which []int, done func(n int, status pacht.Status, late bool)) (stmts []stmt) {
	places := make([]int, 0, len(which))
	jobs, tokens := make([]int64, 0, len(which)), make([]int64, 0, len(which))
	var others []int
	var rest []pacht.Settlement
	for n, i := range which {
		if one := &batch[i]; one.Outcome == pacht.OutcomeCompleted && len(one.Output) == 0 && one.Error == "" {
			places, jobs, tokens = append(places, n), append(jobs, int64(one.Ref.Job)), append(tokens, int64(one.Ref.Token))
		} else {
			others, rest = append(others, n), append(rest, *one)
		}
	}
	var place int
	var status pacht.Status
	var late bool
	if len(places) > 0 {
		stmts = append(stmts, stmt{sql: s.sql.Complete, args: []any{jobs, tokens}, each: func(scan scanner) error {
			err := scan(&place, &late)
			if err == nil {
				done(places[place-1], pacht.Completed, late)
			}
			return err
		}})
	}
	if len(others) > 0 {
		stmts = append(stmts, stmt{sql: s.sql.Settle, args: s.settleArgs(rest), each: func(scan scanner) error {
			err := scan(&place, &status, &late)
			if err == nil {
				done(others[place-1], status, late)
			}
			return err
		}})
	}
	return stmts
}

func (s *Store) settleArgs(list []pacht.Settlement) []any {
	n := len(list)
	jobs, tokens, delays := make([]int64, n), make([]int64, n), make([]int64, n)
	outcomes, errs, outputs := make([]string, n), make([]string, n), make([]string, n)
	permanent, giveBack := make([]bool, n), make([]bool, n)
	for i, one := range list {
		jobs[i], tokens[i] = int64(one.Ref.Job), int64(one.Ref.Token)
		outcomes[i], delays[i] = string(one.Outcome), one.Delay.Microseconds()
		permanent[i], giveBack[i] = one.Permanent, one.GiveBack
		errs[i] = pacht.SafeText(one.Error, pacht.MaxErrorBytes)
		outputs[i] = string(pacht.SafeJSON(one.Output, s.limits))
	}
	return []any{jobs, tokens, outcomes, delays, permanent, giveBack, errs, outputs}
}

// fate is what became of a lease that could not be closed: what the ledger says of it, and
// what the job is now.
type fate struct {
	outcome    pacht.Outcome // "" if that lease was never closed
	nextStatus pacht.Status
	late       bool
	status     pacht.Status // "" if the job is gone
	token      pacht.Token
	owner      string
	until      time.Time
}

// fates looks in a transaction of its own, and keeps late outcomes as reports (R7). What the
// ledger says is answered when it is as durable as a settle.
func (s *Store) fates(ctx context.Context, list []pacht.Settlement) ([]fate, error) {
	var fates []fate
	err := s.again(ctx, true, fmt.Sprintf("explain %d settlements", len(list)), func() error {
		var each func(scanner) error
		fates, each = fateReader(len(list))
		_, err := s.transact(ctx, s.own, lockTimeout, stmt{sql: s.sql.Settled, args: fateArgs(list, true), each: each}, s.durable())
		return err
	})
	return fates, err
}

func fateArgs(list []pacht.Settlement, keepReports bool) []any {
	n := len(list)
	jobs, tokens := make([]int64, n), make([]int64, n)
	outcomes, errs := make([]string, n), make([]string, n)
	for i, one := range list {
		jobs[i], tokens[i] = int64(one.Ref.Job), int64(one.Ref.Token)
		outcomes[i], errs[i] = string(one.Outcome), pacht.SafeText(one.Error, pacht.MaxErrorBytes)
	}
	return []any{jobs, tokens, outcomes, errs, keepReports}
}

func fateReader(n int) ([]fate, func(scanner) error) {
	fates := make([]fate, n)
	return fates, func(scan scanner) error {
		var place int
		var until *time.Time
		var f fate
		if err := scan(&place, &f.outcome, &f.nextStatus, &f.late, &f.status, &f.token, &f.owner, &until); err != nil {
			return err
		}
		f.until = when(until)
		fates[place-1] = f
		return nil
	}
}

// answer is what a settlement is told that closed nothing.
func (f fate) answer(one pacht.Settlement) pacht.Settled {
	switch {
	case f.open(one.Ref):
		return pacht.Settled{Ref: one.Ref, Err: pacht.ErrBusy}
	case f.outcome == one.Outcome:
		return pacht.Settled{Ref: one.Ref, Status: f.nextStatus, Late: f.late, Repeated: true}
	}
	return pacht.Settled{Ref: one.Ref, Err: f.lost(one.Ref)}
}

// open says that the lease is still that of ref: then somebody else has the row locked.
func (f fate) open(ref pacht.Ref) bool { return f.status == pacht.Processing && f.token == ref.Token }

func (f fate) lost(ref pacht.Ref) error {
	return &pacht.LeaseLostError{Ref: ref, Status: f.status, Token: f.token, Owner: f.owner, Until: f.until, Outcome: f.outcome}
}
