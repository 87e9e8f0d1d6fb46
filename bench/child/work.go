package child

import (
	"bufio"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/pacht-queue/pacht/bench/peer"
)

// work runs jobs until the parent says stop. Each handler marks its job, so that one that ran
// twice, or never, is found.
func (c *child) work(ctx context.Context, lines *bufio.Scanner, account account) (Report, error) {
	w, ok := c.session.(peer.Worker)
	if !ok {
		return Report{}, errCannot
	}
	marks := make([]mark, c.task.Jobs)
	var handled atomic.Int64
	handle := func(number int) {
		if number >= 0 && number < len(marks) {
			m := &marks[number]
			if m.count.Add(1) == 1 {
				m.at = time.Now().UnixNano()
			}
		}
		handled.Add(1)
	}

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- w.Work(ctx, handle) }()
	told := make(chan string, 1)
	go func() {
		if lines.Scan() {
			told <- lines.Text()
		} else {
			told <- "end of input"
		}
	}()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	var report Report
	for said := int64(0); ; {
		select {
		case <-tick.C:
			if n := handled.Load(); n != said {
				said = n
				c.say(fmt.Sprintf("handled %d", n))
			}
			continue
		case err := <-ended:
			return report, fmt.Errorf("the worker ended by itself: %w", err)
		case line := <-told:
			if line != "stop" {
				return report, fmt.Errorf("told %q, want stop", line)
			}
			// What the stop costs is not part of the work.
			report = account.close(int(handled.Load()))
		}
		break
	}
	stop()
	if err := <-ended; err != nil {
		return report, fmt.Errorf("stop the worker: %w", err)
	}
	report.Jobs = int(handled.Load())
	return report, writeMarks(c.task.Out, marks)
}

type mark struct {
	count atomic.Int32
	at    int64 // of the first call
}

func writeMarks(name string, marks []mark) error {
	counts, times := make(Counts, len(marks)), make(Times, len(marks))
	for i := range marks {
		counts[i] = uint8(min(marks[i].count.Load(), 255))
		times[i] = marks[i].at
	}
	if err := counts.write(name); err != nil {
		return err
	}
	return times.write(name + ".times")
}
