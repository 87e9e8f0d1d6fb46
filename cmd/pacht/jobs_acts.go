package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/database"
)

// acted is what an act by hand came to.
type acted struct {
	ID     pacht.ID     `json:"id"`
	Act    string       `json:"act"`
	Status pacht.Status `json:"status"`
	// Token is the token that fenced the act; nil if none did. 0 is one: of a job never claimed.
	Token *pacht.Token `json:"token"`

	said string
}

// actCommand is a command that does one act to one job.
func actCommand(g *globals, use, short, long string, do func(ctx context.Context, db database.Database, id pacht.ID, act pacht.Act) (acted, error)) *cobra.Command {
	var f actFlags
	c := &cobra.Command{
		Use:   use + " ID --by NAME --reason TEXT",
		Short: short,
		Long:  long + "\n\nJSON: {id, act, status, token}: the status it has now, and the token that fenced the act, null\nif none did (cancel and retry).",
		Args:  exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := pacht.ParseID(args[0])
			if err != nil {
				return err
			}
			if err := f.act.Validate(); err != nil {
				return err
			}
			db, err := g.open(cmd.Context())
			if err != nil {
				return err
			}
			defer db.Close()
			a, err := do(cmd.Context(), db, id, f.act)
			if err != nil {
				return fmt.Errorf("%s job %d: %w", use, id, err)
			}
			a.ID, a.Act = id, use
			if g.json {
				return printJSON(cmd, a)
			}
			printf(cmd, "job %d: %s\n", id, clean(a.said))
			return nil
		},
	}
	f.add(c)
	return c
}

func jobsRetryCommand(g *globals) *cobra.Command {
	return actCommand(g, "retry", "Take a Stuck, Dead or Cancelled job back to Pending",
		`Take a Stuck, Dead or Cancelled job back to Pending, due now. Token and attempt go on, its
crashes are forgotten, and it gets its original number of attempts once more. A Completed job
never goes back.`,
		func(ctx context.Context, db database.Database, id pacht.ID, act pacht.Act) (acted, error) {
			return acted{Status: pacht.Pending, said: "is Pending again, due now"}, db.Retry(ctx, id, act)
		})
}

func jobsCancelCommand(g *globals) *cobra.Command {
	return actCommand(g, "cancel", "Cancel a job, or ask the holder of a running one to stop",
		`Cancel a Pending or Stuck job at once. For a Processing job it sets a request, which reaches
the holder with its next renewal; success is still success.`,
		func(ctx context.Context, db database.Database, id pacht.ID, act pacht.Act) (acted, error) {
			status, err := db.Cancel(ctx, id, act)
			a := acted{Status: status, said: "is " + string(status)}
			if status == pacht.Processing {
				a.said = "it runs; a cancel is requested and reaches the holder at its next renewal"
			}
			return a, err
		})
}

func jobsReleaseCommand(g *globals) *cobra.Command {
	var token string
	c := actCommand(g, "release", "Take the lease from its holder: Processing to Pending",
		`Take the lease from its holder: Processing to Pending, with the attempt given back. The holder
hears of it at its next renewal, and until then it works on: release only what is dead or
may run twice. It is fenced: with --token it applies to that lease only, else to the one that
was just read.`,
		func(ctx context.Context, db database.Database, id pacht.ID, act pacht.Act) (acted, error) {
			ref, read, err := fence(ctx, db, id, token)
			if err != nil {
				return acted{}, err
			}
			status, err := db.Release(ctx, ref, act)
			return acted{Status: status, Token: &ref.Token, said: fmt.Sprintf("is %s; the lease with token %d%s was taken from its holder", status, ref.Token, read)}, err
		})
	c.Flags().StringVar(&token, "token", "", "release only the lease with this token")
	return c
}

func jobsResolveCommand(g *globals) *cobra.Command {
	var token, as, output, failure string
	c := actCommand(g, "resolve", "Close a Pending or Stuck job as Completed or Dead",
		`Close a Pending or Stuck job by hand, because it was found out what really happened: as
Completed or as Dead. It is fenced: with --token it applies only if the job still has that
token, else to the one that was just read. Of two that resolve, one wins.`,
		func(ctx context.Context, db database.Database, id pacht.ID, act pacht.Act) (acted, error) {
			ref, read, err := fence(ctx, db, id, token)
			if err != nil {
				return acted{}, err
			}
			res := pacht.Resolution{Status: pacht.Status(as), Output: json.RawMessage(output), Error: failure}
			err = db.Resolve(ctx, ref, res, act)
			return acted{Status: res.Status, Token: &ref.Token, said: fmt.Sprintf("is %s; resolved from token %d%s", as, ref.Token, read)}, err
		})
	c.Flags().StringVar(&token, "token", "", "only if the job has this token")
	c.Flags().StringVar(&as, "as", "", "Completed or Dead (required)")
	c.Flags().StringVar(&output, "output", "", "what was found out, as JSON")
	c.Flags().StringVar(&failure, "error", "", "what went wrong, with --as Dead")
	completeWith(c, "as", string(pacht.Completed), string(pacht.Dead))
	c.PreRunE = func(*cobra.Command, []string) error {
		as = string(statusNamed(as))
		if err := (pacht.Resolution{Status: pacht.Status(as)}).Validate(); err != nil {
			return err
		}
		if failure != "" && as != string(pacht.Dead) {
			return &pacht.InvalidError{Field: "error", Value: strconv.Quote(cut(failure, 40)), Bound: "an error only with --as Dead"}
		}
		if output == "" {
			return nil
		}
		return pacht.Limits{}.ValidJSON("output", json.RawMessage(output))
	}
	return c
}

// fence is the lease that an act applies to: with the token given, else the one just read,
// and then it says so.
func fence(ctx context.Context, db pacht.Reader, id pacht.ID, token string) (pacht.Ref, string, error) {
	if token != "" {
		n, err := strconv.ParseUint(token, 10, 63)
		if err != nil {
			return pacht.Ref{}, "", &pacht.InvalidError{Field: "token", Value: strconv.Quote(cut(token, 40)), Bound: "a whole number, 0 or more"}
		}
		return pacht.Ref{Job: id, Token: pacht.Token(n)}, "", nil
	}
	j, err := db.Job(ctx, id)
	return j.Ref(), " (just read)", err
}
