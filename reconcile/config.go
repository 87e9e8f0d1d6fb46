package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/effect"
)

// Store is what a Reconciler needs of a pacht.Store.
type Store interface {
	pacht.BreakLog
	pacht.EffectLog
	Enqueue(ctx context.Context, jobs []pacht.NewJob) ([]pacht.Enqueued, error)
	Now(ctx context.Context) (time.Time, error)
	Job(ctx context.Context, id pacht.ID) (pacht.JobInfo, error)
	Jobs(ctx context.Context, f pacht.Filter) ([]pacht.JobInfo, error)
	Resolve(ctx context.Context, ref pacht.Ref, res pacht.Resolution, act pacht.Act) error
	Retry(ctx context.Context, id pacht.ID, act pacht.Act) error
}

// Config is a reconciler's configuration. Store, Ours and Theirs must be given; the zero value
// of everything else works. All processes should have the same.
type Config struct {
	Store  Store
	Ours   Ours
	Theirs Theirs // if it is a Lister too, its list is walked through as well
	// Effects asks the probers of effects whose outcome nobody knows. Where there is no prober, or
	// Effects is nil, what Theirs says of an effect's reference counts, once ours agrees with it.
	Effects *effect.Effects

	// Policies says what to do about a class, instead of its default: see DefaultPolicies.
	Policies map[Class]Policy
	// Grace is how long a record of ours may be pending, and how young one of theirs may be
	// that we have not got, before it is looked at: 0 = 15m, 1s to 30 days.
	Grace time.Duration
	// Period is how often effects, parked jobs, pending records and breaks are looked at:
	// 0 = 1m, 100ms to 24h. One that is asked again waits longer the older its break is, up to
	// its policy's Cap, and is never given up before it is resolved or with a person.
	Period time.Duration
	// SlowPeriod is how often records that may still be reversed are looked at, and breaks that
	// are with a person: 0 = 6h, Period to 30 days.
	SlowPeriod time.Duration
	// ListPeriod is how often the provider's list is walked through: 0 = 1h, Period to 30 days.
	// Window is how far back it goes, which must be longer than all reconcilers may ever be
	// off: 0 = 7 days, ListPeriod to 10 years.
	ListPeriod, Window time.Duration

	// Rate is how many look-ups a second this process makes at most: 0 = 10, 0.01 to 10,000.
	Rate float64
	// Parallel is how many references are looked at at once: 0 = 4, 1 to 64.
	Parallel int
	// Timeout bounds each call of Ours and Theirs: 0 = 30s, 10ms to 10m. One that comes to
	// its end is inconclusive.
	Timeout time.Duration
	// Queue is where passes are enqueued; "" = pacht.DefaultQueue.
	Queue string
	// By is who decides, in the tables of decisions and acts; "" = "reconciler".
	By string
	// Logger is told of what went wrong; nil = slog.Default().
	Logger *slog.Logger
}

// Reconciler compares our records with the provider's and heals ours. It holds no state of its
// own but the rate limit.
type Reconciler struct {
	cfg    Config
	lister Lister // nil: there is none
	rate   *limiter
}

// New checks a configuration and makes a reconciler of it.
func New(cfg Config) (*Reconciler, error) {
	for _, each := range []struct {
		field string
		given bool
	}{{"store", cfg.Store != nil}, {"ours", cfg.Ours != nil}, {"theirs", cfg.Theirs != nil}} {
		if !each.given {
			return nil, &pacht.InvalidError{Field: "reconcile " + each.field, Value: "nil", Bound: "a value"}
		}
	}
	if err := cfg.checkTimes(); err != nil {
		return nil, err
	}
	if err := cfg.checkNumbers(); err != nil {
		return nil, err
	}
	policies, err := withDefaults(cfg.Policies)
	if err != nil {
		return nil, err
	}
	cfg.Policies = policies
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	r := &Reconciler{cfg: cfg, rate: newLimiter(cfg.Rate)}
	r.lister, _ = cfg.Theirs.(Lister)
	return r, nil
}

const (
	day  = 24 * time.Hour
	year = 365 * day
)

// checkTimes fills in and checks the durations, in an order in which each bound is known.
func (c *Config) checkTimes() error {
	for _, each := range []struct {
		field       string
		value       *time.Duration
		usual       time.Duration
		least, most time.Duration
	}{
		{"grace", &c.Grace, 15 * time.Minute, time.Second, 30 * day},
		{"period", &c.Period, time.Minute, 100 * time.Millisecond, day},
		{"slow period", &c.SlowPeriod, 6 * time.Hour, 0, 30 * day},
		{"list period", &c.ListPeriod, time.Hour, 0, 30 * day},
		{"window", &c.Window, 7 * day, 0, 10 * year},
		{"timeout", &c.Timeout, 30 * time.Second, 10 * time.Millisecond, 10 * time.Minute},
	} {
		bound := ""
		switch each.field {
		case "slow period", "list period":
			each.least, bound = c.Period, " (the period)"
		case "window":
			each.least, bound = c.ListPeriod, " (the list period)"
		}
		if *each.value == 0 {
			*each.value = max(each.usual, each.least)
		}
		if *each.value < each.least || *each.value > each.most {
			return &pacht.InvalidError{Field: "reconcile " + each.field, Value: each.value.String(),
				Bound: fmt.Sprintf("%s%s to %s", each.least, bound, each.most)}
		}
	}
	return nil
}

func (c *Config) checkNumbers() error {
	if c.Rate == 0 {
		c.Rate = 10
	}
	if !(c.Rate >= 0.01 && c.Rate <= 10000) { // so that no number at all is refused too
		return &pacht.InvalidError{Field: "reconcile rate", Value: strconv.FormatFloat(c.Rate, 'g', -1, 64), Bound: "0.01 to 10000 look-ups a second"}
	}
	if c.Parallel == 0 {
		c.Parallel = 4
	}
	if c.Parallel < 1 || c.Parallel > 64 {
		return &pacht.InvalidError{Field: "reconcile parallel", Value: strconv.Itoa(c.Parallel), Bound: "1 to 64"}
	}
	if c.Queue == "" {
		c.Queue = pacht.DefaultQueue
	}
	if err := pacht.ValidName("queue", c.Queue); err != nil {
		return err
	}
	if c.By == "" {
		c.By = "reconciler"
	}
	return pacht.Act{By: c.By, Reason: "to reconcile"}.Validate()
}
