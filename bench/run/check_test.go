package run

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A benchmark that does not see a job that ran twice, or never, is none.
func TestCheckSeesWhatRanTwiceOrNeverOverAllProcesses(t *testing.T) {
	for _, c := range []struct {
		counts [][]byte
		want   string
	}{
		{[][]byte{{1, 1, 1, 1}}, ""},
		{[][]byte{{1, 0, 1, 0}, {0, 1, 0, 1}}, ""},
		{[][]byte{{1, 0, 1, 1}}, "1 never ran and 0 ran more than once"},
		{[][]byte{{1, 0, 1, 0}, {0, 1, 1, 1}}, "0 never ran and 1 ran more than once"},
		{[][]byte{{1, 1, 1}}, "3 counts, want 4"},
	} {
		d := &database{out: filepath.Join(t.TempDir(), "out")}
		team := &team{d: d, jobs: 4}
		for i, counts := range c.counts {
			team.members = append(team.members, &process{})
			if err := os.WriteFile(team.out(i), counts, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		err := team.check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.counts, err, c.want)
		}
	}
}

func TestQuantilesAreValuesThatWereMeasured(t *testing.T) {
	all := make([]float64, 400)
	for i := range all {
		all[i] = float64(i + 1)
	}
	if p50, p99 := quantile(all, 50), quantile(all, 99); p50 != 200 || p99 != 396 {
		t.Errorf("p50 %v, p99 %v of 1 to 400", p50, p99)
	}
	if one := quantile([]float64{7}, 99); one != 7 {
		t.Errorf("p99 of a single value: %v", one)
	}
}

func TestEverythingIsEstimatedAtLessThanFortyMinutes(t *testing.T) {
	for _, s := range []string{"drain", "snapshot"} {
		if Estimate(Config{Rounds: 3, Jobs: 100_000, Scenarios: []string{s}}) <= 0 {
			t.Errorf("no estimate for %s", s)
		}
	}
	if minutes := Estimate(Config{Rounds: 3, Jobs: 100_000}); minutes > 40 {
		t.Errorf("everything takes %s minutes", fmt.Sprint(minutes))
	}
}
