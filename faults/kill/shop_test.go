package kill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/effect"
	"github.com/pacht-queue/pacht/examples/payments"
	"github.com/pacht-queue/pacht/examples/payments/psp"
	"github.com/pacht-queue/pacht/faults/lab"
	"github.com/pacht-queue/pacht/internal/database"
	"github.com/pacht-queue/pacht/money"
	"github.com/pacht-queue/pacht/reconcile"
	"github.com/pacht-queue/pacht/watch"
	"github.com/pacht-queue/pacht/worker"
)

// promises is what the provider's contract says.
var promises = payments.Promises{KeyLife: time.Hour, Consistency: 200 * time.Millisecond, MinLease: ttl / 2}

// shop is a worker with the handlers of the payments example, which knows nothing of a recorder. It
// is told all the same: by a middleware, and on the way to the provider, which refuses a call under a
// stale token as the recorder does.
type shop struct {
	payments.Provider
	pen   *lab.Pen
	owner string
}

// runShop is a role: see lab.FleetConfig.
func runShop(ctx context.Context, task []byte, ready func(any) error) (err error) {
	var order lab.WorkerTask
	if err := json.Unmarshal(task, &order); err != nil {
		return err
	}
	place, err := openShop(ctx, order.Database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, place.Close()) }()
	client := psp.NewClient(order.Extra, 10*time.Second)
	defer client.Close()
	s := &shop{Provider: client, pen: lab.NewPen(order.Recorder)}
	defer s.pen.Close()
	h, err := payments.NewHandlers(place.Book, s, place.Store, effect.New(place.Store), promises)
	if err != nil {
		return err
	}
	retry := worker.HandlerOptions{Retry: pacht.Fixed(50 * time.Millisecond)}
	w, err := worker.New(place.Store, worker.Config{
		Queues:     map[string]int{pacht.DefaultQueue: order.Slots},
		Handlers:   []worker.Handler{worker.HandleWith(retry, h.Charge), worker.HandleWith(retry, h.Receipt), worker.HandleWith(retry, h.Parked), worker.HandleWith(retry, h.Misfit)},
		Middleware: []worker.Middleware{s.recorded},
		Poll:       order.Poll, Grace: order.Grace, Unwind: order.Unwind, NoSweep: true,
		Watch:  watch.Config{Period: order.Watch, Poll: order.Watch / 4},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		return err
	}
	s.owner = w.Owner()
	if err := ready(lab.WorkerSaid{Owner: s.owner}); err != nil {
		return err
	}
	err = w.Run(ctx)
	lab.ExitUnfinished(err)
	return err
}

func openShop(ctx context.Context, url string) (*payments.Place, error) {
	at := payments.Address{Postgres: url, Connections: 4}
	if database.IsSQLite(url) {
		found, err := database.Locate(url)
		if err != nil {
			return nil, err
		}
		at = payments.Address{File: found.File}
	}
	place, err := payments.Open(ctx, at)
	if err == nil {
		place.Book.Queue = pacht.DefaultQueue
	}
	return place, err
}

type heldRef struct{}

// recorded tells the recorder of each attempt.
func (s *shop) recorded(next worker.HandlerFunc) worker.HandlerFunc {
	return func(ctx context.Context, job *pacht.Held) (err error) {
		if err := s.pen.Begin(job.Ref(), s.owner); err != nil {
			return err
		}
		how := "panicked"
		defer func() { err = errors.Join(err, s.pen.End(job.Ref(), s.owner, how)) }()
		err = next(context.WithValue(ctx, heldRef{}, job.Ref()), job)
		how = map[bool]string{true: "done", false: "failed"}[err == nil]
		return err
	}
}

// Charge implements payments.Provider.
func (s *shop) Charge(ctx context.Context, key string, o psp.Order) (psp.Charge, error) {
	if err := s.pen.Effect(ctx.Value(heldRef{}).(pacht.Ref), s.owner); err != nil {
		return psp.Charge{}, err
	}
	return s.Provider.Charge(ctx, key, o)
}

