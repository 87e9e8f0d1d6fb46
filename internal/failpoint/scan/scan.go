// Package scan lists the failpoints of the source, for tests that kill a process in each.
package scan

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// Point is one failpoint.
type Point struct {
	Name string
	At   string // file and line
}

// Points lists the failpoints of the packages in these folders, in the order of files. A name
// that is no literal is an error.
func Points(fsys fs.FS, folders ...string) ([]Point, error) {
	var points []Point
	for _, folder := range folders {
		files, err := fs.Glob(fsys, folder+"/*.go")
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			more, err := in(fsys, file)
			if err != nil {
				return nil, err
			}
			points = append(points, more...)
		}
	}
	return points, nil
}

func in(fsys fs.FS, file string) (points []Point, err error) {
	text, err := fs.ReadFile(fsys, file)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, file, text, 0)
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 1 || err != nil {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || sel.Sel.Name != "Here" {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); !ok || x.Name != "failpoint" {
			return true
		}
		at := fset.Position(call.Pos())
		where := fmt.Sprintf("%s:%d", path.Clean(at.Filename), at.Line)
		lit, ok := call.Args[0].(*ast.BasicLit)
		if !ok {
			err = fmt.Errorf("%s: the name of a failpoint is no literal", where)
			return false
		}
		name, bad := strconv.Unquote(lit.Value)
		if bad != nil {
			err = fmt.Errorf("%s: %w", where, bad)
		}
		points = append(points, Point{Name: name, At: where})
		return true
	})
	return points, err
}
