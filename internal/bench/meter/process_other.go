//go:build !linux

package meter

import "time"

// ProcessCPU is unknown on this system.
func ProcessCPU(int) (time.Duration, bool) { return 0, false }

// ServerCPU is unknown on this system.
func ServerCPU(int) (time.Duration, bool) { return 0, false }

func postmasterOf(int, []string) int { return 0 }
