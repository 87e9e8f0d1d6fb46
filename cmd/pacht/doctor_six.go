package main

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/pacht-queue/pacht"
)

// enoughLeases is from how many closed leases on a kind's figures count.
const enoughLeases = 20

func (v *vitals) claimAtomic() finding {
	f := finding{Key: "claim_atomic", Question: "Is claiming one atomic statement?", Figures: map[string]any{
		"sql": v.claimSQL, "violations": v.broken("R1", "R2"),
	}}
	switch {
	case !oneStatement(v.claimSQL):
		f.Verdict, f.Answer = bad, "no: claiming takes more than one statement"
	case v.broken("R1", "R2") > 0:
		f.Verdict, f.Answer = bad, fmt.Sprintf("the statement is one, but the stored data has %s of R1 or R2", plural(int64(v.broken("R1", "R2")), "violation", "violations"))
	default:
		f.Verdict, f.Answer = good, "yes: one conditional UPDATE takes the row, counts the attempt and raises the token; it stands below"
	}
	return f
}

var updates = regexp.MustCompile(`(?i)\bUPDATE\b[^;]*\bSET\b`)

func oneStatement(sql string) bool {
	return !strings.Contains(strings.TrimSuffix(strings.TrimSpace(sql), ";"), ";") && updates.MatchString(sql)
}

func (v *vitals) ttlLonger() finding {
	f := finding{Key: "ttl_longer", Question: "Is the TTL longer than the longest operation seen?", Verdict: unclear}
	var lines []string
	for _, s := range v.stats {
		this, why := judgeTTL(s)
		f.Verdict = worse(f.Verdict, this)
		lines = append(lines, fmt.Sprintf("%-6s kind %s: p50 %s, p99 %s, longest %s; TTL %s; %d leases, %d expired, %d late%s",
			mark(this), s.Kind, short(s.P50), short(s.P99), short(s.Max), short(s.MinTTL), s.Leases, s.Expired, s.Late, why))
	}
	f.Figures = map[string]any{"kinds": list(v.stats)}
	f.shown = strings.Join(lines, "\n")
	switch f.Verdict {
	case good:
		f.Answer = "yes, or renewals carried it in time"
	case bad:
		f.Answer = "no: work outran its lease. Give the kind a longer TTL, or see why its renewals failed"
	default:
		f.Answer = fmt.Sprintf("only %s closed so far; a kind counts from %d on", plural(v.closed(), "lease was", "leases were"), enoughLeases)
	}
	return f
}

// judgeTTL looks at one kind. A lease that expired may be a crash, which is no operation; one
// that was settled late is an operation that outran its lease.
func judgeTTL(s pacht.LeaseStats) (verdict, string) {
	const expiredMost = 10 // per cent
	switch {
	case s.Late > 0:
		return bad, ": finished after the lease had run out"
	case s.Leases < enoughLeases:
		return unclear, ""
	case s.Expired*100 > s.Leases*expiredMost:
		return bad, fmt.Sprintf(": more than %d %% expire: the workers die, hang, or do not renew", expiredMost)
	case s.Max >= s.MinTTL && s.Renewed > 0:
		return good, ": renewals carried the longest"
	}
	return good, ""
}

// worse of two verdicts; any data goes before none.
func worse(a, b verdict) verdict {
	rank := map[verdict]int{unclear: 0, good: 1, look: 2, bad: 3}
	if rank[b] > rank[a] {
		return b
	}
	return a
}

func mark(v verdict) string {
	switch v {
	case bad:
		return "BAD"
	case unclear:
		return "few"
	}
	return string(v)
}

func (v *vitals) longRenew() finding {
	var long, renewed, heldRenewed, overdue, forgotten int64
	var lines []string
	for _, s := range v.stats {
		// Those that expired or came late had nobody to renew them at the end.
		long += s.LongerThanTTL
		renewed += s.Renewed
	}
	for _, j := range v.held {
		switch left := j.LeaseUntil.Sub(v.now); {
		case left < j.TTL/3:
			// A holder renews after a third of the TTL: it has missed one beat, and soon two. It
			// may have died a moment ago, and the next pass of a watcher closes its lease.
			overdue++
			if -left > v.watchPeriod()+watchPatience {
				forgotten++
			}
			if len(lines) < 10 {
				lines = append(lines, fmt.Sprintf("job %d, kind %s: lease ends %s, not renewed in time by %s", j.ID, j.Kind, ago(j.LeaseUntil, v.now), j.LeaseOwner))
			}
		case j.LeaseUntil.Sub(j.ClaimedAt) > j.TTL+time.Millisecond:
			heldRenewed++
		}
	}
	f := finding{Key: "long_renew", Question: "Do long attempts renew?", shown: strings.Join(lines, "\n"), Figures: map[string]any{
		"longer_than_ttl": long, "renewed": renewed, "held": len(v.held), "held_renewed": heldRenewed, "held_overdue": overdue,
	}}
	f.Answer = fmt.Sprintf("%s than their TTL, %d of them renewed to the end; held now: %d, renewed %d, overdue %d",
		plural(long, "lease was held longer", "leases were held longer"), renewed, len(v.held), heldRenewed, overdue)
	switch {
	case forgotten > 0:
		f.Verdict = bad
		f.Answer += fmt.Sprintf("; %s past %s, and no watcher closed it", plural(forgotten, "is", "are"), short(v.watchPeriod()+watchPatience))
	case overdue > 0:
		f.Verdict = look
		f.Answer += "; a worker has died or cannot renew, and a watcher closes what expires"
	case renewed > 0 || heldRenewed > 0:
		f.Verdict = good
	default:
		f.Verdict = unclear
		f.Answer += "; no lease was seen that had to be renewed, and was"
	}
	return f
}

