package lint

import (
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// rules lists every rule with something that breaks it and something that does not.
var rules = []struct {
	name string
	find func(*module) []string
	bad  map[string]string // each of these is named by its path or folder
	good map[string]string
}{
	{
		name: "imports go one way", find: importsGoOneWay,
		bad: map[string]string{
			"a.go":              `package pacht; import _ "github.com/jackc/pgx/v5"`,
			"sql.go":            `package pacht; import _ "database/sql"`,
			"worker/a.go":       `package worker; import _ "github.com/pacht-queue/pacht/sqlite"`,
			"worker/b.go":       `package worker; import _ "github.com/pacht-queue/pacht/effect"`,
			"watch/a.go":        `package watch; import _ "github.com/pacht-queue/pacht/worker"`,
			"console/a.go":      `package console; import _ "database/sql"`,
			"postgres/a.go":     `package postgres; import _ "github.com/pacht-queue/pacht/watch"`,
			"postgres/b.go":     `package postgres; import _ "github.com/pacht-queue/pacht/sqlite"`,
			"pachttest/a.go":    `package pachttest; import _ "github.com/pacht-queue/pacht/postgres"`,
			"pachttest/b.go":    `package pachttest; import _ "github.com/pacht-queue/pacht/reconcile"`,
			"internal/x/a.go":   `package x; import _ "github.com/pacht-queue/pacht/worker"`,
			"storetest/a.go":    `package storetest; import _ "github.com/pacht-queue/pacht/sqlite"`,
			"cmd/pacht/a.go":    `package main; import _ "github.com/pacht-queue/pacht/internal/pgtest"`,
			"httpapi/a.go":      `package httpapi; import _ "github.com/pacht-queue/pacht/cmd/pacht"`,
			"money/a.go":        `package money; import _ "github.com/pacht-queue/pacht"`,
			"reconcile/deep.go": `package reconcile; import _ "github.com/pacht-queue/pacht/console/page"`,
		},
		good: map[string]string{
			"a.go":                   `package pacht; import _ "encoding/json"`,
			"a_test.go":              `package pacht_test; import _ "github.com/pacht-queue/pacht/sqlite"`,
			"worker/a.go":            `package worker; import (_ "github.com/pacht-queue/pacht"; _ "github.com/pacht-queue/pacht/watch")`,
			"worker/a_test.go":       `package worker; import _ "github.com/pacht-queue/pacht/postgres"`,
			"reconcile/a.go":         `package reconcile; import _ "github.com/pacht-queue/pacht/effect"`,
			"money/a.go":             `package money; import _ "strconv"`,
			"pachttest/a.go":         `package pachttest; import _ "github.com/pacht-queue/pacht/worker"`,
			"postgres/a.go":          `package postgres; import (_ "database/sql"; _ "github.com/pacht-queue/pacht/internal/sqltext")`,
			"cmd/pacht/a.go":         `package main; import (_ "github.com/pacht-queue/pacht/worker"; _ "github.com/pacht-queue/pacht/sqlite")`,
			"internal/database/a.go": `package database; import _ "github.com/pacht-queue/pacht/postgres"`,
		},
	},
	{
		name: "time stays behind its door", find: timeStaysBehindItsDoor,
		bad: map[string]string{
			"a.go":        `package pacht; import "time"; var a = time.Now()`,
			"worker/a.go": `package worker; import x "time"; func a() { x.Sleep(1) }`,
			"worker/b.go": `package worker; import "time"; var f = time.Now`,
			"sqlite/a.go": `package sqlite; import _ "math/rand/v2"`,
			"watch/a.go":  `package watch; import "time"; func a(t time.Time) any { return time.Since(t) }`,
		},
		good: map[string]string{
			"a.go":                `package pacht; import "time"; var a = time.Second`,
			"a_test.go":           `package pacht; import "time"; var b = time.Now()`,
			"worker/a.go":         `package worker; var time struct{ Now func() }; func a() { time.Now() }`,
			"internal/clock/a.go": `package clock; import "time"; var a = time.Now()`,
			"cmd/pacht/a.go":      `package main; import "time"; var a = time.Now()`,
		},
	},
	{
		name: "SQL stands in its files", find: sqlStandsInItsFiles,
		bad: map[string]string{
			"postgres/a.go":  "package postgres; const q = `\n\tSELECT 1`",
			"sqlite/a.go":    `package sqlite; const q = "update pacht_jobs set x = 1"`,
			"cmd/pacht/a.go": `package main; const q = "WITH c AS (SELECT 1) SELECT x FROM c"`,
		},
		good: map[string]string{
			"postgres/a.go":      `package postgres; const q = "update the schema first"`,
			"postgres/a_test.go": `package postgres; const p = "SELECT 1"`,
			"cmd/pacht/a.go":     `package main; const q = "select jobs of this queue"`,
			"examples/x/a.go":    `package x; const q = "SELECT 1"`,
		},
	},
	{
		name: "SQL names its columns", find: sqlNamesItsColumns,
		bad: map[string]string{
			"postgres/sql/a.sql":         "-- x\nSELECT *\nFROM jobs",
			"postgres/sql/b.sql":         "-- x\nDELETE FROM jobs RETURNING *",
			"sqlite/sql/c.sql":           "-- x\nSELECT l.*\nFROM leases l",
			"sqlite/migrations/0001.sql": "CREATE VIEW v AS SELECT j.a, * FROM j",
		},
		good: map[string]string{
			"postgres/sql/a.sql": "-- never SELECT * here\nSELECT count(*), 2 * a\nFROM jobs",
		},
	},
	{
		name: "statements are readable", find: statementsAreReadable,
		bad: map[string]string{
			"postgres/sql/a.sql": "SELECT 1",
			"postgres/sql/b.sql": "-- Two at once.\nSELECT 1;\nSELECT 2;",
			"postgres/sql/c.sql": "-- Nothing but words.\n",
			"postgres/sql/d.sql": "-- Shouts too little.\nselect 1",
		},
		good: map[string]string{
			"postgres/sql/a.sql":             "-- Says one; it's one only.\nSELECT 1, ';'  -- here;\n;\n",
			"postgres/migrations/0001_a.sql": "CREATE TABLE a (); CREATE TABLE b ();",
		},
	},
	{
		name: "files stay short", find: filesStayShort,
		bad:  map[string]string{"a.go": "package pacht\n" + strings.Repeat("\n", mostLines)},
		good: map[string]string{"a.go": "package pacht\n" + strings.Repeat("\n", mostLines-1), "README.md": strings.Repeat("\n", 1000)},
	},
	{
		name: "files are named for what they hold", find: filesAreNamedForWhatTheyHold,
		bad:  map[string]string{"util.go": "package pacht", "helpers_test.go": "package pacht", "internal/common/a.go": "package common"},
		good: map[string]string{"utility.go": "package pacht"},
	},
	{
		name: "paths are of no machine", find: pathsAreOfNoMachine,
		bad: map[string]string{
			"README.md": "see " + "/wo" + "rk/x", "a.go": "package pacht // .." + "/shared/design.md", "scripts/a": "cd " + "/ho" + "me/me",
		},
		good: map[string]string{"README.md": "docs/work/x and a/root/b and $dir/tmp/c"},
	},
	{
		name: "packages say what they are", find: packagesSayWhatTheyAre,
		bad:  map[string]string{"worker/a.go": "package worker"},
		good: map[string]string{"a/a.go": "// Package a is.\npackage a", "a/b.go": "package a", "c/a_test.go": "package c"},
	},
	{
		name: "exported names are explained", find: exportedNamesAreExplained,
		bad: map[string]string{
			"a.go": "package pacht; func F() {}",
			"b.go": "package pacht; type T struct{}",
			"c.go": "package pacht; const (\n A = 1\n)",
			"d.go": "package pacht; func (t *U[X]) M() {}",
			"e.go": "package pacht; func String() {}",
		},
		good: map[string]string{
			"a.go": "package pacht\n// F does.\nfunc F() {}\nfunc f() {}\nfunc (t T) String() string { return \"\" }\nfunc (t t) M() {}\n" +
				"// Both.\nconst (\n A = 1\n B = 2\n)\nvar (\n C = 3 // c\n)",
			"internal/x/a.go": "package x; func F() {}",
			"cmd/pacht/a.go":  "package main; func F() {}",
		},
	},
	{
		name: "tests are never skipped", find: testsAreNeverSkipped,
		bad: map[string]string{
			"a_test.go":      `package pacht; func a(t *testing.T) { t.Skip("no database") }`,
			"storetest/a.go": `package storetest; func a(tb testing.TB) { tb.Skipf("no") }`,
			"b_test.go":      `package pacht; func b(x *testing.T) { x.SkipNow() }`,
		},
		good: map[string]string{"a_test.go": `package pacht; func a() { scanner.Skip(1) }`},
	},
	{
		name: "tests find goroutines left behind", find: testsFindGoroutinesLeftBehind,
		bad: map[string]string{
			"worker/a_test.go": `package worker; func TestA(t *testing.T) {}`,
			"watch/a_test.go":  `package watch; func TestMain(m *testing.M) { m.Run() }`,
		},
		good: map[string]string{
			"worker/a_test.go":      `package worker; func TestA(t *testing.T) {}`,
			"worker/main_test.go":   `package worker_test; import "go.uber.org/goleak"; func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }`,
			"postgres/main_test.go": `package postgres; import "github.com/pacht-queue/pacht/internal/pgtest"; func TestMain(m *testing.M) { pgtest.Main(m) }`,
			"storetest/a_test.go":   `package storetest; func shared() {}`,
		},
	},
	{
		name: "nothing is left for later", find: nothingIsLeftForLater,
		bad:  map[string]string{"a.go": "package pacht\n// TO" + "DO: think\n"},
		good: map[string]string{"a.go": "package pacht\n// To do this, call F.\n"},
	},
}

func TestHouseRulesHold(t *testing.T) {
	m := thisModule(t)
	if len(m.files) < 10 {
		t.Fatalf("only %d Go files found: the rules looked at the wrong place", len(m.files))
	}
	for _, rule := range rules {
		t.Run(rule.name, func(t *testing.T) {
			found := rule.find(m)
			slices.Sort(found)
			for _, f := range found {
				t.Error(f)
			}
		})
	}
}

// A rule that sees nothing would pass for ever.
func TestEachRuleSeesWhatBreaksIt(t *testing.T) {
	for _, rule := range rules {
		t.Run(rule.name, func(t *testing.T) {
			found := strings.Join(rule.find(parse(t, rule.bad)), "\n")
			for name := range rule.bad {
				if !strings.Contains(found, name) && !strings.Contains(found, path.Dir(name)+": ") {
					t.Errorf("not seen: %s\nfound:\n%s", name, found)
				}
			}
			for _, f := range rule.find(parse(t, rule.good)) {
				t.Errorf("refused without reason: %s", f)
			}
		})
	}
}

func parse(t *testing.T, files map[string]string) *module {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	m, err := load(fsys, slices.Sorted(maps.Keys(files)))
	if err != nil {
		t.Fatal(err)
	}
	return m
}
