package postgres

import (
	"math"

	"github.com/pacht-queue/pacht"
)

// floors is where the floor of each queue, set of kinds and priority will be kept: the pair
// (run_at, job_id) that the last claim got to. It is only a hint; see docs on bloat.
type floors struct{}

// floor is what one claim starts from.
type floor struct{}

func (floors) of(pacht.ClaimRequest) floor { return floor{} }

// noFloor is before any time that PostgreSQL can hold jobs for.
const noFloor = -1 << 55

func (floor) args() []any {
	args := make([]any, 0, 2*pacht.MaxPriority)
	for range pacht.MaxPriority {
		args = append(args, int64(noFloor), int64(math.MinInt64))
	}
	return args
}

func (floor) learn([]pacht.JobInfo, int) {}
