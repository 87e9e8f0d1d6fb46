package lab

import (
	"strings"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
)

// fleetOf is a fleet with one run, of the owner "a", to which this was done.
func fleetOf(fates ...fate) []*Fleet {
	return []*Fleet{{lives: []*Life{{Owner: "a", slots: 1, stop: time.Second, fates: fates}}}}
}

// What was done to a process explains why it did not begin what it had claimed, if it was done at
// that time, and nothing else than that it expired or was released. The lease goes from second 0 to
// second 2; with "slow" it goes on to second 8.
func TestOnlyWhatWasDoneToAProcessInTimeExplainsWhatItDidNotBegin(t *testing.T) {
	for _, c := range []struct {
		what string
		slow bool
		opts AuditOptions
		want string // "" = nothing explains it
	}{
		{"nothing", false, AuditOptions{Fleets: fleetOf()}, ""},
		{"killed", false, AuditOptions{Fleets: fleetOf(fate{dies, "killed", second(1), time.Time{}})}, "killed"},
		{"killed while its claim was on its way", false, AuditOptions{Fleets: fleetOf(fate{dies, "killed", second(-0.1), time.Time{}})}, "killed"},
		{"killed after its lease had run out", false, AuditOptions{Fleets: fleetOf(fate{dies, "killed", second(2.1), time.Time{}})}, ""},
		{"killed when it had long had the time to begin", true, AuditOptions{Fleets: fleetOf(fate{dies, "killed", second(5), time.Time{}})}, ""},
		{"frozen for ever", false, AuditOptions{Fleets: fleetOf(fate{stands, "frozen", second(1), time.Time{}})}, "frozen"},
		{"frozen over the end of its lease", false, AuditOptions{Fleets: fleetOf(fate{stands, "frozen", second(1), second(3)})}, "frozen"},
		{"thawed long before the end of its lease", true, AuditOptions{Fleets: fleetOf(fate{stands, "frozen", second(1), second(3)})}, ""},
		{"thawed before its claim", false, AuditOptions{Fleets: fleetOf(fate{stands, "frozen", second(-4), second(-2)})}, ""},
		{"frozen after its lease had run out", false, AuditOptions{Fleets: fleetOf(fate{stands, "frozen", second(2.1), second(9)})}, ""},
		{"asked to stop as it claimed", false, AuditOptions{Fleets: fleetOf(fate{stops, "terminated", second(-1), time.Time{}})}, "terminated"},
		{"asked to stop when the test was over", false, AuditOptions{Fleets: fleetOf(fate{stops, "terminated", second(9), time.Time{}})}, ""},
		{"asked to stop, and through with it, before it claimed", false, AuditOptions{Fleets: fleetOf(fate{stops, "terminated", second(-5), time.Time{}})}, ""},
		{"an outage", false, AuditOptions{Fleets: fleetOf(), Outages: []Outage{{second(-1), second(1)}}}, "unanswered claim"},
		{"an outage that came later", false, AuditOptions{Fleets: fleetOf(), Outages: []Outage{{second(1.5), second(3)}}}, ""},
		{"an outage that was over", false, AuditOptions{Fleets: fleetOf(), Outages: []Outage{{second(-3), second(-2)}}}, ""},
		{"an outage, and somebody whom nobody knows", false, AuditOptions{Outages: []Outage{{second(-1), second(1)}}}, ""},
	} {
		all := ran()
		if c.slow {
			all.jobs[1].ledger[0].EndedAt = second(8)
			all.jobs[1].ledger[1].ClaimedAt, all.jobs[1].ledger[1].EndedAt = second(8), second(9)
		}
		events := told()[2:]
		for i := range events {
			events[i].At = all.jobs[1].ledger[1].ClaimedAt
		}
		a := judge(all, events, c.opts)
		found := strings.Join(a.Faults, "\n")
		if c.want == "" && !strings.Contains(found, "it was never begun, and nothing explains it") {
			t.Errorf("%s explained it: %v %s", c.what, a.Cut, found)
		}
		if c.want != "" && (found != "" || a.Cut[c.want] != 1 || a.Begun != 1 || a.Attempts != 2) {
			t.Errorf("%s: %+v", c.what, a)
		}
	}
	released := ran()
	released.jobs[1].ledger[0].Outcome, released.jobs[1].ledger[1].Attempt = pacht.OutcomeReleased, 1
	if a := judge(released, told()[2:], AuditOptions{}); len(a.Faults) != 0 || a.Cut["released"] != 1 || a.GivenBack != 1 {
		t.Errorf("%+v", a)
	}
	byHand := ran()
	byHand.jobs[1].ledger[1] = lease(2, 1, "a person", 5, 5, pacht.OutcomeResolved, pacht.Completed)
	byHand.jobs[1].booked = nil
	if a := judge(byHand, told()[:2], AuditOptions{}); len(a.Faults) != 0 || a.Hand != 1 || a.Attempts != 1 {
		t.Errorf("%+v", a)
	}
}

