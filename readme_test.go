package pacht_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The README's program is the one in examples/quickstart, which the build compiles.
func TestReadmeShowsTheQuickstartAsItIs(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("examples/quickstart/main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, want, _ := strings.Cut(string(program), "// Charge is what is to be done")
	want, _, found := strings.Cut("// Charge is what is to be done"+want, "\nfunc main() {")
	if !found {
		t.Fatal("examples/quickstart/main.go has changed its shape")
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	if len(blocks) == 0 || strings.TrimSpace(blocks[0][1]) != strings.TrimSpace(want) {
		t.Errorf("the first Go block of README.md is not the program of examples/quickstart/main.go:\n%s", want)
	}
	if n := strings.Count(strings.TrimSpace(want), "\n") + 1; n > 45 {
		t.Errorf("the program has %d lines; a newcomer reads 40", n)
	}
}
