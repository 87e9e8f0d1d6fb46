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
		if theirs.Refunded > theirs.Amount.Minor {
			return difference{AmountDiffers, fmt.Sprintf("the provider gave back %s of %s", money.Amount{Minor: theirs.Refunded, Currency: theirs.Amount.Currency}, theirs.Amount),
				money.Amount{Minor: theirs.Refunded - theirs.Amount.Minor, Currency: theirs.Amount.Currency}}
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

// compareReversal compares two records of money that has moved: what came back since.
func compareReversal(ours, theirs Record) difference {
	back := money.Amount{Minor: theirs.Refunded - ours.Refunded, Currency: theirs.Amount.Currency}
	amounts := fmt.Sprintf("we gave back %s, the provider %s",
		money.Amount{Minor: ours.Refunded, Currency: back.Currency}, money.Amount{Minor: theirs.Refunded, Currency: back.Currency})
	switch {
	case theirs.State == ChargedBack && ours.State != ChargedBack:
		return difference{ReversedThere, fmt.Sprintf("we have it as %s, the provider as charged back", ours.State), theirs.Amount}
	case back.Minor > 0:
		return difference{ReversedThere, amounts, back}
	case back.Minor < 0:
		back.Minor = -back.Minor
		return difference{MissingThere, amounts, back}
	case ours.State == ChargedBack && theirs.State != ChargedBack:
		return difference{MissingThere, fmt.Sprintf("we have it as charged back, the provider as %s", theirs.State), theirs.Amount}
	}
	return difference{}
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
	case !r.moved() && r.Refunded != 0:
		return fmt.Sprintf("%s, and %d given back", r.State, r.Refunded)
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
