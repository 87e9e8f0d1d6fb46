package failover

import (
	"testing"

	"github.com/pacht-queue/pacht/faults/lab"
)

func TestMain(m *testing.M) { lab.Main(m) }
