package migration

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pacht-queue/pacht"
)

func files(names ...string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for _, n := range names {
		fsys["m/"+n] = &fstest.MapFile{Data: []byte("SELECT '" + n + "'")}
	}
	return fsys
}

func TestLoadRefusesGapsAndStrangeNames(t *testing.T) {
	for _, names := range [][]string{{"0002_b.sql"}, {"0001_a.sql", "0003_c.sql"}, {"a.sql"}, {"0001.sql"}} {
		if _, err := Load(files(names...), "m"); err == nil {
			t.Errorf("%v was accepted", names)
		}
	}
}

func TestMissingNamesWhatDoesNotFit(t *testing.T) {
	steps, err := Load(files("0001_a.sql", "0002_b.sql"), "m")
	if err != nil {
		t.Fatal(err)
	}
	one := Applied{Version: 1, Name: "a", Checksum: steps[0].Checksum}
	two := Applied{Version: 2, Name: "b", Checksum: steps[1].Checksum}
	if missing, err := Missing(steps, []Applied{one}); err != nil || len(missing) != 1 || missing[0].Version != 2 {
		t.Errorf("got %v, %v", missing, err)
	}
	if missing, err := Missing(steps, []Applied{one, two}); err != nil || len(missing) != 0 {
		t.Errorf("got %v, %v", missing, err)
	}
	cases := []struct {
		applied []Applied
		says    string
	}{
		{[]Applied{one, two, {Version: 3}}, "the database has version 3, this program knows only up to 2"},
		{[]Applied{two}, "migration 1 is missing"},
		{[]Applied{{Version: 1, Name: "a", Checksum: "0123456789abcdef"}}, "was applied from other text"},
	}
	for _, c := range cases {
		_, err := Missing(steps, c.applied)
		if !errors.Is(err, pacht.ErrSchema) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("want an error saying %q, got %v", c.says, err)
		}
	}
}
