// Package migration reads numbered SQL files and says which of them a database still needs.
// It runs none: each store applies them under its own lock, in its own way.
package migration

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/pacht-queue/pacht"
)

// Step is one numbered file.
type Step struct {
	Version  int
	Name     string // of the file, without number and extension
	SQL      string
	Checksum string // of the SQL as it stands in the file
}

// Applied is one row of the table schema_version.
type Applied struct {
	Version  int
	Name     string
	Checksum string
	At       time.Time
}

// Load reads NNNN_name.sql files of a folder, numbered from 1 without a gap.
func Load(fsys fs.FS, dir string) ([]Step, error) {
	entries, err := fs.ReadDir(fsys, dir)
	if err != nil {
		return nil, err
	}
	var steps []Step
	for _, e := range entries {
		number, name, ok := strings.Cut(strings.TrimSuffix(e.Name(), ".sql"), "_")
		version, err := strconv.Atoi(number)
		if !ok || err != nil || version != len(steps)+1 {
			return nil, fmt.Errorf("migration %s: want the name %04d_something.sql", e.Name(), len(steps)+1)
		}
		text, err := fs.ReadFile(fsys, path.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(text)
		steps = append(steps, Step{Version: version, Name: name, SQL: string(text), Checksum: hex.EncodeToString(sum[:])})
	}
	return steps, nil
}

// Missing answers the steps that are not applied yet. It refuses a database that is newer
// than the steps, has a gap, or was made from other text.
func Missing(steps []Step, applied []Applied) ([]Step, error) {
	for i, a := range applied {
		if a.Version > len(steps) {
			return nil, &pacht.SchemaError{Found: applied[len(applied)-1].Version, Wanted: len(steps)}
		}
		if a.Version != i+1 {
			return nil, &pacht.SchemaError{Detail: fmt.Sprintf("migration %d is missing among those applied", i+1)}
		}
		if want := steps[i]; a.Checksum != want.Checksum {
			return nil, &pacht.SchemaError{Detail: fmt.Sprintf(
				"migration %d (%s) was applied from other text: checksum %.12s in the database, %.12s in this program",
				a.Version, a.Name, a.Checksum, want.Checksum)}
		}
	}
	return steps[len(applied):], nil
}

// List joins both into what people see.
func List(steps []Step, applied []Applied) []pacht.Migration {
	list := make([]pacht.Migration, len(steps))
	for i, s := range steps {
		list[i] = pacht.Migration{Version: s.Version, Name: s.Name}
		if i < len(applied) {
			list[i].AppliedAt = applied[i].At
		}
	}
	return list
}
