package pgserver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// programs is a folder with initdb and postgres.
type programs struct {
	dir       string
	libraries string // for LD_LIBRARY_PATH, if the package was unpacked privately
}

// ErrNoPrograms: PostgreSQL is not installed here, and nothing is downloaded.
var ErrNoPrograms = errors.New("pgserver: no PostgreSQL server programs (initdb, postgres) found: " +
	`install the package "postgresql" of your system (apt-get install postgresql, dnf install postgresql-server, ` +
	"brew install postgresql), or set PACHT_PG_BIN to the folder that holds them")

// findPrograms looks where PACHT_PG_BIN says, in PATH, where systems install PostgreSQL
// (newest first), and in the module's private folder.
func findPrograms() (programs, error) {
	if dir := os.Getenv("PACHT_PG_BIN"); dir != "" {
		if !hasServer(dir) {
			return programs{}, fmt.Errorf("pgserver: PACHT_PG_BIN is %s, and there is no initdb and postgres in it", dir)
		}
		return programs{dir: dir, libraries: librariesOf(dir)}, nil
	}
	var dirs []string
	if initdb, err := exec.LookPath("initdb"); err == nil {
		dirs = append(dirs, filepath.Dir(initdb))
	}
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin"} {
		found, _ := filepath.Glob(pattern) // fails only on a bad pattern
		dirs = append(dirs, newestFirst(found)...)
	}
	dirs = append(dirs, newestFirst(private("initdb"))...)
	for _, dir := range dirs {
		if hasServer(dir) {
			return programs{dir: dir, libraries: librariesOf(dir)}, nil
		}
	}
	return programs{}, ErrNoPrograms
}

func hasServer(dir string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		if _, err := exec.LookPath(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// newestFirst sorts folders by the version number in their path.
func newestFirst(dirs []string) []string {
	version := func(dir string) int {
		for _, part := range strings.FieldsFunc(dir, func(r rune) bool { return r == '/' || r == '-' }) {
			if n, err := strconv.Atoi(part); err == nil {
				return n
			}
		}
		return 0
	}
	slices.SortStableFunc(dirs, func(a, b string) int { return version(b) - version(a) })
	return dirs
}

// private lists the folders that hold a program under .cache/postgres of the module that we
// are in, or of one around it.
func private(program string) []string {
	dir, err := os.Getwd()
	if err != nil {
		return nil
	}
	var found []string
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			_ = filepath.WalkDir(filepath.Join(dir, ".cache", "postgres"), func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.Name() == program && !d.IsDir() {
					found = append(found, filepath.Dir(path))
				}
				return nil
			})
		}
		if dir == filepath.Dir(dir) {
			return found
		}
		dir = filepath.Dir(dir)
	}
}

// librariesOf finds the libraries that were unpacked beside a private package.
func librariesOf(dir string) string {
	root, _, ok := strings.Cut(dir, "/.cache/postgres/")
	if !ok {
		return ""
	}
	var found []string
	for _, pattern := range []string{"usr/lib/*-linux-*", "lib/*-linux-*", "lib", "*/usr/lib/*-linux-*"} {
		dirs, _ := filepath.Glob(filepath.Join(root, ".cache", "postgres", pattern))
		found = append(found, dirs...)
	}
	return strings.Join(found, ":")
}
