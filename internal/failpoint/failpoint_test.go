package failpoint_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/pacht-queue/pacht/internal/failpoint/scan"
)

// Folders of the source that may have failpoints.
var folders = []string{"worker", "watch", "postgres", "sqlite", "effect", "reconcile", "sweep"}

// The fault lab kills a process in each of these; here they are listed, so that a name stands in
// one place, and says in which folder.
func TestEachFailpointHasOnePlaceAndSaysWhere(t *testing.T) {
	points, err := scan.Points(os.DirFS("../.."), folders...)
	if err != nil {
		t.Fatal(err)
	}
	form := regexp.MustCompile(`^[a-z]+(\.[a-z]+)+$`)
	at := map[string]string{}
	for _, p := range points {
		folder, _, _ := strings.Cut(p.At, "/")
		if !form.MatchString(p.Name) || !strings.HasPrefix(p.Name, folder+".") {
			t.Errorf("%s: %q: want %s.what, in lower case", p.At, p.Name, folder)
		}
		if at[p.Name] != "" {
			t.Errorf("%s: %q stands at %s as well", p.At, p.Name, at[p.Name])
		}
		at[p.Name] = p.At
		t.Logf("%-28s %s", p.Name, p.At)
	}
	for _, folder := range folders {
		if n := strings.Count(strings.Join(names(points), "\n")+"\n", folder+"."); n == 0 {
			t.Errorf("%s has no failpoint", folder)
		}
	}
}

func names(points []scan.Point) (all []string) {
	for _, p := range points {
		all = append(all, p.Name)
	}
	return all
}

// What a build for the fault lab is told is tested in such a build.
func TestBuildForTheLabRefusesOrdersThatMakeNoSense(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "test", "-tags=faultlab", "-run=TestOrdersThatMakeNoSenseAreRefused", ".").CombinedOutput()
	if err != nil || strings.Contains(string(out), "no tests to run") {
		t.Errorf("%v\n%s", err, out)
	}
}

// A normal build has no door: what is called does nothing, and the compiler leaves it out.
func TestNormalBuildLeavesFailpointsOut(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "build", "-gcflags=-m", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "can inline Here") {
		t.Errorf("the compiler does not inline it:\n%s", out)
	}
	text, err := os.ReadFile("off.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "func Here(string) {}\n") {
		t.Errorf("it does something:\n%s", text)
	}
}
