package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/pacht-queue/pacht"
)

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("no JSON: %v\n%s", err, text)
	}
}

// keysOf lists the keys of an object, or of the first of an array.
func keysOf(t *testing.T, text string) []string {
	t.Helper()
	var object map[string]json.RawMessage
	if strings.HasPrefix(text, "[") {
		var array []map[string]json.RawMessage
		decode(t, text, &array)
		if len(array) == 0 {
			t.Fatal("an empty array")
		}
		object = array[0]
	} else {
		decode(t, text, &object)
	}
	keys := make([]string, 0, len(object))
	for k := range object {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func TestJSONOfEveryCommandHasItsDocumentedKeys(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shell) {
		for _, empty := range [][]string{{"jobs", "list"}, {"stuck"}, {"queues", "list"}, {"workers"}, {"migrate", "up"}} {
			if out := s.ok(append(empty, "--json")...); out != "[]\n" {
				t.Errorf("pacht %q of an empty database: %s", empty, out)
			}
		}
		id := s.enqueue("k", `{"a":1}`, "--metadata", `{"m":1}`)
		w := s.work(s.script("exit 100"), "--kind", "k")
		db := s.store()
		becomes(t, db, id, pacht.Dead)
		until(t, "the worker has signed on", func() bool {
			workers, err := db.Workers(t.Context())
			return err == nil && len(workers) > 0
		})
		w.stop()
		s.ok(ann("jobs", "retry", id)...)
		held := s.claim(id)
		job := "attempt claimed_at crash_policy crashes created_at id kind lease_owner lease_until max_attempts max_crashes priority queue run_at status token ttl_ns"
		for _, c := range []struct {
			keys string
			args []string
		}{
			{job, []string{"jobs", "list"}},
			{job + " args metadata why steps effects attempts reports audit", []string{"jobs", "show", id}},
			{"queue pending due processing expired stuck dead cancelled settings", []string{"queues", "list"}},
			{"queue pending due processing expired stuck dead cancelled settings audit", []string{"queues", "show", "default"}},
			{"queue ttl_ns", ann("queues", "set", "default", "--ttl", "1m")},
			{"owner host pid queues kinds beat_every_ns started_at beat_at stopped_at state", []string{"workers"}},
			{"id act status token", ann("jobs", "release", id, "--token", held.Token.String())},
			{"id act status token", ann("jobs", "cancel", id)},
			{"id act status token", ann("jobs", "retry", id)},
			{"id act status token", ann("jobs", "resolve", id, "--as", "Dead", "--error", "no")},
			{"id duplicate", []string{"enqueue", "other"}},
			{"stored duplicates refused errors", []string{"enqueue", "--batch"}},
			{"status deleted", []string{"jobs", "prune", "--status", "Dead", "--older-than", "0s"}},
			{"version name applied_at", []string{"migrate", "status"}},
			{"sql", []string{"migrate", "sql"}},
			{"database now ok questions more violations", []string{"doctor"}},
		} {
			want := strings.Fields(c.keys)
			slices.Sort(want)
			r := s.run(append(c.args, "--json")...)
			got := keysOf(t, r.out)
			// A worker may or may not have held anything; a list may leave metadata out.
			got = slices.DeleteFunc(got, func(k string) bool {
				return k == "last_until" && c.args[0] == "workers" || k == "metadata" && c.args[1] == "list"
			})
			if !slices.Equal(got, want) {
				t.Errorf("pacht %q has the keys\n%v, want\n%v", c.args, got, want)
			}
		}
	})
}

func TestIdsAndTokensAreStringsInJSON(t *testing.T) { // S074
	t.Parallel()
	s := migrated(t)
	id := s.enqueue("k", `{"n":9007199254740993}`)
	s.claim(id)
	out := s.ok("jobs", "show", id, "--json")
	for _, want := range []string{`"id": "` + id + `"`, `"token": "1"`, `9007199254740993`} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
}

// walk visits every command.
func walk(c *cobra.Command, visit func(*cobra.Command)) {
	visit(c)
	for _, sub := range c.Commands() {
		walk(sub, visit)
	}
}

func TestEveryCommandHasHelpAndItsDataIsDocumented(t *testing.T) {
	started := false
	documented := 0
	walk(rootCommand(&started), func(c *cobra.Command) {
		if c.Hidden {
			return
		}
		if c.Short == "" || (c.Long == "" && c.Parent() != nil && c.Parent().Name() != "completion") {
			t.Errorf("%q has no help", c.CommandPath())
		}
		if strings.Contains(c.Long, "JSON: ") {
			documented++
		}
		for _, line := range strings.Split(c.Long, "\n") {
			if len(line) > 100 {
				t.Errorf("help of %q has a line of %d bytes: %s", c.CommandPath(), len(line), line)
			}
		}
	})
	if documented < 15 {
		t.Errorf("only %d commands document their JSON", documented)
	}
}

func TestHelpNamesEnvironmentExitCodesAndCompletion(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	out := s.ok("--help")
	for _, want := range []string{"PACHT_DB", "sqlite:pacht.db", "postgres://", "Exit codes:", "completion", "doctor"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if out := s.ok("completion", "bash"); !strings.Contains(out, "pacht") {
		t.Error("no completion for bash")
	}
	if out := s.real("", "__complete", "jobs", "list", "--status", "P").out; !strings.Contains(out, "Pending") || !strings.Contains(out, "Processing") {
		t.Errorf("no completion of --status: %s", out)
	}
	if out := s.ok("--version"); !strings.HasPrefix(out, "pacht ") {
		t.Errorf("version: %s", out)
	}
}
