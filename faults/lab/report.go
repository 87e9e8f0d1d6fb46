package lab

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// Fact is one figure of a run.
type Fact struct {
	Name  string
	Value any
}

// F makes a Fact.
func F(name string, value any) Fact { return Fact{name, value} }

// Least fails the test if one of these figures is smaller than it must be, or is not among the facts:
// a fault that did not happen proves nothing.
func Least(t testing.TB, facts []Fact, least ...Fact) {
	t.Helper()
	for _, what := range Missing(facts, least...) {
		t.Errorf("%s: too little happened", what)
	}
}

// Missing is what these figures fall short of.
func Missing(facts []Fact, least ...Fact) (missing []string) {
	for _, want := range least {
		got := 0
		for _, f := range facts {
			if f.Name == want.Name {
				got = f.Value.(int)
			}
		}
		if got < want.Value.(int) {
			missing = append(missing, fmt.Sprintf("%s=%d, want %d at least", want.Name, got, want.Value))
		}
	}
	return missing
}

// Report logs one line with what a run found, and appends it as JSON to the file that
// PACHT_FAULTS_OUT names.
func Report(t testing.TB, name string, facts ...Fact) {
	t.Helper()
	var line strings.Builder
	values := map[string]any{"test": t.Name(), "name": name, "long": Long()}
	for _, f := range facts {
		fmt.Fprintf(&line, " %s=%v", f.Name, f.Value)
		values[f.Name] = f.Value
	}
	t.Logf("%s:%s", name, line.String())
	out := os.Getenv("PACHT_FAULTS_OUT")
	if out == "" {
		return
	}
	text, err := json.Marshal(values)
	if err != nil {
		t.Fatalf("report %s: %v", name, err)
	}
	file, err := os.OpenFile(out, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatalf("report %s: %v", name, err)
	}
	defer file.Close()
	if _, err := file.Write(append(text, '\n')); err != nil { // in one call: others append too
		t.Fatalf("report %s: %v", name, err)
	}
}
