package lint

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
)

func (m *module) text(t *testing.T, path string) string {
	t.Helper()
	for _, f := range m.texts {
		if f.path == path {
			return string(f.text)
		}
	}
	t.Errorf("%s is missing", path)
	return ""
}

func TestEachDirectDependencyHasAReason(t *testing.T) {
	m := thisModule(t)
	reasons := m.text(t, "docs/dependencies.md")
	direct := regexp.MustCompile(`(?m)^\s*(?:require )?([a-z0-9.-]+\.[a-z]+/\S+) v\S+$`) // no "// indirect" behind it
	for _, found := range direct.FindAllStringSubmatch(m.text(t, "go.mod"), -1) {
		if !strings.Contains(reasons, "`"+found[1]+"`") {
			t.Errorf("docs/dependencies.md says nothing of `%s`", found[1])
		}
	}
}

// The README promises two commands, CI runs what it promises, and the version of a tool
// stands in one place.
func TestTheTwoCommandsAreTheSameEverywhere(t *testing.T) {
	m := thisModule(t)
	readme, ci, make := m.text(t, "README.md"), m.text(t, ".ci/run"), m.text(t, "Makefile")
	for _, target := range []string{"demo", "test"} {
		if !strings.Contains(readme, "make "+target) {
			t.Errorf("README.md does not name make %s", target)
		}
	}
	for _, target := range []string{"help", "demo", "test", "check", "build", "fmt"} {
		if !regexp.MustCompile(`(?m)^` + target + `:.* ## `).MatchString(make) {
			t.Errorf("Makefile has no target %s with its line for make help", target)
		}
	}
	if !regexp.MustCompile(`make( \S+)* test\b`).MatchString(ci) || !strings.Contains(ci, "./cmd/pacht demo --json") {
		t.Error(".ci/run does not run the README's commands")
	}
	for _, f := range m.texts {
		if f.path != "Makefile" && bytes.Contains(f.text, []byte("staticcheck@"+"v")) {
			t.Errorf("%s names a version of staticcheck: the Makefile does", f.path)
		}
	}
}
