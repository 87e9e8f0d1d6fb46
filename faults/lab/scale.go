package lab

import (
	"os"
	"strconv"
)

// Long says whether the long form was asked for, by PACHT_FAULTS=long.
func Long() bool { return os.Getenv("PACHT_FAULTS") == "long" }

// Scale picks a size by the form.
func Scale(short, long int) int {
	if Long() {
		return long
	}
	return short
}

// Jobs is Scale for the jobs of the tests in which everything happens at once. At length PACHT_JOBS
// says another number of them.
func Jobs(short, long int) int {
	if n, err := strconv.Atoi(os.Getenv("PACHT_JOBS")); err == nil && Long() {
		return n
	}
	return Scale(short, long)
}
