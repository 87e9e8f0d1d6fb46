//go:build !linux

package clock

import "time"

// bootTime is not read here: the wall clock counts suspension on these systems.
func bootTime() time.Duration { return 0 }
