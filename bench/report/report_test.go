package report

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pacht-queue/pacht/bench/result"
	"github.com/pacht-queue/pacht/bench/run"
)

func TestNumbersHaveThreeDigitsThatCount(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.1234: "0.12", 1.234: "1.23", 12.34: "12.3", 123.4: "123", 1234: "1,230", 48_612: "48,600", 1_234_567: "1,230,000", -1.5: "-1.50",
	} {
		if got := number(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}

func TestMedianLeavesFailedRunsOut(t *testing.T) {
	f := sample()
	s := f.Stat("drain", run.Small, "pacht", run.JobsPerSecond)
	if s.Median != 200 || s.Min != 100 || s.Max != 300 || s.N != 3 {
		t.Errorf("%+v", s)
	}
	if s := f.Stat("drain", run.Small, "goqite", run.JobsPerSecond); s.N != 0 {
		t.Errorf("a failed run counts: %+v", s)
	}
}

// A failed run is never a gap without a word.
func TestPageSaysWhatFailedAndItsChartsAreXML(t *testing.T) {
	name := filepath.Join(t.TempDir(), "page.md")
	if err := Write(sample(), name); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"goqite, 200 B (round 1): 3 ran more than once", "200 (100..300)", "(page/drain-wal.svg)"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	charts, err := filepath.Glob(filepath.Join(filepath.Dir(name), "page", "*.svg"))
	if err != nil || len(charts) < 4 {
		t.Fatalf("charts %q, %v", charts, err)
	}
	for _, chart := range charts {
		f, err := os.Open(chart)
		if err != nil {
			t.Fatal(err)
		}
		decoder := xml.NewDecoder(f)
		for err == nil {
			_, err = decoder.Token()
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", chart, err)
		}
		f.Close()
	}
}

func sample() *result.File {
	f := &result.File{Peers: []result.Peer{{Name: "pacht", Title: "Pacht"}, {Name: "goqite", Title: "goqite"}}}
	for i, rate := range []float64{300, 100, 200} {
		values := map[string]float64{run.JobsPerSecond: rate, run.ServerCPU: 2, run.ClientCPU: 1, run.WAL: 450}
		f.Runs = append(f.Runs,
			result.Run{Scenario: "drain", Variant: run.Small, Peer: "pacht", Round: i + 1, Jobs: 1000, Values: values},
			result.Run{Scenario: "snapshot", Variant: run.FreeVariant(i + 1), Peer: "pacht", Jobs: 1000, Values: values},
			result.Run{Scenario: "snapshot", Variant: run.HeldVariant(i + 1), Peer: "pacht", Jobs: 1000, Values: values},
			result.Run{Scenario: "pickup", Peer: "pacht", Jobs: 400, Values: map[string]float64{run.PickupP50: -0.2, run.PickupP99: 3}})
	}
	f.Runs = append(f.Runs, result.Run{Scenario: "drain", Variant: run.Small, Peer: "goqite", Round: 1, Jobs: 1000, Error: "3 ran more than once\nand so on"})
	return f
}

// A sum of two may be nearer than what was added: a label must not be moved to its own place for ever.
func TestLabelsFindAPlaceWhateverIsRounded(t *testing.T) {
	for i := range 10_000 {
		first := 244 + float64(i)/997 // sums beyond 256 have a bit less
		if at := free([]float64{first}, first-1); at < first+13.9 {
			t.Fatalf("%v stands on %v", at, first)
		}
	}
}
