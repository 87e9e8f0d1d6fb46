package worker

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"os"
	"strconv"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
)

// NewOwner makes a name for one run of one worker process: host, pid, start and a random
// part, so that it is never reused, not even by the same pid on the same host. name stands
// for the host if it is not empty.
func NewOwner(name string) string {
	if name == "" {
		name, _ = os.Hostname() // a host without a name still has a pid, a start and chance
	}
	var chance [4]byte
	_, _ = rand.Read(chance[:]) // never fails, by its documentation
	// Spelled short, because it stands in every lease and in every row of the ledger.
	started, random := clock.Now().Time().Unix(), int64(binary.BigEndian.Uint32(chance[:]))
	tail := fmt.Sprintf(":%d:%s:%s", os.Getpid(), strconv.FormatInt(started, 36), strconv.FormatInt(random, 36))
	return pacht.SafeText(name, pacht.MaxOwnerBytes-len(tail)) + tail
}
