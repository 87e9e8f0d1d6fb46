//go:build !unix

package meter

import "time"

// OwnCPU is unknown on this system.
func OwnCPU() (time.Duration, bool) { return 0, false }

// PeakRSS is unknown on this system.
func PeakRSS() (int64, bool) { return 0, false }
