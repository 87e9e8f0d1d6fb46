package demo

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pacht-queue/pacht/examples/payments"
	"github.com/pacht-queue/pacht/internal/clock"
)

// screen shows a run to a person: on a terminal one line with a bar that is written again and
// again, and what happens above it; elsewhere plain lines.
type screen struct {
	mu    sync.Mutex
	out   io.Writer
	width int // of the terminal; 0 = none
	start clock.Instant
	bar   string // what stands on the terminal's last line now
	said  clock.Instant
	plain string // the last plain line, without its time
}

func newScreen(out io.Writer, width int) *screen {
	if out == nil {
		out = io.Discard
	}
	return &screen{out: out, width: width, start: clock.Now()}
}

func (s *screen) introduce(cfg Config, at payments.Address) {
	database := "a fresh SQLite file, " + at.File
	switch {
	case at.Postgres != "":
		database = "PostgreSQL, in a schema of its own, " + at.Schema
	}
	fmt.Fprintf(s.out, `%s payments, each created in one transaction with the job that charges it.
  database   %s
  provider   simulated, over HTTP in a process of its own, with its own ledger; it honours idempotency
             keys, is slow, fails 3 %% of the calls before the charge and loses 3 %% of the answers after it;
             and one payment in four meets with a scenario: declined, time-outs before and after the
             charge, 429, forgotten keys, late look-ups, webhooks lost, late, twice and out of order,
             wrong amounts, chargebacks, a list that shifts
  workers    %d processes, %d jobs at once each, leases of %s that are renewed while the work goes on
  crashes    a job whose worker crashed asks the provider before it would call again; what nobody knows
             is parked, and healed by the reconciler, which is a job of the same workers
  chaos      at least %d workers killed (SIGKILL) and %d stopped past their lease and woken (SIGSTOP,
             SIGCONT), all while they hold jobs; till then the provider keeps %s answers back
  seed       %d

`, thousands(int64(cfg.Payments)), database, workers, slots, ttl, minKills, minPauses, keptBack(cfg.Payments), cfg.Seed)
	if cfg.IgnoreKeys {
		fmt.Fprint(s.out, "  sabotage   the provider IGNORES idempotency keys and finds nothing: it will charge twice\n\n")
	}
}

func keptBack(payments int) string {
	if payments <= reserve {
		return "all"
	}
	return fmt.Sprintf("its last %d", reserve)
}

// event tells of one thing that happened.
func (s *screen) event(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	bar := s.bar
	s.clear()
	fmt.Fprintf(s.out, "%s  %s\n", s.at(), fmt.Sprintf(format, args...))
	s.draw(bar)
}

// progress shows how far the run has come: plain lines at most each second, and only if
// something has changed.
func (s *screen) progress(total int, t payments.Tally) {
	const long = "pending %s  processing %s  completed %s  expired leases %s  late writes refused %s"
	const short = "pending %s processing %s completed %s expired %s refused %s"
	counts := func(format string) string {
		return fmt.Sprintf(format, thousands(t.Pending), thousands(t.Processing), thousands(t.Completed), thousands(t.Expired), thousands(t.RefusedLate))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.width > 0 {
		const cells = 8
		full := int(t.Completed * cells / int64(total))
		bar := "[" + strings.Repeat("#", full) + strings.Repeat("-", cells-full) + "] "
		said := s.at() + "  " + bar + counts(long)
		if len(said) >= s.width {
			said = bar + counts(short)
		}
		s.clear()
		s.draw(said)
		return
	}
	if said := counts(long); said != s.plain && (s.plain == "" || s.said.Elapsed() >= time.Second) {
		s.plain, s.said = said, clock.Now()
		fmt.Fprintf(s.out, "%s  %s\n", s.at(), said)
	}
}

// endProgress leaves the bar as it stands.
func (s *screen) endProgress() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bar != "" {
		s.bar = ""
		fmt.Fprintln(s.out)
	}
}

func (s *screen) at() string { return fmt.Sprintf("%5.1fs", s.start.Elapsed().Seconds()) }

// clear takes the bar off; the caller holds mu.
func (s *screen) clear() {
	if s.bar != "" {
		fmt.Fprint(s.out, "\r\x1b[K")
		s.bar = ""
	}
}