// An owner asks what it holds before it claims again: one outage explains no more leases than it has
// slots.
func TestAnOutageExplainsNoMoreThanOneClaimOfAnOwner(t *testing.T) {
	all := ran()
	two := ran().jobs[1]
	two.id = 2
	for i := range two.ledger {
		two.ledger[i].Job = 2
	}
	all.jobs[2] = two
	events := told()[2:]
	for _, e := range told()[2:] {
		e.Ref.Job = 2
		events = append(events, e)
	}
	a := judge(all, events, AuditOptions{Fleets: fleetOf(), Outages: []Outage{{second(-1), second(1)}}})
	if len(a.Faults) != 1 || a.Cut["unanswered claim"] != 1 || a.Cut["unexplained"] != 1 {
		t.Errorf("%+v", a)
	}
}

// A worker begins all that a claim has brought before it claims again: what it has not begun by then
// it has dropped, and no kill explains that. One that was frozen goes on afterwards.
func TestAKillExplainsNothingThatItsVictimHadDroppedBefore(t *testing.T) {
	for _, c := range []struct {
		again float64 // when it claimed another job, which it began
		fate  fate
		want  bool
	}{
		{0.1, fate{dies, "killed", second(1), time.Time{}}, true},
		{0.5, fate{dies, "killed", second(1), time.Time{}}, false},
		{5, fate{stands, "frozen", second(1), second(4)}, true},
	} {
		all := ran()
		other := lease(1, 1, "a", 0, 9, pacht.OutcomeCompleted, pacht.Completed)
		other.Job, other.ClaimedAt = 2, second(c.again)
		all.jobs[2] = &jobRows{id: 2, ledger: []pacht.Attempt{other}}
		begun := event(c.again, Begin, 1, "a")
		begun.Ref.Job = 2
		a := judge(all, append(told()[2:], begun), AuditOptions{Fleets: fleetOf(c.fate)})
		if (a.Cut[c.fate.what] == 1) != c.want || (len(a.Faults) == 0) != c.want {
			t.Errorf("%s, and claimed again at %g: %+v", c.fate.what, c.again, a)
		}
	}
}

// A holder that stood still when its lease ended may begin, and have an effect that no higher token
// forbids, when it has just woken up; one that nothing happened to may not.
func TestOnlyWhoHasJustWokenUpMayComeLate(t *testing.T) {
	late := func(at float64) (*tables, []Event) {
		all, events := ran(), told()
		all.jobs[1].ledger[1].ClaimedAt, all.jobs[1].ledger[1].EndedAt = second(20), second(21)
		for i, s := range []float64{at, at, 20.1, 20.2, 20.3} {
			events[i].At = second(s)
		}
		return all, events
	}
	frozen := AuditOptions{Fleets: fleetOf(fate{stands, "frozen", second(1), second(8)})}
	for _, c := range []struct {
		what string
		at   float64
		opts AuditOptions
		want int // faults
	}{
		{"awake", 8.1, AuditOptions{Fleets: fleetOf()}, 2},
		{"just woken up", 8.1, frozen, 0},
		{"woken up some time ago", 12, frozen, 2},
	} {
		all, events := late(c.at)
		if a := judge(all, events, c.opts); len(a.Faults) != c.want || a.Beyond != 2-c.want {
			t.Errorf("%s: %+v", c.what, a)
		}
	}
	deaf := fleetOf()
	deaf[0].lives[0].deaf = true
	all, events := late(8.1)
	events[0].At = second(0.1) // it begins in time, and then goes on whatever it is told
	if a := judge(all, events, AuditOptions{Fleets: deaf}); len(a.Faults) != 0 || a.Beyond != 1 {
		t.Errorf("deaf: %+v", a)
	}
}

// S087: a release that the store refused, because the watcher had been there, says why nothing was begun;
// without it nothing does.
func TestAReleaseThatCameTooLateExplainsWhatWasNotBegun(t *testing.T) {
	unbegun := told()[2:]
	all := ran()
	if a := judge(all, unbegun, AuditOptions{Jobs: 1}); len(a.Faults) == 0 {
		t.Error("a lease that nobody began is in order")
	}
	all.tooLate = map[pacht.Ref]bool{{Job: 1, Token: 1}: true}
	if a := judge(all, unbegun, AuditOptions{Jobs: 1}); len(a.Faults) != 0 || a.Cut["released too late"] != 1 {
		t.Errorf("%+v", a)
	}
}
