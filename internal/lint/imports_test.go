package lint

import (
	"fmt"
	"slices"
	"strings"
)

// actors do something with jobs over the interfaces of the root package. They see no SQL, no
// store and not each other, but for these pairs.
var (
	actors       = []string{"worker", "watch", "sweep", "effect", "reconcile", "httpapi", "console"}
	stores       = []string{"postgres", "sqlite"}
	actorImports = map[string][]string{"worker": {"watch", "sweep"}, "reconcile": {"effect"}, "pachttest": {"worker"}}
	// seeStores are the folders whose code, tests apart, may import a store.
	seeStores = []string{"cmd", "examples", "internal/database", "internal/demo", "internal/bench"}
)

// importsGoOneWay keeps the directions of the layout: commands over actors over the root
// package, and stores under it.
func importsGoOneWay(m *module) (broken []string) {
	for _, f := range m.files {
		if f.test {
			continue
		}
		for _, spec := range f.ast.Imports {
			if why := refused(f.dir, importPath(spec)); why != "" {
				broken = append(broken, fmt.Sprintf("%s: %s must not import %s: %s", m.at(spec), f.dir, importPath(spec), why))
			}
		}
	}
	return broken
}

func refused(dir, imported string) string {
	first, _, _ := strings.Cut(imported, "/")
	inModule := imported == modulePath || strings.HasPrefix(imported, modulePath+"/")
	to := strings.TrimPrefix(strings.TrimPrefix(imported, modulePath), "/")
	if dir == "." {
		if strings.Contains(first, ".") {
			return "the root package uses the standard library only"
		}
		if imported == "database/sql" {
			return "the root package knows no database"
		}
		return ""
	}
	if dir == "money" && strings.Contains(first, ".") {
		return "money knows amounts and currencies alone"
	}
	if inside(dir, actors...) && (imported == "database/sql" || strings.HasPrefix(imported, "github.com/jackc/") || strings.HasPrefix(imported, "modernc.org/")) {
		return "actors see no database"
	}
	if !inModule {
		return ""
	}
	from, _, _ := strings.Cut(dir, "/")
	target, _, _ := strings.Cut(to, "/")
	switch {
	case from == target:
		return ""
	case inside(to, stores...) && !inside(dir, seeStores...):
		return "only commands, examples and tests see a store"
	case inside(to, actors...) && inside(dir, actors...) && !slices.Contains(actorImports[from], target):
		return "actors do not know each other"
	case inside(to, actors...) && inside(dir, stores...):
		return "a store does not know who uses it"
	case inside(to, actors...) && from == "pachttest" && !slices.Contains(actorImports[from], target):
		return "pachttest needs the worker only"
	case inside(to, actors...) && inside(dir, "internal") && !inside(dir, seeStores...):
		return "the inner packages are under the actors"
	case inside(dir, "internal/demo") && inside(to, "examples"):
		return "" // the demo shows the example at work
	case inside(to, "cmd", "examples"):
		return "nothing is built on a command or an example"
	case inside(to, testFolders...) && !inside(dir, testFolders...):
		return "only tests use it"
	}
	return ""
}
