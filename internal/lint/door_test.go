package lint

import (
	"fmt"
	"go/ast"
)

// timeStaysBehindItsDoor: the packages ask internal/clock, so that tests can open it.
// Commands and examples are the world outside; test harnesses need real deadlines.
func timeStaysBehindItsDoor(m *module) (broken []string) {
	asks := map[string]string{"Now": "clock.Now", "Sleep": "clock.Sleep", "Since": "clock.Since", "Until": "clock.Now"}
	free := append([]string{"internal/clock", "cmd", "examples"}, testFolders...)
	for _, f := range m.files {
		if f.test || inside(f.dir, free...) {
			continue
		}
		names := f.imports()
		for _, spec := range f.ast.Imports {
			if p := importPath(spec); p == "math/rand" || p == "math/rand/v2" {
				broken = append(broken, fmt.Sprintf("%s: %s: chance comes from internal/clock", m.at(spec), p))
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if ok && names[x.Name] == "time" && asks[sel.Sel.Name] != "" {
				broken = append(broken, fmt.Sprintf("%s: time.%s: use %s of internal/clock", m.at(sel), sel.Sel.Name, asks[sel.Sel.Name]))
			}
			return true
		})
	}
	return broken
}
