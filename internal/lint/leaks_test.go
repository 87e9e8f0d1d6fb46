package lint

import (
	"fmt"
	"go/ast"
	"os"
	"slices"
	"strings"
	"testing"
)

// leakFinders are the packages whose use in a TestMain fails the tests over a goroutine that
// was left behind.
var leakFinders = []string{"go.uber.org/goleak", modulePath + "/internal/pgtest", modulePath + "/faults/lab"}

// testsFindGoroutinesLeftBehind: the tests of each package have a TestMain that looks for them.
// Every goroutine has an owner that waits for it.
func testsFindGoroutinesLeftBehind(m *module) (broken []string) {
	tests, finds := map[string]bool{}, map[string]bool{}
	for _, f := range m.files {
		if !f.test {
			continue
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Test") {
				continue
			}
			tests[f.dir] = true
			if fn.Name.Name != "TestMain" {
				continue
			}
			for _, spec := range f.ast.Imports {
				finds[f.dir] = finds[f.dir] || slices.Contains(leakFinders, importPath(spec))
			}
			// The package of the harness itself has no need to import it.
			finds[f.dir] = finds[f.dir] || slices.Contains(leakFinders, modulePath+"/"+f.dir)
		}
	}
	for dir := range tests {
		if !finds[dir] {
			broken = append(broken, fmt.Sprintf("%s: no TestMain looks for goroutines left behind: goleak.VerifyTestMain, or pgtest.Main", dir))
		}
	}
	return broken
}

// The fault lab is a module of its own, and this rule is the same there.
func TestFaultLabFindsGoroutinesLeftBehind(t *testing.T) {
	all, err := projectFiles(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, name := range all {
		if rest, ok := strings.CutPrefix(name, "faults/"); ok && rest != "go.mod" {
			names = append(names, rest)
		}
	}
	lab, err := load(os.DirFS("../../faults"), names)
	if err != nil {
		t.Fatal(err)
	}
	if len(lab.files) == 0 {
		t.Fatal("no Go files found in faults")
	}
	for i := range lab.files {
		lab.files[i].dir = "faults/" + lab.files[i].dir
	}
	for _, f := range testsFindGoroutinesLeftBehind(lab) {
		t.Error(f)
	}
}