// S001, S011, S014, S100: the payments example under kills, freezes and stops, each attempt of each
// handler and each call of the provider written down by a process that is never killed. No lease is
// worked under by two, each attempt is accounted for, each payment is charged once. The short form has
// it on SQLite.
func TestPaymentsAreRecordedUnderKills(t *testing.T) {
	run := func(t *testing.T, url string) {
		t.Parallel()
		seed := lab.Seed(t)
		rec := lab.StartRecorder(t)
		provider, err := psp.Open(psp.Config{
			Ledger: filepath.Join(t.TempDir(), "provider.jsonl"), Seed: seed, Latency: 250 * time.Millisecond,
			FailRate: 0.03, LoseRate: 0.03, Silence: 400 * time.Millisecond,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = provider.Close() }) // its ledger was read by then
		server := httptest.NewServer(provider)
		t.Cleanup(server.Close)
		place, err := openShop(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := place.Close(); err != nil {
				t.Error(err)
			}
		})
		if err := place.Book.CreateTables(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := place.Store.SetQueue(t.Context(), pacht.DefaultQueue, pacht.QueueSettings{TTL: ttl, MaxCrashes: 100}, pacht.Act{By: "lab", Reason: "short leases"}); err != nil {
			t.Fatal(err)
		}
		fleet := lab.StartFleet(t, lab.FleetConfig{
			Database: url, Recorder: rec, Processes: 3, Slots: 6, Role: "shop", Extra: server.URL, Grace: 300 * time.Millisecond, Unwind: 500 * time.Millisecond,
		})
		n := lab.Scale(60, 300)
		all := make([]payments.Payment, n)
		for i := range all {
			all[i] = payments.Payment{ID: fmt.Sprintf("pay_%06d", i), Amount: money.Amount{Minor: 1000 + int64(i), Currency: "EUR"}}
		}
		if err := place.Book.CreateAll(t.Context(), all, pacht.MaxCrashes(100), pacht.MaxAttempts(1000)); err != nil {
			t.Fatal(err)
		}
		c := newChaos(t, fleet, rec, seed, time.Second, 10)
		c.torment(c.kill, c.freeze, c.terminate)
		least := []lab.Fact{lab.F("kills", lab.Scale(1, 3)), lab.F("freezes", lab.Scale(1, 3)), lab.F("stops", lab.Scale(1, 3))}
		lab.Await(t, 5*time.Minute, "half of the payments are through, and the faults are done", func() bool {
			return t.Failed() || rec.Count(lab.End) >= n && len(lab.Missing(c.facts(), least...)) == 0
		})
		c.stop()
		fleet.Revive()
		healed := heal(t, place, server.URL)
		fleet.Finish(time.Minute)
		fleet.Shutdown()

		client := psp.NewClient(server.URL, 10*time.Second)
		defer client.Close()
		there, err := client.Totals(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		a := lab.Audit(t, url, rec, lab.AuditOptions{Fleets: []*lab.Fleet{fleet}})
		facts := append(append(c.facts(), lab.F("payments", n), lab.F("healed", healed), lab.F("calls_repeated", there.Repeated)), a.Facts()...)
		lab.Report(t, "payments recorded", facts...)
		lab.Least(t, facts, append(least, lab.F("effects", n))...)
		if there.Charges != int64(n) || there.References != int64(n) || there.ChargedMore != 0 || there.Pending != 0 {
			t.Errorf("the provider has %+v, want each of %d payments once", there, n)
		}
		list, err := place.Book.Payments(t.Context(), "", n+1)
		if err != nil || len(list) != n {
			t.Fatalf("%d payments, %v", len(list), err)
		}
		for _, p := range list {
			if p.Status != payments.Succeeded {
				t.Errorf("%s is %s here", p.ID, p.Status)
			}
		}
	}
	if lab.Long() {
		lab.OnBoth(t, run)
		return
	}
	run(t, lab.Fresh(t, lab.FreshFile(t)))
}

// heal lets a reconciler look until nothing is left to do, and says how many it healed.
func heal(t *testing.T, place *payments.Place, providerURL string) (healed int) {
	t.Helper()
	client := psp.NewClient(providerURL, 10*time.Second)
	defer client.Close()
	effects := effect.New(place.Store)
	if _, err := payments.NewHandlers(place.Book, client, place.Store, effects, promises); err != nil {
		t.Fatal(err)
	}
	policies := map[reconcile.Class]reconcile.Policy{}
	for class, policy := range reconcile.DefaultPolicies() {
		policy.Base, policy.Cap, policy.MaxAge = 200*time.Millisecond, time.Second, time.Minute
		policies[class] = policy
	}
	r, err := reconcile.New(reconcile.Config{
		Store: place.Store, Ours: payments.Ours{Book: place.Book}, Theirs: payments.Theirs{Provider: client}, Effects: effects,
		Policies: policies, Grace: time.Second, Rate: 1000, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	lab.Await(t, 2*time.Minute, "nothing is left for anybody to do", func() bool {
		report, err := r.Pass(t.Context(), reconcile.LanePending, false)
		if err != nil {
			t.Logf("a pass: %v", err) // and the next one comes
		}
		healed += report.Healed
		tally, err := place.Book.Tally(t.Context())
		return err == nil && tally.Unfinished() == 0
	})
	return healed
}
