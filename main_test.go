package pacht_test

import (
	"go/build"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Layout: imports go one way, and here is where they end.
func TestRootPackageImportsOnlyTheStandardLibrary(t *testing.T) {
	pkg, err := build.ImportDir(".", 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(pkg.Imports) == 0 {
		t.Error("no imports found")
	}
	for _, path := range pkg.Imports {
		if first, _, _ := strings.Cut(path, "/"); strings.Contains(first, ".") {
			t.Errorf("imports %s", path)
		}
		if path == "math/rand" || path == "math/rand/v2" {
			t.Errorf("imports %s: chance comes in as an argument", path)
		}
	}
	for _, name := range pkg.GoFiles {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range []string{"time.Now(", "time.Sleep(", "time.After(", "time.NewTimer("} {
			if strings.Contains(string(text), call) {
				t.Errorf("%s calls %s): time comes in as an argument", name, call)
			}
		}
	}
}
