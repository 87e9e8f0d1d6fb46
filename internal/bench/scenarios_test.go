package bench

import (
	"strings"
	"testing"
	"time"
)

func TestEnqueueStoresWhatItCounts(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		e := Enqueue{Singles: 20, Clients: 4, Jobs: 1500, ArgsBytes: 100}
		p := open(t, Where{URL: url, Connections: 4})
		res, err := e.Run(t.Context(), p)
		if err != nil || res.Single.Jobs != 20 || res.Bulk.Jobs != 1500 || res.PeakRSS == nil {
			t.Fatalf("%+v, %v", res, err)
		}
		var stored int64
		if err := p.tables.row(t.Context(), p.sql.Unfinished, nil, &stored); err != nil || stored != 1520 {
			t.Errorf("%d jobs are stored, %v", stored, err)
		}
		jobs := noops(7, 8, 100)
		for j := range jobs {
			if len(j.Args) != 100 || argsOf(j.Args).N != 7 {
				t.Errorf("args of 100 bytes: %d, %s", len(j.Args), j.Args)
			}
		}
	})
}

func TestPickupMeasuresEachJob(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		p := open(t, Where{URL: url})
		res, err := Pickup{Jobs: 10, Every: time.Millisecond, Idle: 100 * time.Millisecond, ArgsBytes: 50}.Run(t.Context(), p)
		if woken := strings.Contains(res.facts, "woken by notices"); err == nil && woken != p.onPostgres() {
			t.Errorf("on PostgreSQL %v: %s", p.onPostgres(), res.facts)
		}
		if err != nil || !res.ExactlyOnce || res.Jobs != 10 || res.P50 > res.P90 || res.P90 > res.P99 || res.P99 > res.Max || res.Max <= 0 {
			t.Errorf("%+v, %v", res, err)
		}
	})
}

// With retention the tables end smaller than what ran, and that is no fault.
func TestSteadyStateTakesInAndOutWhatItSays(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		s := Steady{Rate: 100, For: 6 * time.Second, Interval: 2000 * time.Millisecond, Retention: time.Second, Concurrency: 20, ArgsBytes: 50}
		told := 0
		s.OnInterval = func(SteadyInterval) { told++ }
		res, err := s.Run(t.Context(), open(t, Where{URL: url}))
		if err != nil || !res.ExactlyOnce || len(res.Intervals) != 3 || told != 3 {
			t.Fatalf("%+v, %v", res, err)
		}
		in, pruned := 0, 0
		for _, i := range res.Intervals {
			in, pruned = in+i.Enqueued, pruned+i.Pruned
			size := i.File
			if size == nil {
				size = i.Leases
			}
			if size == nil || *size <= 0 {
				t.Errorf("no size in %+v", i)
			}
		}
		if in == 0 || in > res.Jobs || pruned == 0 || res.P99Ratio == nil {
			t.Errorf("in %d of %d, pruned %d: %+v", in, res.Jobs, pruned, res)
		}
	})
}

func TestHeartbeatCountsTheRenewals(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		h := Heartbeat{Leases: 30, For: time.Second, TTL: 1500 * time.Millisecond, Pending: 10}
		p := open(t, Where{URL: url})
		h.Snapshot = p.onPostgres()
		res, err := h.Run(t.Context(), p)
		if err != nil || !res.KeptAll {
			t.Fatalf("%+v, %v", res, err)
		}
		if !p.onPostgres() {
			return
		}
		// One or two renewals of each within the time, and one more while it ends.
		if res.Renewals == nil || *res.Renewals < 30 || *res.Renewals > 120 || res.HOT == nil || *res.HOT < 0.1 || res.WAL == nil {
			t.Errorf("%d renewals, HOT %s, %s bytes of WAL each", *res.Renewals, number(res.HOT, 2), number(res.WAL, 0))
		}
	})
}

func TestQuantilesAreByTheNearestRank(t *testing.T) {
	var all []time.Duration
	for n := range 200 {
		all = append(all, time.Duration(n+1))
	}
	for q, want := range map[float64]time.Duration{0.5: 100, 0.9: 180, 0.99: 198, 1: 200} {
		if got := quantile(all, q); got != want {
			t.Errorf("quantile %g: %d, want %d", q, got, want)
		}
	}
	if quantile(all[:1], 0.5) != 1 || quantile(nil, 0.5) != 0 {
		t.Error("of one, or of none")
	}
}

func TestFlatnessComparesLastThirdWithFirst(t *testing.T) {
	f := func(v float64) *float64 { return &v }
	res := SteadyResult{}
	for _, p99 := range []float64{9, 11, 50, 50, 50, 19, 21} {
		res.Intervals = append(res.Intervals, SteadyInterval{P99: p99, Claim: f(p99 / 10)})
	}
	res.flatness()
	if res.P99Ratio == nil || *res.P99Ratio != 2 || *res.ClaimRatio != 2 || res.LeasesRatio != nil {
		t.Errorf("%+v", res)
	}
	short := SteadyResult{Intervals: res.Intervals[:2]}
	if short.flatness(); short.P99Ratio != nil {
		t.Error("two intervals have no thirds")
	}
}
