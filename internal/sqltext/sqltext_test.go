package sqltext

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestFillPutsInNamesAndLeavesOutComments(t *testing.T) {
	fsys := fstest.MapFS{"sql/one.sql": {Data: []byte("-- says what\nSELECT a  -- why\nFROM pacht.jobs;\n")}}
	var s struct {
		One string `sql:"one"`
	}
	if err := Fill(&s, fsys, "sql", "pacht.", `"Pay-B".`); err != nil {
		t.Fatal(err)
	}
	if want := "SELECT a\nFROM \"Pay-B\".jobs"; s.One != want {
		t.Errorf("got %q, want %q", s.One, want)
	}
}

func TestFillRefusesStrayFilesAndFields(t *testing.T) {
	fsys := fstest.MapFS{"sql/one.sql": {Data: []byte("SELECT 1")}, "sql/two.sql": {Data: []byte("SELECT 2")}}
	var one struct {
		One string `sql:"one"`
	}
	if err := Fill(&one, fsys, "sql", "x.", "y."); err == nil || !strings.Contains(err.Error(), `"two"`) {
		t.Errorf("a file without a field: %v", err)
	}
	var three struct {
		One   string `sql:"one"`
		Two   string `sql:"two"`
		Three string `sql:"three"`
	}
	if err := Fill(&three, fsys, "sql", "x.", "y."); err == nil || !strings.Contains(err.Error(), `"three"`) {
		t.Errorf("a field without a file: %v", err)
	}
}
