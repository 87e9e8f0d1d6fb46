package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pacht-queue/pacht"
)

func (v *vitals) schema() finding {
	// Another version was refused before anything was read.
	return finding{Key: "schema", Question: "Does the schema fit?", Verdict: good,
		Answer:  fmt.Sprintf("yes: version %d, and this program wants %d", v.found, v.wanted),
		Figures: map[string]any{"found": v.found, "wanted": v.wanted}}
}

func (v *vitals) rules() finding {
	f := finding{Key: "rules", Question: "Does the stored data keep the rules?", Figures: map[string]any{"violations": len(v.violations), "checked": !v.skipped}}
	switch {
	case v.skipped:
		f.Verdict, f.Answer = unclear, "not checked (--skip-check)"
	case len(v.violations) > 0:
		f.Verdict, f.Answer = bad, plural(int64(len(v.violations)), "violation", "violations")+", listed below"
	default:
		f.Verdict, f.Answer = good, "yes: all tables were read, and no violation found"
	}
	return f
}

func (v *vitals) clocks() finding {
	f := finding{Key: "clock_skew", Question: "Do this machine's clock and the database's agree?", Verdict: good,
		Answer:  fmt.Sprintf("the database's is ahead by %s, give or take %s", short(v.skew.Round(time.Millisecond)), short(v.roundTrip/2+time.Millisecond)),
		Figures: map[string]any{"skew_ns": v.skew, "round_trip_ns": v.roundTrip}}
	// Only the database's clock decides (R6): skew confuses people and logs, not leases.
	if abs := max(v.skew, -v.skew) - v.roundTrip/2; abs > 5*time.Second {
		f.Verdict = bad
		f.Answer += "; no lease depends on it, but times in logs and --at do"
	}
	return f
}

// unserved finds due jobs that no running worker takes.
func (v *vitals) unserved() finding {
	live := v.live()
	alone, lines := []pacht.Waiting{}, []string{}
	f := finding{Key: "unserved", Question: "Is there a running worker for every kind that is due?", Verdict: good}
	for _, w := range v.waiting {
		if slices.ContainsFunc(live, func(i pacht.WorkerInfo) bool {
			return slices.Contains(i.Queues, w.Queue) && slices.Contains(i.Kinds, w.Kind)
		}) {
			continue
		}
		alone = append(alone, w)
		lines = append(lines, fmt.Sprintf("queue %s, kind %s: %s, the oldest due %s", w.Queue, w.Kind, plural(w.Jobs, "job", "jobs"), ago(w.Since, v.now)))
		// A worker may just be starting.
		if f.Verdict = worse(f.Verdict, look); v.now.Sub(w.Since) > time.Minute {
			f.Verdict = bad
		}
	}
	all, due, _ := v.count(pacht.Pending)
	f.Answer = fmt.Sprintf("yes: %d pending, %d of them due", all, due)
	if len(alone) > 0 {
		f.Answer = fmt.Sprintf("no: %d pending, %d of them due", all, due)
	}
	f.shown = strings.Join(lines, "\n")
	f.Figures = map[string]any{"pending": all, "due": due, "unserved": alone}
	return f
}

func (v *vitals) parked() finding {
	parked, _, _ := v.count(pacht.Stuck)
	dead, _, _ := v.count(pacht.Dead)
	_, _, expired := v.count(pacht.Processing)
	breaks := int64(0)
	for _, b := range v.breaks {
		if b.Status == pacht.BreakPerson {
			breaks += b.Breaks
		}
	}
	f := finding{Key: "parked", Question: "Does anything wait for a person?", Verdict: good,
		Answer:  fmt.Sprintf("no: no job is parked, no break is with a person; %d Dead", dead),
		Figures: map[string]any{"parked": parked, "breaks": breaks, "dead": dead, "expired_now": expired}}
	if parked+breaks > 0 {
		f.Verdict, f.Answer = look, fmt.Sprintf(`yes: %d parked (see "pacht stuck"), %s with a person (see "pacht breaks list --status person"); %d Dead`,
			parked, plural(breaks, "break", "breaks"), dead)
	}
	return f
}

func (v *vitals) workersLive() finding {
	silent := 0
	for _, w := range v.workers {
		if w.Missed(v.now) {
			silent++
		}
	}
	live := len(v.live())
	f := finding{Key: "workers", Question: "Do the workers live?", Verdict: good,
		Answer:  fmt.Sprintf("%d running, %d silent (neither ended in order nor heard of)", live, silent),
		Figures: map[string]any{"running": live, "silent": silent}}
	switch {
	case len(v.workers) == 0:
		f.Verdict, f.Answer = unclear, "no worker has ever run"
	case silent > 0:
		f.Verdict = look
	}
	return f
}
