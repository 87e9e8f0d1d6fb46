//go:build faultlab && unix

package failpoint

import (
	"strings"
	"testing"
	"time"
)

func TestOrdersThatMakeNoSenseAreRefused(t *testing.T) {
	for order, says := range map[string]string{
		"a":                "want name=action@n",
		"a=die":            `the action "die"`,
		"a=kill@0":         `the passing "0": want a number from 1 on`,
		"a=kill@-1":        `the passing "-1"`,
		"a=kill:1s":        "a length goes with sleep",
		"a=sleep":          "a length goes with sleep",
		"a=sleep:soon":     "invalid duration",
		"a=sleep@2:-500ms": "the length -500ms: want 0 or more",
	} {
		if _, _, err := parse(order); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", order, err, says)
		}
	}
	name, trap, err := parse("a.b=sleep@3:500ms")
	if err != nil || name != "a.b" || trap.action != "sleep" || trap.at != 3 || trap.sleep != 500*time.Millisecond {
		t.Errorf("%s %+v, %v", name, trap, err)
	}
}
