// Package sqltext loads the stores' statements: one per file, embedded, with the name of
// schema or prefix put in and comments left out.
package sqltext

import (
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"strings"
)

// Fill sets each string field of the struct that dst points to from dir/NAME.sql, where NAME
// is the field's tag `sql:"NAME"`. Every file must have a field, and every field a file.
// Each occurrence of from, the name that the files are written with, becomes to.
func Fill(dst any, fsys fs.FS, dir, from, to string) error {
	entries, err := fs.ReadDir(fsys, dir)
	if err != nil {
		return err
	}
	unused := map[string]bool{}
	for _, e := range entries {
		unused[strings.TrimSuffix(e.Name(), ".sql")] = true
	}
	v := reflect.ValueOf(dst).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("sql")
		text, err := fs.ReadFile(fsys, path.Join(dir, name+".sql"))
		if err != nil {
			return fmt.Errorf("statement %q: %w", name, err)
		}
		v.Field(i).SetString(Rename(Strip(string(text)), from, to))
		delete(unused, name)
	}
	for name := range unused {
		return fmt.Errorf("no field for the statement %q", name)
	}
	return nil
}

// Rename puts the configured name in place of the one that the files are written with.
func Rename(sql, from, to string) string { return strings.ReplaceAll(sql, from, to) }

// Strip leaves out lines that are only comment, and comments at the end of a line that
// stand behind two spaces; so SQL text must not have "  -- " inside a literal.
func Strip(sql string) string {
	var kept []string
	for line := range strings.Lines(sql) {
		if trimmed := strings.TrimSpace(line); trimmed == "" || strings.HasPrefix(trimmed, "--") {
			continue
		}
		line, _, _ = strings.Cut(strings.TrimRight(line, "\n"), "  -- ")
		kept = append(kept, strings.TrimRight(line, " "))
	}
	return strings.TrimSuffix(strings.Join(kept, "\n"), ";")
}
