package reconcile

import (
	"fmt"
	"math"

	"github.com/pacht-queue/pacht/money"
)

// difference is what a comparison came to. Class "" is agreement.
type difference struct {
	class Class
	why   string
	risk  money.Amount
}

// compare says how two sound records of one reference differ, the gravest way first. It is pure.
func compare(ours, theirs Record) difference {
	if d, told := compareMissing(ours, theirs); told {
		return d
	}
	if theirs.Charges > 1 {
		return difference{ChargedTwice, fmt.Sprintf("the provider took the money %d times", theirs.Charges), times(theirs.Amount, theirs.Charges-1)}
	}
	if theirs.moved() || theirs.State == Pending && theirs.Amount != (money.Amount{}) && ours.State != Failed {
		if ours.Amount != theirs.Amount {
			return difference{AmountDiffers, fmt.Sprintf("we have %s, the provider has %s", ours.Amount, theirs.Amount), atRisk(ours.Amount, theirs.Amount)}
		}
		if back := plus(theirs.Refunded, theirs.ChargedBack); back > theirs.Amount.Minor {
			return difference{AmountDiffers, fmt.Sprintf("of %s the provider has %s", theirs.Amount, theirs.returned()),
				money.Amount{Minor: back - theirs.Amount.Minor, Currency: theirs.Amount.Currency}}
		}
	}
	switch {
	case theirs.State == Pending:
		return difference{UnknownThere, fmt.Sprintf("we have it as %s, the provider as pending", ours.State), ours.Amount}
	case ours.State == Pending && theirs.State == Failed:
		return difference{FailedThere, "we have it as pending, the provider as failed", ours.Amount}
	case ours.State == Pending:
		return difference{PaidThere, fmt.Sprintf("we have it as pending, the provider as %s", theirs.State), theirs.Amount}
	case ours.State == Failed && theirs.State == Failed:
		return difference{}
	case ours.State == Failed:
		return difference{PaidThereLate, fmt.Sprintf("we have it as failed, the provider as %s", theirs.State), theirs.Amount}
	case theirs.State == Failed:
		return difference{PaidHere, fmt.Sprintf("we have it as %s, the provider as failed", ours.State), ours.Amount}
	}
	return compareReversal(ours, theirs)
}

// compareMissing tells what can be told if one side has nothing.
func compareMissing(ours, theirs Record) (difference, bool) {
	switch {
	case ours.State == Inconclusive:
		return difference{class: UnknownHere, why: "our own record could not be read", risk: theirs.Amount}, true
	case theirs.State == Inconclusive:
		return difference{class: UnknownThere, why: "the provider says nothing", risk: ours.Amount}, true
	case theirs.State == NotFound && (ours.State == NotFound || ours.State == Failed):
		return difference{}, true // nothing was taken, and nobody says so
	case theirs.State == NotFound:
		return difference{MissingThere, fmt.Sprintf("we have it as %s, the provider does not know it", ours.State), ours.Amount}, true
	case ours.State == NotFound && theirs.State == Failed:
		return difference{}, true // no money will move
	case ours.State == NotFound:
		return difference{MissingHere, fmt.Sprintf("we do not know it, the provider has it as %s", theirs.State), theirs.Amount}, true
	}
	return difference{}, false
}

// compareReversal compares two records of money that has moved: what came back since. The sums tell,
// not the states: money that was given back and money that was taken back may both be there.
func compareReversal(ours, theirs Record) difference {
	given, taken := theirs.Refunded-ours.Refunded, theirs.ChargedBack-ours.ChargedBack
	more, less := plus(max(given, 0), max(taken, 0)), plus(max(-given, 0), max(-taken, 0))
	both := plus(max(ours.Refunded, theirs.Refunded), max(ours.ChargedBack, theirs.ChargedBack))
	why := fmt.Sprintf("we have %s, the provider %s", ours.returned(), theirs.returned())
	at := func(minor int64) money.Amount { return money.Amount{Minor: minor, Currency: theirs.Amount.Currency} }
	switch {
	case more > 0 && both > theirs.Amount.Minor: // no transition can write down both
		return difference{AmountDiffers, why + fmt.Sprintf(": together more than %s", theirs.Amount), at(both - theirs.Amount.Minor)}
	case more > 0:
		return difference{ReversedThere, why, at(more)}
	case less > 0:
		return difference{MissingThere, why, at(less)}
	}
	return difference{}
}

// returned says in words what came back.
func (r Record) returned() string {
	of := func(minor int64) money.Amount { return money.Amount{Minor: minor, Currency: r.Amount.Currency} }
	return fmt.Sprintf("%s given back and %s charged back", of(r.Refunded), of(r.ChargedBack))
}

// fault says what makes a record unusable, "" if nothing does. What is asked about is part of it:
// the record of another reference is garbage, however well it looks.
func fault(r Record, reference string, mine bool) string {
	switch r.State {
	case Inconclusive, NotFound:
		return ""
	case Pending, Succeeded, Failed, Refunded, ChargedBack:
	default:
		return fmt.Sprintf("%.40q is no state", r.State)
	}
	none := r.Amount == (money.Amount{})
	switch {
	case r.Reference != reference:
		return fmt.Sprintf("it is about %.80q", r.Reference)
	case none && (mine || r.moved()):
		return "it has no amount"
	case !none && r.Amount.Minor <= 0:
		return fmt.Sprintf("an amount of %d", r.Amount.Minor)
	case !none && r.Amount.Validate() != nil:
		return fmt.Sprintf("%.20q is no currency", r.Amount.Currency)
	case r.Refunded < 0:
		return fmt.Sprintf("%d given back", r.Refunded)
	case r.State == Refunded && r.Refunded == 0:
		return "refunded, and nothing given back"
	case r.ChargedBack < 0:
		return fmt.Sprintf("%d charged back", r.ChargedBack)
	case r.State == ChargedBack && r.ChargedBack == 0:
		return "charged back, and nothing taken back"
	case !r.moved() && (r.Refunded != 0 || r.ChargedBack != 0):
		return fmt.Sprintf("%s, and %d given back, %d charged back", r.State, r.Refunded, r.ChargedBack)
	case r.Charges < 0:
		return fmt.Sprintf("%d charges", r.Charges)
	}
	return ""
}

// times is an amount n times, at most the largest there is.
func times(a money.Amount, n int) money.Amount {
	if a.Minor > math.MaxInt64/int64(n) {
		a.Minor = math.MaxInt64
	} else {
		a.Minor *= int64(n)
	}
	return a
}

// atRisk is what is at risk if two amounts differ: the difference in one currency, else theirs.
func atRisk(ours, theirs money.Amount) money.Amount {
	if ours.Currency == theirs.Currency {
		theirs.Minor = max(ours.Minor-theirs.Minor, theirs.Minor-ours.Minor)
	}
	return theirs
}
