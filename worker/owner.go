package worker

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"

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
	tail := fmt.Sprintf(":%d:%d:%s", os.Getpid(), clock.Now().Time().Unix(), hex.EncodeToString(chance[:]))
	return pacht.SafeText(name, pacht.MaxOwnerBytes-len(tail)) + tail
}
