package lint

import (
	"bufio"
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const modulePath = "github.com/pacht-queue/pacht"

// module is all that a rule may look at.
type module struct {
	fset  *token.FileSet
	texts []textFile // every text file, Go files too
	files []goFile
}

type textFile struct {
	path string
	text []byte
}

type goFile struct {
	path string // with slashes, from the root of the module
	dir  string // "." for the root package
	test bool
	ast  *ast.File
}

// load reads the files of these names. A folder with a go.mod of its own is another module,
// with rules of its own.
func load(fsys fs.FS, names []string) (*module, error) {
	m := &module{fset: token.NewFileSet()}
	for _, name := range names {
		if ofOtherModule(name, names) || strings.Contains(name, "testdata/") {
			continue
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, err
		}
		if bytes.IndexByte(text, 0) >= 0 {
			continue // a picture or the like
		}
		m.texts = append(m.texts, textFile{path: name, text: text})
		if path.Ext(name) != ".go" {
			continue
		}
		tree, err := parser.ParseFile(m.fset, name, text, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("parse: %w", err)
		}
		m.files = append(m.files, goFile{
			path: name, dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), ast: tree,
		})
	}
	return m, nil
}

func ofOtherModule(name string, names []string) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if slices.Contains(names, dir+"/go.mod") {
			return true
		}
	}
	return false
}

// here is this repository. It is read once for all rules.
var here = sync.OnceValues(func() (*module, error) {
	root := os.DirFS("../..")
	names, err := projectFiles(root)
	if err != nil {
		return nil, err
	}
	return load(root, names)
})

func thisModule(t *testing.T) *module {
	t.Helper()
	m, err := here()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// projectFiles lists what belongs to the project: what git tracks or would track, or, in an
// unpacked archive, all files but hidden folders.
func projectFiles(root fs.FS) ([]string, error) {
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
	cmd.Dir = "../.."
	if out, err := cmd.Output(); err == nil {
		var names []string
		for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
			info, err := fs.Stat(root, name)
			if err == nil && info.Mode().IsRegular() { // not deleted, no link
				names = append(names, name)
			}
		}
		return names, nil
	}
	var names []string
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == ".cache" || name == "bin"):
			return fs.SkipDir
		case d.Type().IsRegular():
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

// at is the place of a node, for the report of a rule.
func (m *module) at(n ast.Node) string {
	p := m.fset.Position(n.Pos())
	return p.Filename + ":" + strconv.Itoa(p.Line)
}

// imports maps the names by which a file calls its imports to their paths.
func (f goFile) imports() map[string]string {
	names := map[string]string{}
	for _, spec := range f.ast.Imports {
		p := importPath(spec)
		name := path.Base(p)
		if spec.Name != nil {
			name = spec.Name.Name
		} else if name == "v2" || name == "v5" {
			name = path.Base(path.Dir(p))
		}
		names[name] = p
	}
	return names
}

func importPath(spec *ast.ImportSpec) string {
	p, _ := strconv.Unquote(spec.Path.Value) // the parser has seen that it is a string
	return p
}

// inside says whether a folder is one of these or below one of them.
func inside(dir string, of ...string) bool {
	for _, o := range of {
		if dir == o || strings.HasPrefix(dir, o+"/") {
			return true
		}
	}
	return false
}

// lines calls fn with each line of a text and its number.
func lines(text []byte, fn func(number int, line string)) {
	s := bufio.NewScanner(bytes.NewReader(text))
	s.Buffer(nil, len(text)+1)
	for n := 1; s.Scan(); n++ {
		fn(n, s.Text())
	}
}

// testFolders hold what only tests use: harnesses, the conformance suite, these rules.
var testFolders = []string{"internal/pgtest", "internal/netfault", "internal/lint", "storetest"}
