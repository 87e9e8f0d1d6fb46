package lint

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
)

// packagesSayWhatTheyAre: one file of each package has its comment.
func packagesSayWhatTheyAre(m *module) (broken []string) {
	said := map[string]bool{}
	for _, f := range m.files {
		if f.test {
			continue
		}
		said[f.dir] = said[f.dir] || f.ast.Doc != nil && strings.TrimSpace(f.ast.Doc.Text()) != ""
	}
	for dir, ok := range said {
		if !ok {
			broken = append(broken, dir+": no file has a package comment")
		}
	}
	slices.Sort(broken)
	return broken
}

// wellKnown methods say by their name what they do.
var wellKnown = []string{"String", "Error", "Unwrap"}

// exportedNamesAreExplained: what others may call has a comment.
func exportedNamesAreExplained(m *module) (broken []string) {
	for _, f := range m.files {
		if f.test || inside(f.dir, "internal", "examples") || f.ast.Name.Name == "main" {
			continue
		}
		if slices.Contains(strings.Split(path.Dir(f.path), "/"), "internal") {
			continue
		}
		bare := func(n ast.Node, name string) {
			broken = append(broken, fmt.Sprintf("%s: %s has no comment", m.at(n), name))
		}
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Doc == nil && d.Name.IsExported() && receiverExported(d) && (d.Recv == nil || !slices.Contains(wellKnown, d.Name.Name)) {
					bare(d, d.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					bareSpec(d, spec, bare)
				}
			}
		}
	}
	return broken
}

// bareSpec accepts a comment on the name, behind it, or on its group.
func bareSpec(d *ast.GenDecl, spec ast.Spec, bare func(ast.Node, string)) {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() && d.Doc == nil && s.Doc == nil {
			bare(s, s.Name.Name)
		}
	case *ast.ValueSpec:
		for _, name := range s.Names {
			if name.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
				bare(name, name.Name)
			}
		}
	}
}

func receiverExported(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return false
		}
	}
}