const (
	// usualPeriod is a watcher's, if nobody says otherwise.
	usualPeriod = 30 * time.Second
	// watchPatience is how much longer than its period a watcher may take to close what expired.
	watchPatience = 30 * time.Second
)

// watchPeriod is from the last pass to the next, as the watcher itself has stored it.
func (v *vitals) watchPeriod() time.Duration {
	if v.watch.PassedAt.IsZero() {
		return usualPeriod
	}
	return max(v.watch.NextAt.Sub(v.watch.PassedAt), 0)
}

func (v *vitals) watcherRuns() finding {
	held, _, expired := v.count(pacht.Processing)
	busy := held > 0 || len(v.live()) > 0
	overdue := v.now.Sub(v.watch.NextAt)
	f := finding{Key: "watcher_runs", Question: "Does a watcher run, and when did it last?", Figures: map[string]any{
		"passed_at": v.watch.PassedAt, "passed_by": v.watch.PassedBy, "took_ns": v.watch.Took, "next_at": v.watch.NextAt, "expired_now": expired,
	}}
	// A pass that is due is made within the poll of a watcher, a second; ten are patience.
	const patience = 10 * time.Second
	switch {
	case v.watch.PassedAt.IsZero() && busy:
		f.Verdict, f.Answer = bad, `no watcher has ever made a pass, and there is work: run "pacht watch", or a worker without --no-watch`
		f.Figures["passed_at"], f.Figures["next_at"] = nil, nil
	case v.watch.PassedAt.IsZero():
		f.Verdict, f.Answer = unclear, "no watcher has ever made a pass, and nothing is held"
		f.Figures["passed_at"], f.Figures["next_at"] = nil, nil
	case overdue > patience && busy:
		f.Verdict, f.Answer = bad, fmt.Sprintf("no: the last pass was %s, by %s; the next was due %s", ago(v.watch.PassedAt, v.now), v.watch.PassedBy, ago(v.watch.NextAt, v.now))
	case overdue > patience:
		f.Verdict, f.Answer = unclear, fmt.Sprintf("not now, but no worker runs and nothing is held; the last pass was %s, by %s", ago(v.watch.PassedAt, v.now), v.watch.PassedBy)
	default:
		f.Verdict, f.Answer = good, fmt.Sprintf("yes: last %s, by %s, took %s; next %s; %d expired and not closed yet",
			ago(v.watch.PassedAt, v.now), v.watch.PassedBy, short(v.watch.Took), ago(v.watch.NextAt, v.now), expired)
	}
	return f
}

func (v *vitals) ownerRecorded() finding {
	var without, strangers int64
	for _, j := range v.held {
		known := false
		for _, w := range v.workers {
			known = known || w.Owner == j.LeaseOwner
		}
		switch {
		case j.LeaseOwner == "":
			without++
		case !known:
			strangers++
		}
	}
	f := finding{Key: "owner_recorded", Question: "Is the owner recorded on every held lease?", Figures: map[string]any{
		"held": len(v.held), "without_owner": without, "not_registered": strangers,
	}}
	read := ""
	if v.heldMore {
		read = fmt.Sprintf(" (the newest %d were read, and of the rest those that are expired)", page)
	}
	switch {
	case without > 0:
		f.Verdict, f.Answer = bad, fmt.Sprintf("no: %d of %d held leases have none%s", without, len(v.held), read)
	case len(v.held) == 0:
		f.Verdict, f.Answer = unclear, "nothing is held now; the table refuses a held lease without an owner"
	default:
		f.Verdict, f.Answer = good, fmt.Sprintf("yes: on all of %d%s; %d by owners that are not in the list of workers", len(v.held), read, strangers)
	}
	return f
}

func (v *vitals) attemptKept() finding {
	var uncounted int64
	for _, j := range v.held {
		if j.Attempt < 1 {
			uncounted++
		}
	}
	broken := v.broken("R4", "R5")
	f := finding{Key: "attempt_kept", Question: "Is the attempt counted, and kept?", Figures: map[string]any{
		"closed": v.closed(), "held": len(v.held), "held_uncounted": uncounted, "violations": broken,
	}}
	switch {
	case uncounted > 0 || broken > 0:
		f.Verdict, f.Answer = bad, fmt.Sprintf("no: %d held leases were not counted, %d violations of R4 or R5", uncounted, broken)
	case v.closed() == 0 && len(v.held) == 0:
		f.Verdict, f.Answer = unclear, "no lease was ever taken; the claim counts the attempt in its own statement"
	default:
		f.Verdict, f.Answer = good, fmt.Sprintf("yes: counted on each of %s held now, and kept for each of %s measured", plural(int64(len(v.held)), "lease", "leases"), plural(v.closed(), "closed one", "closed ones"))
	}
	return f
}
