// Quickstart enqueues a job and runs it, on an SQLite file of its own.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/sqlite"
	"github.com/pacht-queue/pacht/worker"
)

// Charge is what is to be done: stored as JSON, byte for byte.
type Charge struct {
	PaymentID string `json:"payment_id"`
	Amount    int64  `json:"amount_minor"`
}

// Kind names the handler.
func (Charge) Kind() string { return "charge" }

func charge(ctx context.Context, job *pacht.Job[Charge]) error {
	fmt.Printf("charging %s, attempt %d, %s of the lease left\n", job.Args.PaymentID, job.Attempt, job.Remaining())
	return nil // completed; an error is retried, pacht.Permanent(err) is not
}

func run(ctx context.Context) error {
	store, err := sqlite.Open("quickstart.db", sqlite.Config{})
	if err != nil {
		return err
	}
	defer store.Close()
	if _, err := store.MigrateUp(ctx); err != nil {
		return err
	}
	client := pacht.NewClient(store)
	if _, err := client.Enqueue(ctx, Charge{"p-1", 1999}, pacht.IdempotencyKey("p-1")); err != nil {
		return err
	}
	w, err := worker.New(store, worker.Config{
		Queues:   map[string]int{"default": 10}, // concurrency
		Handlers: []worker.Handler{worker.Handle(charge)},
	})
	if err != nil {
		return err
	}
	return w.Run(ctx) // until Ctrl-C or SIGTERM
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}
