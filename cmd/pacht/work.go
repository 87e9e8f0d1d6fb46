package main

import (
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/database"
	"github.com/pacht-queue/pacht/worker"
)

type workFlags struct {
	kinds, queues             []string
	timeout, grace, killAfter time.Duration
	snooze, snoozeMax, poll   time.Duration
	noWatch, noSweep          bool
	keep                      pacht.Retention
	name, logLevel            string
}

func workCommand(g *globals) *cobra.Command {
	f := workFlags{grace: 10 * time.Second, killAfter: 5 * time.Second, snooze: 30 * time.Second, snoozeMax: time.Hour, poll: time.Second}
	c := &cobra.Command{
		Use:   "work --kind KIND [flags] -- COMMAND [ARG]...",
		Short: "Run jobs of chosen kinds through a command",
		Long: `Run jobs of chosen kinds: for each, COMMAND is started with the job's args on standard input,
as the JSON they were enqueued as, byte for byte. How it ends decides:

  exit code 0      completed; standard output is kept as the job's output
                   (JSON as it is, 1 MiB at most; other text as a string, 170 KiB)
  exit code 75     snoozed: put off for --snooze, doubled each time, with no attempt used
  exit code 100    dead at once, whatever attempts are left
  any other,       failed, and retried until max_attempts; the end of standard error
  or a signal      is kept as the error (16 KiB at most)

In its environment:
  PACHT_JOB_ID, PACHT_TOKEN, PACHT_KIND, PACHT_QUEUE, PACHT_OWNER,
  PACHT_ATTEMPT (from 1), PACHT_MAX_ATTEMPTS, PACHT_CRASHES,
  PACHT_LEASE_SECONDS (how long a lease lasts without renewal)

While it runs, the lease is renewed. When the lease is lost or cannot be renewed, when a cancel
is requested, at --timeout, and at a stop once --grace is over, the command's process group
gets SIGTERM, and SIGKILL after --kill-after. What the command leaves behind in its process
group is killed when it ends.

A command that was signalled so has been stopped, whatever its exit code: many programs exit
with 0 on SIGTERM. Its attempt has failed, and is given back unless --timeout was the cause;
after a cancel request the job is cancelled; with on-crash hold the outcome is unknown and the
job is parked. The end of standard error is kept.

Two commands may run for one job at the same time, and the lease cannot prevent it:
  - When the lease is lost, the command may still run for --kill-after, past the end of the
    lease if that is longer than what is left of it, while another worker has the job.
  - kill -9 of this process (or the OOM killer) kills the command as well, on Linux, but not
    what the command has started. End a wrapper script with exec, so that the program that
    does the work is the command itself.
  - SIGSTOP of this process stops its renewals, but not the command, which runs on past its
    lease.
So let the command give the provider an idempotency key that is the same for each attempt, such
as PACHT_JOB_ID: then the second call does nothing. PACHT_TOKEN tells the attempts apart.

SIGTERM or SIGINT stops in order: no new jobs, running ones may go on for --grace. A second
signal, a quarter of a second later or more, stops at once; its jobs are free again when their
leases end.

A database that cannot be reached, is starting or has no connection left is waited for; one that
refuses the password, the database's name or the rights is not. A Stuck Watcher runs along, unless
--no-watch.

` + keepHelp + `

Logs go to standard error: for people on a terminal, as JSON lines elsewhere.`,
		Example: `  pacht work --kind mail -- ./send-mail
  pacht work --kind charge --queue payments=8 --timeout 30s -- python3 charge.py
  pacht work --kind hello -- sh -c 'echo "job $PACHT_JOB_ID says $(cat)" >&2'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("no COMMAND to run: it stands after --")
			}
			if dash := cmd.ArgsLenAtDash(); dash != 0 {
				return fmt.Errorf("unexpected argument %q: the COMMAND and all its arguments stand after --", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, g, args) },
	}
	fl := c.Flags()
	fl.StringArrayVar(&f.kinds, "kind", nil, "kind of jobs to take; may be repeated")
	fl.StringArrayVar(&f.queues, "queue", nil, "queue and how many jobs of it at once, as Q or Q=N; may be repeated (default default=1)")
	fl.Var(durationValue{&f.timeout}, "timeout", "stop a command that runs longer (default: none)")
	fl.Var(durationValue{&f.grace}, "grace", "at a stop, let commands run on that long")
	fl.Var(durationValue{&f.killAfter}, "kill-after", "from SIGTERM to SIGKILL; also when less is left of a lost lease")
	fl.Var(durationValue{&f.snooze}, "snooze", "how long exit code 75 puts a job off the first time")
	fl.Var(durationValue{&f.snoozeMax}, "snooze-max", "the longest that it is put off")
	fl.Var(durationValue{&f.poll}, "poll", "how often to look for due jobs when idle, 1ms to 1h")
	fl.BoolVar(&f.noWatch, "no-watch", false, "run no Stuck Watcher, because pacht watch does")
	fl.StringVar(&f.name, "name", "", "stands for the host in the owner's name (default: the host's name)")
	keepFlag(c, &f.keep, &f.noSweep)
	logFlag(c, &f.logLevel)
	return c
}

func (f *workFlags) run(cmd *cobra.Command, g *globals, args []string) error {
	log, err := newLogger(cmd.ErrOrStderr(), f.logLevel)
	if err != nil {
		return err
	}
	queues, err := parseQueues(f.queues)
	if err != nil {
		return err
	}
	if err := f.check(); err != nil {
		return err
	}
	path, err := exec.LookPath(args[0])
	if err != nil {
		return &pacht.InvalidError{Field: "command", Value: strconv.Quote(cut(args[0], 80)), Bound: "a program that is there and may be executed"}
	}
	run := &runner{path: path, args: args, killAfter: f.killAfter, snooze: pacht.Exponential{Base: f.snooze, Cap: f.snoozeMax}, log: log}
	ctx, stop := untilSignal(cmd.Context(), log, run.killAll)
	defer stop()

	// A wrong configuration is refused before the database is asked for.
	if _, err := worker.New(unopened{}, f.config(run, queues)); err != nil {
		return err
	}
	db, err := g.await(ctx, log)
	if err != nil {
		if errors.Is(err, pacht.ErrStopping) {
			return nil // stopped before there was anything to do
		}
		return err
	}
	defer db.Close()
	w, err := worker.New(db, f.config(run, queues))
	if err != nil {
		return err
	}
	log.Info("working", "database", database.Describe(g.url()), "owner", w.Owner(), "kinds", f.kinds, "queues", queues)
	err = w.Run(ctx)
	if err == nil {
		log.Info("stopped in order", "owner", w.Owner())
	}
	return err
}

func (f *workFlags) config(run *runner, queues map[string]int) worker.Config {
	cfg := worker.Config{
		Queues:  queues,
		Timeout: f.timeout,
		Grace:   max(f.grace, time.Nanosecond), // 0 means the default there
		Poll:    f.poll,
		NoWatch: f.noWatch,
		NoSweep: f.noSweep,

		Retention: f.keep,

		Name:   f.name,
		Logger: run.log,
		// A command may take until its SIGKILL to return, and that has to be waited for.
		Unwind:       f.killAfter + 2*time.Second,
		TimeoutGrace: f.killAfter + 2*time.Second,
	}
	for _, k := range f.kinds {
		cfg.Handlers = append(cfg.Handlers, worker.HandleKind(k, worker.HandlerOptions{}, run.handle))
	}
	return cfg
}

func (f *workFlags) check() error {
	if len(f.kinds) == 0 {
		return &pacht.InvalidError{Field: "kind", Bound: "at least one --kind KIND"}
	}
	for name, d := range map[string]time.Duration{"timeout": f.timeout, "grace": f.grace, "kill-after": f.killAfter} {
		if d < 0 {
			return &pacht.InvalidError{Field: name, Value: d.String(), Bound: "0 or more"}
		}
	}
	if f.poll == 0 { // which the library takes for its default
		return &pacht.InvalidError{Field: "poll", Value: "0s", Bound: "1ms to 1h"}
	}
	if f.snooze <= 0 || f.snooze > pacht.MaxDelay {
		return &pacht.InvalidError{Field: "snooze", Value: f.snooze.String(), Bound: "more than 0, up to 365 days"}
	}
	if f.snoozeMax < f.snooze || f.snoozeMax > pacht.MaxDelay {
		return &pacht.InvalidError{Field: "snooze-max", Value: f.snoozeMax.String(), Bound: "from --snooze, which is " + f.snooze.String() + ", up to 365 days"}
	}
	return nil
}

// parseQueues reads Q or Q=N.
func parseQueues(flags []string) (map[string]int, error) {
	if len(flags) == 0 {
		return map[string]int{pacht.DefaultQueue: 1}, nil
	}
	queues := map[string]int{}
	for _, s := range flags {
		name, number, given := strings.Cut(s, "=")
		n := 1
		if given {
			var err error
			if n, err = strconv.Atoi(number); err != nil || strings.HasPrefix(number, "+") {
				return nil, &pacht.InvalidError{Field: "queue", Value: strconv.Quote(cut(s, 60)), Bound: "QUEUE or QUEUE=N with N from 1 to 100000"}
			}
		}
		if _, twice := queues[name]; twice {
			return nil, &pacht.InvalidError{Field: "queue", Value: strconv.Quote(cut(s, 60)), Bound: "each queue once"}
		}
		queues[name] = n
	}
	return queues, nil
}
