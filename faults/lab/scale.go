package lab

import "os"

// Long says whether the long form was asked for, by PACHT_FAULTS=long.
func Long() bool { return os.Getenv("PACHT_FAULTS") == "long" }

// Scale picks a size by the form.
func Scale(short, long int) int {
	if Long() {
		return long
	}
	return short
}
