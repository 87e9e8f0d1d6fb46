package kill

import (
	"bytes"
	"os"
	"testing"

	"github.com/pacht-queue/pacht/faults/lab"
	"github.com/pacht-queue/pacht/internal/database"
	"github.com/pacht-queue/pacht/internal/demo"
)

// S001, S011, S014: the payments example under killed and frozen workers, compared with the
// provider's own ledger: nothing lost, nothing charged twice, both sides equal to the last unit. The
// short form has it on SQLite; the demo's own tests have it on both.
func TestPaymentsAgreeWithTheProviderAfterKills(t *testing.T) {
	run := func(t *testing.T, url string) {
		t.Parallel()
		cfg := demo.Config{Payments: lab.Scale(15, 300), Seed: lab.Seed(t), Executable: os.Args[0], NoTable: true}
		if !database.IsSQLite(url) {
			cfg.Postgres = url // the demo makes a schema of its own in it
		}
		var said bytes.Buffer
		cfg.Out = &said
		res, err := demo.Run(t.Context(), cfg)
		if err != nil {
			t.Fatalf("%v\n%s", err, said.String())
		}
		lab.Report(t, "payments under kills and pauses", lab.F("payments", res.Payments), lab.F("completed", res.Completed), lab.F("lost", res.Lost),
			lab.F("double_charged", res.DoubleCharged), lab.F("attempts", res.Attempts), lab.F("expired", res.Expired), lab.F("refused_late", res.RefusedLate),
			lab.F("unknown", res.Unknown), lab.F("healed", res.Healed), lab.F("kills", res.Kills), lab.F("pauses", res.Pauses), lab.F("ledger_equal", res.LedgerEqual))
		if res.Kills == 0 || res.Pauses == 0 {
			t.Errorf("%d kills and %d pauses: nothing was proved", res.Kills, res.Pauses)
		}
		if !res.OK || res.Lost != 0 || res.DoubleCharged != 0 || !res.LedgerEqual {
			t.Errorf("%+v\n%s", res, said.String())
		}
	}
	if lab.Long() {
		lab.OnBoth(t, run)
		return
	}
	run(t, lab.FreshFile(t))
}
