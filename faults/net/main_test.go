// Package net_test breaks the network between workers and their database: connections cut,
// delayed, silent, ended in the middle of a message, for each role of connection; answers lost
// after the commit, for each verb; poolers killed; too many connections.
package net_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	"github.com/pacht-queue/pacht/faults/lab"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// These tests wait for time-outs most of the time: more of them than there are cores.
	_ = flag.Set("test.parallel", "12") // fails only for a flag that is not there
	// A link that is closed while a toxic is added to it may write to nobody for ever.
	lab.Except = append(lab.Except, goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"))
	lab.Main(m)
}
