package payments

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pacht-queue/pacht"
)

// reportMisfit stores, in the transaction that refuses news as a break, the job that opens the
// break: a break that nobody can see is none. The same news, told again, are one job.
func (b *Book) reportMisfit(ctx context.Context, tx *sql.Tx, n News, v Verdict) error {
	if v.Verdict != Break {
		return nil
	}
	raw, err := json.Marshal(n.Charge)
	if err != nil {
		return err
	}
	m := Misfit{
		Reference: n.Charge.Reference, Class: string(v.Class), Reason: n.By + ": " + v.Why,
		AmountMinor: n.Charge.Amount.Minor, Currency: string(n.Charge.Amount.Currency), Theirs: raw,
	}
	key := "misfit:" + hashOf(fmt.Appendf(nil, "%q %q %q %q", m.Reference, m.Class, n.Charge.ID, v.Why))
	if _, err := b.enqueue(ctx, tx, m, pacht.IdempotencyKey(key)); err != nil && !errors.Is(err, pacht.ErrKeyConflict) {
		return fmt.Errorf("report news that do not fit: %w", err)
	}
	return nil
}

// Misfit opens the break of news that do not fit. The reconciler closes it if the provider, when
// it is asked, says otherwise. One that had ended is opened again: these are other news.
func (h *Handlers) Misfit(ctx context.Context, job *pacht.Job[Misfit]) error {
	m := job.Args
	return h.open(ctx, pacht.Decision{
		Reference: m.Reference, Class: m.Class, AmountMinor: m.AmountMinor, Currency: m.Currency,
		Theirs: m.Theirs, By: "payments", Reason: pacht.SafeText(m.Reason, pacht.MaxReasonBytes),
	}, true)
}

// open opens a break for a person, after the commit of what it is about. One that is open already
// is left to whoever has it; one that has ended is opened again only if that is asked for.
func (h *Handlers) open(ctx context.Context, d pacht.Decision, again bool) error {
	d.Status = pacht.BreakPerson
	_, err := h.breaks.Decide(ctx, d)
	var there *pacht.BreakError
	if !errors.As(err, &there) {
		return err
	}
	if !again || there.Break.Status.Open() {
		return nil
	}
	d.Rev = there.Break.Rev
	_, err = h.breaks.Decide(ctx, d)
	return err // somebody was faster: the job's next attempt looks again
}
