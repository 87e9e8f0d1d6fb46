package reconcile_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/reconcile"
	"github.com/pacht-queue/pacht/sqlite"
)

// orders is our side: here in memory, in earnest rows of a table.
type orders struct {
	store *sqlite.Store
	state map[string]reconcile.State
}

// Reference says what a job is about; these have no jobs.
func (orders) Reference(pacht.JobInfo) string { return "" }

// Find is our record: amount and state as we have them.
func (o orders) Find(_ context.Context, reference string) (reconcile.Record, error) {
	state, ok := o.state[reference]
	if !ok {
		return reconcile.Record{State: reconcile.NotFound}, nil
	}
	return reconcile.Record{Reference: reference, State: state, Amount: euro(1999)}, nil
}

// Pending is a page of what is pending, by reference.
func (o orders) Pending(ctx context.Context, _ time.Duration, after string, _ int) (page []reconcile.Record, err error) {
	if o.state["pay_1"] == reconcile.Pending && after < "pay_1" {
		page = append(page, reconcile.Record{Reference: "pay_1", State: reconcile.Pending, Amount: euro(1999)})
	}
	return page, nil
}

// Reversible is a page of what succeeded and may come back.
func (orders) Reversible(context.Context, string, int) ([]reconcile.Record, error) { return nil, nil }

// Heal is the transition that webhooks use too: the rows, and last CommitTx, in one transaction.
func (o orders) Heal(ctx context.Context, f *reconcile.Finding) error {
	tx, err := o.store.DB().BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	// In earnest: UPDATE payments SET state = ... WHERE reference = ... AND state = 'pending'
	if err := f.CommitTx(ctx, o.store.Tx(tx)); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	o.state[f.Theirs.Reference] = f.Theirs.State
	return nil
}

// bankClient is the provider's side: one question, by our reference.
type bankClient struct{}

// Lookup answers NotFound only if the provider says so; an error says nothing.
func (bankClient) Lookup(_ context.Context, reference string) (reconcile.Record, error) {
	return reconcile.Record{Reference: reference, ProviderID: "ch_1", State: reconcile.Succeeded, Amount: euro(1999)}, nil
}

// A payment stayed pending here, because its webhook was lost. One pass finds that it was paid.
func TestAPaymentWhoseWebhookWasLostIsHealed(t *testing.T) {
	store, err := sqlite.Open(filepath.Join(t.TempDir(), "shop.db"), sqlite.Config{})
	must(t, err)
	defer func() { must(t, store.Close()) }()
	_, err = store.MigrateUp(t.Context())
	must(t, err)
	ours := orders{store, map[string]reconcile.State{"pay_1": reconcile.Pending}}
	r, err := reconcile.New(reconcile.Config{Store: store, Ours: ours, Theirs: bankClient{}})
	must(t, err)
	report, err := r.Pass(t.Context(), reconcile.LanePending, false)
	must(t, err)
	if got := fmt.Sprint(report.Healed, ours.state); got != "1 map[pay_1:succeeded]" {
		t.Error(got)
	}
}
