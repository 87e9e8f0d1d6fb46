package payments

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/examples/payments/psp"
	"github.com/pacht-queue/pacht/reconcile"
)

// What else became of an event, beside the verdicts of news.
const (
	ParkedEvent = "parked"  // its payment is not there yet: it is tried again
	Refused     = "refused" // garbage, or not from the provider: it changed nothing
)

// Received answers a webhook.
type Received struct {
	EventID   string `json:"event_id,omitempty"`
	Verdict   string `json:"verdict"` // Applied, Ignored, Break, ParkedEvent, Unmatched or Refused
	Why       string `json:"why,omitempty"`
	Duplicate bool   `json:"duplicate,omitempty"` // it was processed before, and changed nothing now
}

// parkedFor is when an event without a payment is tried again: the transaction that makes the
// payment is about to commit, or was rolled back.
const parkedFor = time.Second

// Receive takes in a webhook whose signature is good. The event is entered in the same
// transaction as what it does: if that fails, it is not entered, and the provider's next
// delivery is the first (S097). An event that was processed is only counted.
func (b *Book) Receive(ctx context.Context, body []byte) (got Received, err error) {
	hash := hashOf(body)
	event, garbage := psp.ParseEvent(body)
	err = b.inTx(ctx, func(tx *sql.Tx) error {
		if garbage != nil {
			got = Received{EventID: "garbage:" + hash[:16], Verdict: Refused, Why: garbage.Error()}
			return b.refuseEvent(ctx, tx, got.EventID, hash, got.Why)
		}
		got, err = b.receive(ctx, tx, event, body, hash)
		return err
	})
	if err != nil {
		return Received{}, fmt.Errorf("receive event %s: %w", event.ID, err)
	}
	return got, nil
}

func (b *Book) receive(ctx context.Context, tx *sql.Tx, event psp.Event, body []byte, hash string) (Received, error) {
	got := Received{EventID: event.ID}
	var before string
	if err := tx.QueryRowContext(ctx, b.sql.EventAdd, event.ID, event.Type, hash).Scan(&got.Verdict, &before); err != nil {
		return got, err
	}
	switch {
	case before != hash: // also of one that is parked: its job would apply both
		got.Verdict, got.Why = Refused, "an event of this id had another content"
		return got, b.refuseEvent(ctx, tx, "reused:"+event.ID, hash, got.Why)
	case got.Verdict != "new" && got.Verdict != ParkedEvent && got.Verdict != Unmatched:
		got.Duplicate = true
		return got, nil
	}
	v, err := b.happened(ctx, tx, event)
	if err != nil {
		return got, err
	}
	got.Verdict, got.Why = v.Verdict, v.Why
	if v.Verdict == Unmatched {
		got.Verdict = ParkedEvent
		// A second delivery finds the job that is there.
		_, err := b.enqueue(ctx, tx, Parked{EventID: event.ID, Hash: hash, Body: body}, pacht.IdempotencyKey("event:"+event.ID), pacht.RunIn(parkedFor))
		if err != nil && !errors.Is(err, pacht.ErrKeyConflict) {
			return got, err
		}
	}
	return got, b.judge(ctx, tx, event, got, hash)
}

// happened applies what an event tells. What does not fit gets a break.
func (b *Book) happened(ctx context.Context, tx *sql.Tx, event psp.Event) (Verdict, error) {
	n := News{Charge: event.Charge, By: "webhook " + event.ID}
	if n.Charge.Status == psp.Failed {
		n.Why = "the provider says that " + n.Charge.ID + " failed"
	}
	if event.Refund != nil {
		n.Charge.Refunds = append(n.Charge.Refunds[:len(n.Charge.Refunds):len(n.Charge.Refunds)], *event.Refund)
	}
	v, err := b.apply(ctx, tx, n)
	if err != nil {
		return v, err
	}
	return v, b.reportMisfit(ctx, tx, n, v)
}

func (b *Book) judge(ctx context.Context, tx *sql.Tx, event psp.Event, got Received, hash string) error {
	_, err := tx.ExecContext(ctx, b.sql.EventJudge, event.ID, got.Verdict, got.Why, event.Charge.Reference, event.Charge.ID, hash)
	return err
}

func (b *Book) refuseEvent(ctx context.Context, tx *sql.Tx, id, hash, why string) error {
	_, err := tx.ExecContext(ctx, b.sql.EventRefuse, id, hash, pacht.SafeText(why, 1000))
	return err
}

// RefuseWebhook keeps that a webhook was refused before it was read. However many come, it is
// one row for each reason.
func (b *Book) RefuseWebhook(ctx context.Context, reason string, body []byte, why error) error {
	err := b.inTx(ctx, func(tx *sql.Tx) error { return b.refuseEvent(ctx, tx, "refused:"+reason, hashOf(body), why.Error()) })
	if err != nil {
		return fmt.Errorf("keep that a webhook was refused: %w", err)
	}
	return nil
}

func hashOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// Parked tries an event again whose payment was not there. After the last try it is nobody's:
// somebody has taken money under a reference that we do not know, which is for a person to see
// (S099).
func (h *Handlers) Parked(ctx context.Context, job *pacht.Job[Parked]) error {
	event, err := psp.ParseEvent(job.Args.Body)
	if err != nil {
		return pacht.Permanent(err)
	}
	last := job.Attempt >= job.MaxAttempts
	if last {
		if err := h.unmatched(ctx, event); err != nil {
			return err
		}
	}
	return h.write(ctx, job.Held, func(ctx context.Context, tx *sql.Tx) error {
		v, err := h.book.happened(ctx, tx, event)
		if err != nil {
			return err
		}
		if v.Verdict == Unmatched && !last {
			return fmt.Errorf("event %s: %s", event.ID, v.Why)
		}
		return h.book.judge(ctx, tx, event, Received{Verdict: v.Verdict, Why: v.Why}, job.Args.Hash)
	})
}

// unmatched makes a break of an event that is nobody's. One that is there already is left.
func (h *Handlers) unmatched(ctx context.Context, event psp.Event) error {
	if event.Charge.Status != psp.Succeeded {
		return nil // no money was taken
	}
	_, err := h.book.Payment(ctx, event.Charge.Reference)
	if !errors.Is(err, pacht.ErrNotFound) {
		return err
	}
	return h.open(ctx, pacht.Decision{
		Reference: event.Charge.Reference, Class: string(reconcile.MissingHere),
		AmountMinor: event.Charge.Amount.Minor, Currency: string(event.Charge.Amount.Currency),
		By: "webhook", Reason: "event " + event.ID + " is of no payment of ours, after several tries",
	}, false)
}
