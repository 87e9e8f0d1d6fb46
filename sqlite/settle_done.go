package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"

	"github.com/pacht-queue/pacht"
)

// settleDone closes what is to be said of most jobs in one statement for all: completed,
// nothing else. It answers which jobs it closed, and whether late. What it did not close, for
// whatever reason, is settled one by one.
func (s *Store) settleDone(ctx context.Context, w *work, batch []pacht.Settlement) (map[pacht.ID]bool, error) {
	refs, n := doneRefs(batch)
	if n < 2 {
		return nil, nil
	}
	closed := make(map[pacht.ID]bool, n)
	ids := make([]pacht.ID, 0, n)
	err := each(ctx, w, s.sql.SettleDone, []any{refs, w.now}, func(rows *sql.Rows) error {
		var id pacht.ID
		var late bool
		if err := rows.Scan(&id, &late); err != nil {
			return err
		}
		closed[id], ids = late, append(ids, id)
		return nil
	})
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	ended, err := changed(ctx, w, s.sql.FinishDone, idList(ids))
	if err == nil && int(ended) != len(ids) {
		err = fmt.Errorf("lease rows changed under the write lock: %d of %d ended", ended, len(ids))
	}
	return closed, err
}

// doneRefs names the leases that are completed and nothing else, as a JSON object of job:
// token. A job that the batch names twice is not among them: its settlements count in order.
func doneRefs(batch []pacht.Settlement) (object string, n int) {
	named := make(map[pacht.ID]bool, len(batch)) // true: more than once
	for _, b := range batch {
		_, again := named[b.Ref.Job]
		named[b.Ref.Job] = again
	}
	text := []byte{'{'}
	for _, b := range batch {
		if b.Outcome != pacht.OutcomeCompleted || b.Error != "" || len(b.Output) > 0 || named[b.Ref.Job] || b.Validate() != nil {
			continue
		}
		if n > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendQuote(text, b.Ref.Job.String())
		text = strconv.AppendInt(append(text, ':'), int64(b.Ref.Token), 10)
		n++
	}
	return string(append(text, '}')), n
}

// putBack forgets how far claims have got if a job goes back to its place in the queue.
func (s *Store) putBack(batch ...pacht.Settlement) {
	for _, b := range batch {
		if b.Outcome == pacht.OutcomeReleased {
			s.floors.reset()
			return
		}
	}
}
