package sqlite

import (
	"reflect"
	"testing"
)

// allStatements is the text of each statement file.
func allStatements(t *testing.T, s *Store) []string {
	t.Helper()
	v := reflect.ValueOf(s.sql)
	list := make([]string, v.NumField())
	for i := range list {
		list[i] = v.Field(i).String()
	}
	if len(list) < 50 {
		t.Fatalf("only %d statements", len(list))
	}
	return list
}
