package lab

import (
	"os"
	"strconv"
	"testing"
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
func Jobs(t testing.TB, short, long int) int {
	said := os.Getenv("PACHT_JOBS")
	if said == "" || !Long() {
		return Scale(short, long)
	}
	n, err := strconv.Atoi(said)
	if err != nil || n < short {
		t.Fatalf("PACHT_JOBS=%q: want a number from %d on", said, short)
	}
	return n
}
