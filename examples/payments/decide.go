package payments

import (
	"fmt"

	"github.com/pacht-queue/pacht/examples/payments/psp"
	"github.com/pacht-queue/pacht/reconcile"
)

// What news did.
const (
	Applied   = "applied"   // the payment, or one of its refunds, was changed
	Ignored   = "ignored"   // it is so already, or it is older news
	Break     = "break"     // it does not fit what we have: nothing was changed, a person must look
	Unmatched = "unmatched" // there is no such payment
)

// decision is what is to be done about a payment.
type decision struct {
	to      string // its status from now on; "" = as it is
	back    int64  // what the payer's bank has taken back of it in all
	charge  string // the provider's attempt that it hangs on from now on
	verdict string
	class   reconcile.Class // of a break
	why     string
	moves   []move
}

// move is one movement of money in the ledger.
type move struct {
	id, to, from string // accounts
	minor        int64
}

// decide is the only transition table of payments. News of a payment may come in any order,
// any number of times, from anybody: so status has a precedence (pending, failed, succeeded,
// charged back) and hangs on the provider's attempt. Money that was taken is never talked away
// by news of another attempt, and money that was taken twice, or in another amount, or came back
// more than once, is nothing that we decide here. A bank may take money back in parts: news tell
// the sum so far, so each movement is the difference, and a smaller sum is older news.
func decide(p Payment, c psp.Charge) decision {
	state := c.Status
	if state == Succeeded && c.ChargedBack > 0 {
		state = ChargedBack
	}
	taken := state == Succeeded || state == ChargedBack
	same := c.ID == p.ChargeID
	switch {
	case taken && c.Amount != p.Amount:
		return refuse(reconcile.AmountDiffers, "the provider took %s by %s, ordered were %s", c.Amount, c.ID, p.Amount)
	case taken && p.Taken() && !same:
		return refuse(reconcile.ChargedTwice, "it was charged by %s already, and now by %s", p.ChargeID, c.ID)
	case taken && max(p.Refunded, c.Refunded) > p.Amount.Minor-max(p.ChargedBack, c.ChargedBack):
		return refuse(reconcile.AmountDiffers, "of %s of %s %d were given back and %d charged back there, %d and %d here: together more than was taken",
			p.Amount, c.ID, c.Refunded, c.ChargedBack, p.Refunded, p.ChargedBack)
	case taken && !p.Taken(): // also a late success, after we had given it up
		d := decision{to: state, back: c.ChargedBack, charge: c.ID, verdict: Applied, moves: []move{{"charge:" + c.ID, "provider", "sales", p.Amount.Minor}}}
		if p.Status == Failed {
			d.why = "late success: it had failed before (" + p.Why + ")"
		}
		if state == ChargedBack {
			d.moves = append(d.moves, chargeback(p, c))
		}
		return d
	case state == ChargedBack && p.Taken() && c.ChargedBack > p.ChargedBack:
		return decision{to: ChargedBack, back: c.ChargedBack, charge: c.ID, verdict: Applied, moves: []move{chargeback(p, c)}}
	case state == Pending && p.Status == Pending && p.ChargeID == "":
		return decision{to: Pending, charge: c.ID, verdict: Applied, why: "accepted by the provider"}
	case state == Failed && p.Status == Pending && (same || p.ChargeID == ""):
		return decision{to: Failed, charge: c.ID, verdict: Applied}
	}
	return decision{verdict: Ignored, why: fmt.Sprintf("it is %s by %q; that %q is %s is older news or none", p.Status, p.ChargeID, c.ID, state)}
}

func refuse(class reconcile.Class, format string, args ...any) decision {
	return decision{verdict: Break, class: class, why: fmt.Sprintf(format, args...)}
}

func chargeback(p Payment, c psp.Charge) move {
	return move{fmt.Sprintf("chargeback:%s:%d", c.ID, c.ChargedBack), "chargebacks", "provider", c.ChargedBack - p.ChargedBack}
}
