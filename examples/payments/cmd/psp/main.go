// Command psp is the simulated payment provider of the payments example, in a process of its own.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/pacht-queue/pacht/examples/payments/psp"
)

func main() {
	cfg, err := parse(os.Args[1:], os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil: // it was told
		os.Exit(2)
	}
	if err := run(cfg); err != nil {
		fmt.Fprintln(os.Stderr, "psp:", err)
		os.Exit(1)
	}
}

const usage = `A simulated payment provider. Scenarios: %s

The secret that signs its webhooks is told to it together with their address, by its customer:
it is in the environment variable PSP_SECRET of the payments command.

Flags:
`

// parse reads the command line, and tells out what is wrong with it.
func parse(args []string, out io.Writer) (psp.Config, error) {
	cfg := psp.Config{Latency: 50 * time.Millisecond, KeyLife: 24 * time.Hour}
	flags := flag.NewFlagSet("psp", flag.ContinueOnError)
	flags.SetOutput(out)
	mixed := flags.Bool("mixed", false, "let everything happen that can happen, by the seed")
	flags.StringVar(&cfg.Ledger, "ledger", "psp.jsonl", "the `file` of its ledger")
	flags.StringVar(&cfg.Listen, "listen", "127.0.0.1:8481", "the `address` to serve at")
	flags.Uint64Var(&cfg.Seed, "seed", 1, "decides what happens")
	flags.Usage = func() {
		fmt.Fprintf(out, usage, strings.Join(psp.Scenarios(), ", "))
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return cfg, err
	}
	if flags.NArg() > 0 {
		err := fmt.Errorf("unexpected argument %q: there are only flags", flags.Arg(0))
		fmt.Fprintln(out, "psp:", err)
		return cfg, err
	}
	if *mixed {
		cfg.Mix = map[string]int{}
		for _, name := range psp.Scenarios() {
			cfg.Mix[name] = 1
		}
	}
	return cfg, nil
}

func run(cfg psp.Config) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server, err := psp.Open(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	return server.Serve(ctx, func(url string) error { fmt.Println("provider at", url); return nil })
}
