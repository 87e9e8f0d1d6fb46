package main

import (
	"os"
	"strings"
	"testing"
)

// What the demo does is tested where it is made; here is its command line.
func TestDemoRefusesBadOrdersAndMakesNothing(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--payments", "0"}, "payments: 0 is not allowed, want 1 to 100,000"},
		{[]string{"--payments", "100001"}, "want 1 to 100,000"},
		{[]string{"--payments", "many"}, "payments"},
		{[]string{"--seed", "-1"}, "seed"},
		{[]string{"--db", "sqlite:x.db"}, "--keep FILE"},
		{[]string{"--keep", "."}, "not there yet"},
		{[]string{"more"}, "more"},
	} {
		out, err := s.command(append([]string{"demo"}, c.args...)...).CombinedOutput()
		if err == nil || err.Error() != "exit status 2" || !strings.Contains(string(out), c.want) {
			t.Errorf("%v: %v, %s", c.args, err, out)
		}
	}
	if left, err := os.ReadDir(s.dir); err != nil || len(left) > 0 {
		t.Errorf("made %v, %v", left, err)
	}
}

// Its processes are for its own use: hidden, and of no use to anybody else.
func TestProcessesOfTheDemoAreHiddenAndWantATask(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	help, err := s.command("demo", "--help").CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"psp", "Available Commands"} {
		if strings.Contains(string(help), word) {
			t.Errorf("help shows %q:\n%s", word, help)
		}
	}
	for _, word := range []string{"--ignore-keys", "half a minute"} {
		if !strings.Contains(string(help), word) {
			t.Errorf("help does not show %q:\n%s", word, help)
		}
	}
	for _, name := range []string{"worker", "psp"} {
		out, err := s.command("demo", name).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "for the demo's own use") {
			t.Errorf("%s: %v, %s", name, err, out)
		}
	}
}
