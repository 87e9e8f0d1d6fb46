// Command model checks the formal model of the lease, lease.pml, with spin: the model must hold,
// and each mutant of it must break the invariant that it is expected to break. It prints one line
// for each and exits with 1 if spin's answer is another. It needs spin and a C compiler, which
// scripts/model gets. MODEL=large adds what takes minutes. Arguments are names of single checks.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, os.Args[1:], os.Getenv("MODEL") == "large"); err != nil {
		fmt.Fprintln(os.Stderr, "model:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, names []string, large bool) error {
	chosen, err := choose(names, large)
	if err != nil {
		return err
	}
	answers := make([]answer, len(chosen))
	var wg sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, c := range chosen {
		wg.Go(func() {
			free <- struct{}{}
			answers[i] = c.run(ctx)
			<-free
		})
	}
	wg.Wait()
	return report(out, chosen, answers)
}

// choose takes the checks of these names, or all.
func choose(names []string, large bool) ([]check, error) {
	var chosen []check
	for _, c := range checks {
		if slices.Contains(names, c.name) || len(names) == 0 && (large || !c.large) {
			chosen = append(chosen, c)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(checks, func(c check) bool { return c.name == name }) {
			return nil, fmt.Errorf("no check has the name %q", name)
		}
	}
	return chosen, nil
}

func report(out io.Writer, chosen []check, answers []answer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "check\tmust\tanswer\tstates\tdepth\tCPU")
	wrong, cpu := 0, time.Duration(0)
	for i, c := range chosen {
		a := answers[i]
		verdict := "as it must"
		if why := c.differs(a); why != "" {
			verdict, wrong = "WRONG: "+why, wrong+1
		}
		must := "hold"
		if c.want != "" {
			must = "break " + c.want
		}
		cpu += a.cpu
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t%.1fs\n", c.name, must, verdict, a.states, a.depth, a.cpu.Seconds())
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d checks, %.0f s of CPU\n", len(chosen), cpu.Seconds())
	for i, c := range chosen {
		if c.differs(answers[i]) != "" && answers[i].trail != "" {
			fmt.Fprintf(out, "\n%s: how it came to that\n%s\n", c.name, answers[i].trail)
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%d of %d checks have another answer than they must", wrong, len(chosen))
	}
	return nil
}
