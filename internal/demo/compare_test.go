package demo

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/examples/payments"
	"github.com/pacht-queue/pacht/examples/payments/psp"
	"github.com/pacht-queue/pacht/money"
	"github.com/pacht-queue/pacht/reconcile"
)

// A payment that nobody charged is lost, and a charge that belongs to no payment is seen.
func TestUnpaidPaymentsAndUnknownChargesAreCounted(t *testing.T) {
	p, err := openPlace(t.Context(), payments.Address{File: filepath.Join(t.TempDir(), "demo.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := p.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	five := money.Amount{Minor: 500, Currency: "EUR"}
	for i := range 2 {
		if _, err := p.Book.Create(t.Context(), payments.Payment{ID: paymentID(i), Amount: five}); err != nil {
			t.Fatal(err)
		}
	}
	server, err := psp.Open(psp.Config{Ledger: filepath.Join(t.TempDir(), "provider.jsonl")})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	url, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- server.Serve(ctx, func(u string) error { url <- u; return nil })
	}()
	client := psp.NewClient(<-url, time.Minute)
	defer func() {
		client.Close()
		stop()
		if err := errors.Join(<-ended, server.Close()); err != nil {
			t.Error(err)
		}
	}()
	// Charged, and never written down here; and somebody else's charge.
	for _, ref := range []string{paymentID(0), "stranger"} {
		if _, err := client.Charge(t.Context(), ref, psp.Order{Reference: ref, Amount: five}); err != nil {
			t.Fatal(err)
		}
	}
	// A third was ordered and never created.
	r := &run{cfg: Config{Payments: 3}, place: p, provider: client}
	b, err := r.readBooks(t.Context())
	if err != nil || b.rows != 2 || b.paid != 0 || b.agree != 0 || b.lost != 3 || b.strangers != 1 || len(b.unequal) != 1 {
		t.Errorf("%+v, %v", b, err)
	}
}

// A difference is excused by an open break of its own class alone, which is with a person.
func TestOnlyAnOpenBreakOfTheRightClassExcusesADifference(t *testing.T) {
	eur := func(n int64) money.Amount { return money.Amount{Minor: n, Currency: "EUR"} }
	ours := payments.Payment{ID: "p", Amount: eur(500), Status: payments.Pending}
	wrong := []psp.Charge{{ID: "a", Status: psp.Succeeded, Amount: eur(400)}}
	right := []psp.Charge{{ID: "a", Status: psp.Succeeded, Amount: eur(500)}}
	paid := payments.Payment{ID: "p", Amount: eur(500), Status: payments.Succeeded, ChargeID: "a"}
	person := func(class reconcile.Class) []pacht.Break {
		return []pacht.Break{{Reference: "p", Class: string(class), Status: pacht.BreakPerson}}
	}
	waiting := person(reconcile.AmountDiffers)
	waiting[0].Status = pacht.BreakWaiting
	for name, c := range map[string]struct {
		p           payments.Payment
		there       []psp.Charge
		breaks      []pacht.Break
		agree, open int64
	}{
		"alike":                {paid, right, nil, 1, 0},
		"wrong, and listed":    {ours, wrong, person(reconcile.AmountDiffers), 0, 1},
		"wrong, not listed":    {ours, wrong, nil, 0, 0},
		"wrong, other class":   {ours, wrong, person(reconcile.UnknownThere), 0, 0},
		"wrong, not with one":  {ours, wrong, waiting, 0, 0},
		"should be healed":     {ours, right, person(reconcile.PaidThere), 0, 0},
		"twice, and listed":    {paid, append(right, right...), person(reconcile.ChargedTwice), 0, 1},
		"paid by another":      {paid, []psp.Charge{{ID: "b", Status: psp.Succeeded, Amount: eur(500)}}, nil, 0, 0},
		"refunded there only":  {paid, []psp.Charge{{ID: "a", Status: psp.Succeeded, Amount: eur(500), Refunded: 1}}, nil, 0, 0},
		"taken back in part":   {payments.Payment{ID: "p", Amount: eur(500), Status: payments.ChargedBack, ChargeID: "a"}, []psp.Charge{{ID: "a", Status: psp.Succeeded, Amount: eur(500), ChargedBack: 200}}, nil, 0, 0},
		"failed, and refused":  {payments.Payment{ID: "p", Status: payments.Failed}, []psp.Charge{{ID: "a", Status: psp.Failed}}, nil, 1, 0},
		"failed, nobody asked": {payments.Payment{ID: "p", Status: payments.Failed}, nil, nil, 0, 0},
		"pending, none there":  {ours, nil, person(reconcile.MissingThere), 0, 0},
	} {
		b := books{breaks: map[string][]pacht.Break{"p": c.breaks}, excepted: map[string]sums{}}
		b.weigh(c.p, c.there)
		if b.agree != c.agree || b.open != c.open {
			t.Errorf("%s: %d alike, %d open", name, b.agree, b.open)
		}
	}
}

func TestBarFitsItsTerminalAndPlainLinesHaveNoControlCharacters(t *testing.T) {
	tally := payments.Tally{Pending: 99_000, Processing: 24, Completed: 1000, Expired: 120, RefusedLate: 17}
	for _, width := range []int{20, 80, 200} {
		var out bytes.Buffer
		s := newScreen(&out, width)
		s.progress(100_000, tally)
		s.event("killed %s", "worker 1")
		s.endProgress()
		for line := range strings.FieldsFuncSeq(out.String(), func(r rune) bool { return r == '\r' || r == '\n' }) {
			if line = strings.TrimPrefix(line, "\x1b[K"); len(line) >= width && !strings.Contains(line, "killed") {
				t.Errorf("width %d: %d characters: %q", width, len(line), line)
			}
		}
		if width >= 80 && !strings.Contains(out.String(), "refused 17") {
			t.Errorf("width %d: %q", width, out.String())
		}
	}
	var out bytes.Buffer
	s := newScreen(&out, 0)
	s.progress(100_000, tally)
	s.progress(100_000, tally) // nothing new, nothing said
	s.event("killed %s", "worker 1")
	s.endProgress()
	if strings.Count(out.String(), "\n") != 2 || strings.ContainsAny(out.String(), "\r\x1b") || !strings.Contains(out.String(), "pending 99,000  processing 24  completed 1,000  expired leases 120  late writes refused 17") {
		t.Errorf("plain: %q", out.String())
	}
}

func TestMoneyAndNumbersAreWrittenWithoutFloats(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 7: "7", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := thousands(n); got != want {
			t.Errorf("thousands(%d) = %s", n, got)
		}
	}
	for n, want := range map[int64]string{5: "0.05", 1999: "19.99", 100_000_000_05: "100,000,000.05"} {
		if got := cents(n); got != want {
			t.Errorf("cents(%d) = %s", n, got)
		}
	}
}
