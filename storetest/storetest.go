// Package storetest is the conformance suite of Pacht's stores: the test of every promise
// that the interfaces of the root package make. A new database is one package that passes it.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Backend { ... })
//	}
package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
)

// Store is what the suite runs against.
type Store interface {
	pacht.Store
	pacht.Migrator
	// Age moves every stored time back by d, as if it had passed. Infinity stays infinity.
	Age(ctx context.Context, d time.Duration) error
}

// Txn is a caller's open transaction, with the verbs that belong in one.
type Txn interface {
	pacht.Tx
	// Exec runs one statement in the transaction.
	Exec(ctx context.Context, sql string) error
	Commit(ctx context.Context) error
	Rollback(ctx context.Context) error
}

// Backend is one fresh, migrated database. Who opens it closes it by t.Cleanup.
type Backend struct {
	Store Store
	// Reopen opens the same database once more, as another process would.
	Reopen func(t *testing.T) Store
	// Begin opens a transaction with a connection of its own, as an application would.
	Begin func(ctx context.Context) (Txn, error)
	// Exec runs one statement of SQL outside the store, and says how many rows it changed.
	Exec func(ctx context.Context, sql string) (int64, error)
	// Query reads rows outside the store: each value as text, NULL as "NULL".
	Query func(ctx context.Context, sql string) ([][]string, error)
	// Table is the full name of one of the store's tables: "leases" is pacht.leases on one
	// database and pacht_leases on the other.
	Table func(name string) string
	// ForceBadPlans opens the same database with sessions that plan as badly as stale
	// statistics would make them. Nil where the planner has no such choice.
	ForceBadPlans func(t *testing.T) Store
}

// Run runs the suite. It calls open once for each group of cases; each group runs beside the
// others on its own database, and its cases one after the other. After every case the store's
// own Check must find nothing.
func Run(t *testing.T, open func(t *testing.T) Backend) {
	groups := []struct {
		name  string
		cases func(g *group)
	}{
		{"claim", claimCases},
		{"claim by id", claimIDCases},
		{"settle", settleCases},
		{"stale token", staleCases},
		{"renew", renewCases},
		{"expire", expireCases},
		{"enqueue", enqueueCases},
		{"keys", keyCases},
		{"transaction", txCases},
		{"effects", effectCases},
		{"operator", operatorCases},
		{"breaks", breakCases},
		{"resolve", resolveTxCases},
		{"race", raceCases},
		{"prune", pruneCases},
		{"sweep", sweepCases},
		{"reader", readerCases},
		{"wake", wakerCases},
		{"schema", schemaCases},
		{"model", modelCases},
	}
	for _, each := range groups {
		t.Run(each.name, func(t *testing.T) {
			t.Parallel()
			each.cases(&group{T: t, open: open})
		})
	}
}
