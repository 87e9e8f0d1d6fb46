package sqlite

import (
	"fmt"

	"github.com/pacht-queue/pacht"
)

// ValidPrefix says of a prefix of tables what Open would say, without a file. "" stands for
// DefaultPrefix.
func ValidPrefix(prefix string) error {
	if prefix != "" && !prefixPattern.MatchString(prefix) {
		return &pacht.InvalidError{Field: "table prefix", Value: fmt.Sprintf("%.60q", prefix), Bound: "[a-z][a-z0-9_]*, at most 40 bytes"}
	}
	return nil
}
