package lab

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pacht-queue/pacht"
)

// Account is what an audit has counted.
type Account struct {
	Jobs   int
	Ends   map[pacht.Status]int  // what the jobs are in the end
	Ledger map[pacht.Outcome]int // rows by outcome
	Hand   int                   // rows of acts that took a vacant or parked lease: Resolved, and cancels

	// Attempts is how many were counted at a claim. It is the ledger's rows less those by hand
	// and plus the leases that are held, and it is Begun plus all of Cut.
	Attempts  int
	GivenBack int            // of these, by a release, a snooze or a stop
	Begun     int            // as handlers told the recorder
	Cut       map[string]int // not begun, by what explains it

	Effects int // accepted by the recorder
	Refused int // by its fence, because of a stale token
	Beyond  int // begins and accepted effects of frozen or deaf holders after the end of their leases, before the next
	Late    int // settled after lease_until, before anybody else closed the lease
	Reports int // outcomes that came after the lease was closed
	Booked  int // rows in the business table
	Faults  []string
}

// Facts are the account's figures, for Report.
func (a Account) Facts() []Fact {
	rows := 0
	for _, n := range a.Ledger {
		rows += n
	}
	facts := []Fact{
		F("jobs", a.Jobs), F("completed", a.Ends[pacht.Completed]), F("ledger", rows), F("by_hand", a.Hand), F("attempts", a.Attempts),
		F("given_back", a.GivenBack), F("begun", a.Begun), F("cut", a.cut()), F("expired", a.Ledger[pacht.OutcomeExpired]),
		F("effects", a.Effects), F("effects_refused", a.Refused), F("beyond", a.Beyond), F("late", a.Late), F("reports", a.Reports), F("booked", a.Booked),
	}
	for _, why := range slices.Sorted(maps.Keys(a.Cut)) {
		facts = append(facts, F("cut_"+strings.NewReplacer(" ", "_", ".", "_").Replace(why), a.Cut[why]))
	}
	return facts
}

func (a Account) cut() (n int) {
	for _, of := range a.Cut {
		n += of
	}
	return n
}

// fault notes what no rule allows.
func (a *Account) fault(format string, args ...any) {
	a.Faults = append(a.Faults, fmt.Sprintf(format, args...))
}
