// Command psp is the simulated payment provider of the payments example, in a process of its own.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/pacht-queue/pacht/examples/payments/psp"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "psp:", err)
		os.Exit(1)
	}
}

func run() (err error) {
	cfg := psp.Config{Latency: 50 * time.Millisecond, KeyLife: 24 * time.Hour}
	mixed := flag.Bool("mixed", false, "let everything happen that can happen, by the seed")
	flag.StringVar(&cfg.Ledger, "ledger", "psp.jsonl", "the file of its ledger")
	flag.StringVar(&cfg.Listen, "listen", "127.0.0.1:8481", "where to serve")
	flag.Uint64Var(&cfg.Seed, "seed", 1, "decides what happens")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "A simulated payment provider. Scenarios: %s\n", strings.Join(psp.Scenarios(), ", "))
		flag.PrintDefaults()
	}
	flag.Parse()
	if *mixed {
		cfg.Mix = map[string]int{}
		for _, name := range psp.Scenarios() {
			cfg.Mix[name] = 1
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server, err := psp.Open(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	return server.Serve(ctx, func(url string) error { fmt.Println("provider at", url); return nil })
}
