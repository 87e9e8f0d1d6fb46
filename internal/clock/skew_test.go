//go:build faultlab

package clock

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func restore() { wall, boot = time.Now, bootTime }

func TestWrongClocksAreOffFromTheStartOrJumpWhenTheirFileAppears(t *testing.T) {
	defer restore()
	file := filepath.Join(t.TempDir(), "jump")
	skews, err := parseSkews("wall=-1h,boot=+10m@"+file+",wall=+2h@"+file, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	install(skews)
	i := Now()
	if off := time.Until(i.Time()); off > -59*time.Minute || off < -61*time.Minute {
		t.Errorf("the wall clock is off by %s, want -1h", off)
	}
	if d := i.Elapsed(); d > time.Minute {
		t.Errorf("%s have passed before any jump", d)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if d := i.Elapsed(); d < 119*time.Minute {
		t.Errorf("%s have passed after the wall clock jumped 2h", d)
	}
	if d := Now().boot - i.boot; d < 10*time.Minute || d > 11*time.Minute {
		t.Errorf("boot time went on by %s, want 10m", d)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if off := time.Until(Now().Time()); off < 59*time.Minute {
		t.Errorf("the clock jumped back to %s", off)
	}
}

// R8: a suspended machine's boot time tells, though neither wall nor monotonic clock does.
func TestSuspensionIsSeenByBootTimeAlone(t *testing.T) {
	defer restore()
	skews, err := parseSkews("boot=+10m@20ms", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	install(skews)
	i := Now()
	for deadline := time.Now().Add(5 * time.Second); i.Elapsed() < 10*time.Minute; {
		if time.Now().After(deadline) {
			t.Fatal("the jump did not come")
		}
	}
}

func TestWhatIsNoSkewIsRefused(t *testing.T) {
	for _, bad := range []string{"wall", "mono=+1s", "wall=soon", "wall=+1s@soon", "boot=+1s@rel/path"} {
		if _, err := parseSkews(bad, time.Now()); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
