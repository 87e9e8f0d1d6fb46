//go:build unix

package meter

import (
	"runtime"
	"syscall"
	"time"
)

// OwnCPU is the CPU time of this process since its start; false if it is unknown.
func OwnCPU() (time.Duration, bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}

// PeakRSS is the most memory that this process has had resident since its start, in bytes;
// false if it is unknown.
func PeakRSS() (int64, bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return int64(u.Maxrss), true
	}
	return int64(u.Maxrss) * 1024, true
}
