// Command bench runs the same work on one PostgreSQL, which it starts, through Pacht and
// through other job queues, and writes what it found.
//
//	go run . run                      everything, into results/latest.json
//	go run . run --quick              a trial: 1 round, few jobs, into results/quick.json
//	go run . run --only drain,pickup --peers pacht,river-tuned     a part, into results/part.json
//	go run . report                   docs/benchmarks.md from results/latest.json
//	go run . list                     the names of peers and scenarios
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/pacht-queue/pacht/bench/child"
	"github.com/pacht-queue/pacht/bench/peer"
	"github.com/pacht-queue/pacht/bench/report"
	"github.com/pacht-queue/pacht/bench/result"
	"github.com/pacht-queue/pacht/bench/run"
)

func main() {
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

const usage = "want run, report or list; see go doc"

func command(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	switch args[0] {
	case "run":
		return measure(ctx, args[1:])
	case "report":
		return write(args[1:])
	case "list":
		for _, p := range peer.All() {
			a := p.About()
			fmt.Printf("%-16s %s\n", a.Name, a.Settings)
		}
		fmt.Printf("scenarios: %s\n", strings.Join(run.Scenarios(), " "))
		return nil
	case "child": // by this program itself, see package child
		if len(args) != 2 {
			return errors.New("a child has one argument, its task")
		}
		return child.Main(ctx, args[1])
	}
	return errors.New(usage)
}

const (
	latest = "results/latest.json"
	quick  = "results/quick.json"
	part   = "results/part.json"
	page   = "../docs/benchmarks.md"
)

func measure(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	cfg := run.Config{Out: os.Stdout}
	flags.IntVar(&cfg.Rounds, "rounds", 3, "how often each is measured; medians and spread are reported")
	flags.IntVar(&cfg.Jobs, "jobs", 100_000, "jobs of a drain and of a bulk insert; SQLite gets a tenth")
	flags.BoolVar(&cfg.Quick, "quick", false, "try it out: 1 round, 20,000 jobs")
	only := flags.String("only", "", "scenarios, separated by commas: "+strings.Join(run.Scenarios(), ", "))
	peers := flags.String("peers", "", "peers, separated by commas; see list")
	out := flags.String("out", "", "file for the results (default "+latest+"; of a part "+part+", with --quick "+quick+")")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if cfg.Quick {
		given := map[string]bool{}
		flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
		if !given["rounds"] {
			cfg.Rounds = 1
		}
		if !given["jobs"] {
			cfg.Jobs = 20_000
		}
	}
	if cfg.Rounds < 1 || cfg.Jobs < 1000 {
		return fmt.Errorf("rounds %d, jobs %d: want at least 1 and 1,000", cfg.Rounds, cfg.Jobs)
	}
	if *out == "" {
		switch *out = latest; {
		case cfg.Quick:
			*out = quick
		case *only != "" || *peers != "":
			*out = part // the page shows what was measured in one go
		}
	}
	var err error
	if cfg.Scenarios, err = names(*only, run.Scenarios()); err != nil {
		return fmt.Errorf("--only: %w", err)
	}
	var known []string
	for _, p := range peer.All() {
		known = append(known, p.About().Name)
	}
	if cfg.Peers, err = names(*peers, known); err != nil {
		return fmt.Errorf("--peers: %w", err)
	}
	cfg.Save = func(f *result.File) error { return f.Write(*out) }
	if err := os.MkdirAll(filepath.Dir(*out), 0o755); err != nil {
		return err
	}
	fmt.Printf("this takes about %.0f minutes on two cores; results go to %s\n", run.Estimate(cfg), *out)
	f, err := run.Run(ctx, cfg)
	if err != nil {
		return err
	}
	failed := 0
	for _, r := range f.Runs {
		if r.Error != "" {
			failed++
		}
	}
	fmt.Printf("%d runs, %d failed, %.0f s\n", len(f.Runs), failed, f.Took)
	return nil
}

// names splits a list and refuses what is not known.
func names(list string, known []string) ([]string, error) {
	if list == "" {
		return nil, nil
	}
	all := strings.Split(list, ",")
	for _, n := range all {
		if !slices.Contains(known, n) {
			return nil, fmt.Errorf("%q: want some of %s", n, strings.Join(known, ", "))
		}
	}
	return all, nil
}

func write(args []string) error {
	flags := flag.NewFlagSet("report", flag.ContinueOnError)
	from := flags.String("from", latest, "file with results")
	to := flags.String("to", page, "page to write; its charts go to a folder of its name")
	if err := flags.Parse(args); err != nil {
		return err
	}
	f, err := result.Read(*from)
	if err != nil {
		return err
	}
	return report.Write(f, *to)
}
