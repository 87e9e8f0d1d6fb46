package lab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/worker"
)

// Work is what the fleet's jobs are about: nothing.
type Work struct {
	N int `json:"n"`
	// Do makes this job another than the others: "" as the profile says, "nil" returns at once,
	// "tx" completes in a business transaction, "wait" ends with its context only.
	Do string `json:"do,omitempty"`
}

// Kind implements pacht.Args.
func (Work) Kind() string { return "work" }

// Handler is how the fleet's handlers behave. The zero value tells the recorder that it has
// begun, has an effect, tells that it ends, and returns nil. Shares are between 0 and 1; who is
// met is decided by the seed and the job or attempt, in whatever process it runs.
type Handler struct {
	Seed     uint64        `json:"seed,omitempty"`
	Least    time.Duration `json:"least,omitempty"`    // of an attempt
	Duration time.Duration `json:"duration,omitempty"` // on top of that, an even chance of up to this

	Long    float64       `json:"long,omitempty"` // share of the jobs that take LongFor, and so need renewals
	LongFor time.Duration `json:"long_for,omitempty"`
	Tx      float64       `json:"tx,omitempty"` // share of the jobs that are completed in a business transaction

	Fail   float64 `json:"fail,omitempty"`   // share of the attempts that fail after their effect
	Snooze float64 `json:"snooze,omitempty"` // share of the attempts that put the job off instead of the effect
	Panic  float64 `json:"panic,omitempty"`  // share of the attempts that panic after their effect

	Tell     bool `json:"tell,omitempty"`      // tell the recorder of each completion that the database has answered
	Ensure   bool `json:"ensure,omitempty"`    // ask for half the TTL before the effect
	Deaf     bool `json:"deaf,omitempty"`      // go on although the context was cancelled
	RepeatTx bool `json:"repeat_tx,omitempty"` // repeat the business transaction as a whole when its COMMIT fails
}

// hands is the handlers of one worker process.
type hands struct {
	Handler
	owner    string
	pen      *Pen // nil: nobody is told
	business business
}

// heard takes in what became of a job.
func (c *hands) heard(ev worker.Event) {
	if c.Tell && c.pen != nil && ev.Type == worker.EventSettled && ev.Status == pacht.Completed {
		_ = c.pen.Settled(ev.Job.Ref(), c.owner) // of what nobody was told nobody claims anything
	}
}

var errChance = errors.New("failed by chance")

func (c *hands) handle(ctx context.Context, job *pacht.Job[Work]) (err error) {
	if c.pen == nil {
		return c.work(ctx, job)
	}
	if err := c.pen.Begin(job.Ref(), c.owner); err != nil {
		return err
	}
	how := "panicked"
	defer func() {
		if endErr := c.pen.End(job.Ref(), c.owner, how); endErr != nil && err == nil {
			err = endErr
		}
	}()
	err = c.work(ctx, job)
	how = howEnded(err)
	return err
}

func howEnded(err error) string {
	switch {
	case err == nil:
		return "done"
	case errors.Is(err, ErrFenced):
		return "fenced"
	case errors.Is(err, errChance):
		return "failed"
	case errors.Is(err, pacht.ErrLeaseLost):
		return "lost"
	case errors.Is(err, context.Canceled), errors.Is(err, pacht.ErrStopping):
		return "cancelled"
	}
	return "error"
}

func (c *hands) work(ctx context.Context, job *pacht.Job[Work]) error {
	about := clock.Seeded(c.Seed, "job", job.ID.String())
	long, tx := about.Float64() < c.Long, about.Float64() < c.Tx
	chance := clock.Seeded(c.Seed, "attempt", job.Ref().String())
	switch job.Args.Do {
	case "nil":
		return nil
	case "tx":
		tx = true
	case "wait":
		<-ctx.Done()
		return context.Cause(ctx)
	}
	d := c.Least + time.Duration(chance.Float64()*float64(c.Duration))
	if long {
		d = c.LongFor
	}
	if err := c.pass(ctx, d); err != nil {
		return err
	}
	if c.Ensure {
		if err := job.Ensure(ctx, job.TTL/2); err != nil {
			return err
		}
	}
	fate := chance.Float64()
	if fate < c.Snooze {
		return pacht.Snooze(10 * time.Millisecond)
	}
	if c.pen != nil {
		if err := c.pen.Effect(job.Ref(), c.owner); err != nil {
			return err
		}
	}
	switch {
	case fate < c.Snooze+c.Fail:
		return errChance
	case fate < c.Snooze+c.Fail+c.Panic:
		panic(errChance)
	case !tx:
		return nil
	}
	return c.book(ctx, job)
}

// pass lets time pass. A deaf handler does not heed its context.
func (c *hands) pass(ctx context.Context, d time.Duration) error {
	if c.Deaf {
		ctx = context.WithoutCancel(ctx)
	}
	if d <= 0 {
		return nil
	}
	return clock.Sleep(ctx, d)
}

// book completes the job together with its row in the business table. A COMMIT that fails may
// have been carried out: the transaction is repeated as a whole, and CompleteTx tells (R4).
func (c *hands) book(ctx context.Context, job *pacht.Job[Work]) error {
	const tries = 20
	for try := 1; ; try++ {
		err := c.business.complete(ctx, job)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, pacht.ErrAlreadySettled) && try > 1:
			return nil // the first COMMIT was carried out after all
		case errors.Is(err, pacht.ErrLeaseLost), errors.Is(err, pacht.ErrAlreadySettled), !c.RepeatTx, try == tries:
			return fmt.Errorf("book %s, try %d: %w", job.Ref(), try, err)
		}
		if err := clock.Sleep(ctx, clock.Jitter(50*time.Millisecond)); err != nil {
			return err
		}
	}
}
