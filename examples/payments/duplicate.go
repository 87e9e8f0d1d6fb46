package payments

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pacht-queue/pacht"
)

// LikelyDuplicate is the class of breaks that the shop itself opens: a payer paid one amount twice
// within DuplicateWithin. The reconciler leaves them to a person.
const LikelyDuplicate = "likely_duplicate"

// DuplicateWithin is how far apart two payments may be created to be likely duplicates.
const DuplicateWithin = 5 * time.Minute

// reportDuplicates opens a break for each payment that may be the same purchase as this one, or
// this one as an earlier one. It must run after the commit of the success: of two that succeed at
// once the later to look then sees both.
func (h *Handlers) reportDuplicates(ctx context.Context, id string) error {
	pairs, err := h.book.duplicatesOf(ctx, id, DuplicateWithin)
	if err != nil {
		return err
	}
	for _, d := range pairs {
		raw, err := json.Marshal(d)
		if err != nil {
			return err
		}
		err = h.open(ctx, pacht.Decision{
			Reference: d.PaymentID, Class: LikelyDuplicate,
			AmountMinor: d.Amount.Minor, Currency: string(d.Amount.Currency), Ours: raw, By: "payments",
			Reason: fmt.Sprintf("the payer of %.100s paid %s within %s: pressed twice, or bought twice?", d.Earlier, d.Amount, DuplicateWithin),
		}, false) // one that is there already is with a person, or was
		if err != nil {
			return err
		}
	}
	return nil
}
