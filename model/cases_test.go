package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A mutant without a check, and an invariant that nothing breaks, would prove nothing.
func TestEveryMutantAndEveryInvariantHasItsCheck(t *testing.T) {
	_, text, _ := strings.Cut(string(model), "#define is(m)")
	mutants, _, _ := strings.Cut(text, "#define TTL")
	var defined []string
	for _, m := range regexp.MustCompile(`(?m)^#define ([A-Z_]+) +\d+`).FindAllStringSubmatch(mutants, -1) {
		defined = append(defined, m[1])
		if !strings.Contains(text, "is("+m[1]+")") {
			t.Errorf("the mutant %s changes nothing", m[1])
		}
		if !slices.ContainsFunc(checks, func(c check) bool { return slices.Contains(c.set, "MUTANT="+m[1]) && c.want != "" }) {
			t.Errorf("the mutant %s has no check", m[1])
		}
	}
	if len(defined) < 10 {
		t.Errorf("only these mutants were found: %q", defined)
	}
	invariants := []string{"no_job_forgotten"}
	for _, m := range regexp.MustCompile(`must\(([a-z_]+),`).FindAllStringSubmatch(string(model), -1) {
		if m[1] != "name" {
			invariants = append(invariants, m[1])
		}
	}
	for _, name := range invariants {
		if !slices.ContainsFunc(checks, func(c check) bool { return c.want == name }) {
			t.Errorf("no mutant breaks %s", name)
		}
	}
	for _, c := range checks {
		if c.want != "" && !slices.Contains(invariants, c.want) {
			t.Errorf("%s is to break %s, which the model does not have", c.name, c.want)
		}
	}
}

func TestAnswersAreReadFromWhatTheSearchPrints(t *testing.T) {
	const end = "\nState-vector 160 byte, depth reached 93, errors: %\n   123456 states, stored\n"
	for name, c := range map[string]struct {
		out    string
		broken string
		fails  string
	}{
		"nothing found":     {strings.Replace(end, "%", "0", 1), "", ""},
		"an assertion":      {"pan:1: assertion violated one_owner (at depth 12)" + strings.Replace(end, "%", "1", 1), "one_owner", ""},
		"a cycle":           {"pan:1: acceptance cycle (at depth 6)" + strings.Replace(end, "%", "1", 1), "no_job_forgotten", ""},
		"out of memory":     {"Warning: Search not completed" + strings.Replace(end, "%", "0", 1), "", "not complete"},
		"out of depth":      {"error: max search depth too small" + strings.Replace(end, "%", "0", 1), "", "not complete"},
		"another error":     {"pan:1: invalid end state" + strings.Replace(end, "%", "1", 1), "", "not known"},
		"nothing was said":  {"", "", "no answer"},
		"killed on the way": {"Depth= 100 States= 1e+06", "", "no answer"},
	} {
		var a answer
		a.read(c.out)
		if a.broken != c.broken || (a.err != nil) != (c.fails != "") || a.err != nil && !strings.Contains(a.err.Error(), c.fails) {
			t.Errorf("%s: %+v", name, a)
		}
		if c.fails == "" && (a.states != 123456 || a.depth != 93) {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

func TestAnotherAnswerFailsTheRun(t *testing.T) {
	c := check{name: "m", want: "fenced"}
	for _, a := range []answer{{}, {broken: "one_owner"}} {
		var out strings.Builder
		if err := report(&out, []check{c}, []answer{a}); err == nil || !strings.Contains(out.String(), "WRONG") {
			t.Errorf("%+v passes: %s", a, out.String())
		}
	}
	var out strings.Builder
	if err := report(&out, []check{c}, []answer{{broken: "fenced"}}); err != nil {
		t.Error(err, out.String())
	}
	if _, err := choose([]string{"NO_SUCH"}, false); err == nil {
		t.Error("a name that no check has is taken")
	}
}