// draw puts a bar on the last line, cut so that it never wraps.
func (s *screen) draw(bar string) {
	if bar != "" {
		s.bar = bar[:min(len(bar), s.width-1)]
		fmt.Fprint(s.out, s.bar)
	}
}

// table is the end: what our database says beside what the provider's ledger says.
func (s *screen) table(r Result, b books, violations int) {
	line := func(name, ours, theirs string) { fmt.Fprintf(s.out, "  %-28s %16s %20s\n", name, ours, theirs) }
	number := func(name string, n int64) { line(name, thousands(n), "") }
	fmt.Fprintln(s.out)
	line("", "our database", "provider's ledger")
	ours, theirs := b.ours["EUR"], sums{b.provider.Charged["EUR"], b.provider.Refunded["EUR"], b.provider.ChargedBack["EUR"]}
	line("payments", thousands(b.rows), "")
	line("paid", thousands(b.paid), thousands(b.provider.References))
	line("charged, EUR", cents(ours.charged), cents(theirs.charged))
	line("refunded, EUR", cents(ours.refunded), cents(theirs.refunded))
	line("charged back, EUR", cents(ours.chargedBack), cents(theirs.chargedBack))
	line("of open breaks, EUR", "", cents(b.excepted["EUR"].net()))
	line("alike on both sides", thousands(r.Completed), "")
	number("unknown outcomes", r.Unknown)
	number("healed", r.Healed)
	number("breaks open, for a person", r.BreaksOpen)
	number("lost", r.Lost)
	line("charged twice", "", thousands(r.DoubleCharged))
	line("repeated calls", "", thousands(r.RepeatedCalls))
	number("attempts", r.Attempts)
	number("expired leases", r.Expired)
	number("late writes refused", r.RefusedLate)
	number("broken rules", int64(violations))
	number("workers killed", int64(r.Kills))
	number("workers paused", int64(r.Pauses))
	line("seconds", strconv.FormatFloat(r.Seconds, 'f', 1, 64), "")
	fmt.Fprint(s.out, `
  payments           the provider has charged fewer: some were declined, and a declined payment is alike
                     on both sides if nothing was charged there
  healed             all that reconcilers put right, those of the workers on the way and the one at the end
  repeated calls     one payment asked for again under its key, which the provider took for the same charge

`)
	fmt.Fprintln(s.out, verdict(r, b, violations))
}

func verdict(r Result, b books, violations int) string {
	switch {
	case r.OK:
		return fmt.Sprintf("OK: every payment was charged exactly once or not at all, and both ledgers are equal to the cent,\nbut for %s listed for a person; through %d kills and %d pauses.", many(r.BreaksOpen, "break"), r.Kills, r.Pauses)
	case r.Lost > 0 || r.DoubleCharged > 0 || b.strangers > 0:
		return fmt.Sprintf("FAILED: %s payments lost, %s charged more than once, %s charged that we do not know.",
			thousands(r.Lost), thousands(r.DoubleCharged), thousands(b.strangers))
	case violations > 0:
		return "FAILED: the stored data breaks rules of the lease; see above."
	case b.parked > 0:
		return fmt.Sprintf("FAILED: %s jobs are set aside, and no open break says so.", thousands(b.parked))
	case !r.LedgerEqual:
		return "FAILED: the ledgers differ; see above."
	case r.Completed+b.open != r.Payments || r.BreaksOpen != b.open:
		return fmt.Sprintf("FAILED: %s of %s payments are alike on both sides, %s of %s open breaks are right.",
			thousands(r.Completed), thousands(r.Payments), thousands(b.open), thousands(r.BreaksOpen))
	}
	return fmt.Sprintf("FAILED: too little was disturbed to prove anything; want %d kills, %d pauses, an expired lease and a refused late write.", minKills, minPauses)
}

// many is a number of things: "1 break", "2 breaks".
func many(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return thousands(n) + " " + one + "s"
}

func thousands(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// cents writes minor units of a currency with two digits, without a float.
func cents(minor int64) string { return fmt.Sprintf("%s.%02d", thousands(minor/100), minor%100) }
