package lint

import (
	"fmt"
	"go/ast"
	"strings"
)

// testsAreNeverSkipped: a missing database is a failure, and a test that does not hold is
// repaired or deleted.
func testsAreNeverSkipped(m *module) (broken []string) {
	for _, f := range m.files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			name := sel.Sel.Name
			if x, ok := sel.X.(*ast.Ident); ok && (name == "SkipNow" || name == "Skipf" || name == "Skip" && testingName(x.Name)) {
				broken = append(broken, fmt.Sprintf("%s: %s.%s", m.at(call), x.Name, name))
			}
			return true
		})
	}
	return broken
}

func testingName(s string) bool { return s == "t" || s == "b" || s == "f" || s == "tb" }

// nothingIsLeftForLater: what is in the repository is meant to be as it is.
func nothingIsLeftForLater(m *module) (broken []string) {
	for _, f := range m.files {
		for _, group := range f.ast.Comments {
			for _, mark := range []string{"TO" + "DO", "FIX" + "ME", "XX" + "X"} {
				if strings.Contains(group.Text(), mark) {
					broken = append(broken, fmt.Sprintf("%s: %s", m.at(group), mark))
				}
			}
		}
	}
	return broken
}
