package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootTime counts from the start of the machine, suspension included.
func bootTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
