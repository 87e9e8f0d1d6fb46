// Package room_test takes away what a server and its clients stand on: room on the disk, the
// right to write, clocks that agree, the isolation level they expect, locks that are free.
package room_test

import (
	"flag"
	"testing"

	"github.com/pacht-queue/pacht/faults/lab"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// These tests wait most of the time: more of them at once than there are cores.
	_ = flag.Set("test.parallel", "8") // fails only for a flag that is not there
	lab.Main(m)
}
