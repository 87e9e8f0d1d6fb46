package bench

import (
	"embed"

	"github.com/pacht-queue/pacht/internal/sqltext"
)

//go:embed sql
var sqlFiles embed.FS

// queries look at the tables and write states of them, one per file of sql/postgres and
// sql/sqlite.
type queries struct {
	ForgetAttempts      string `sql:"forget_attempts"`
	ForgetJobs          string `sql:"forget_jobs"`
	ForgetLeases        string `sql:"forget_leases"`
	ForgetReports       string `sql:"forget_reports"`
	ForgetWorkers       string `sql:"forget_workers"`
	Ledger              string `sql:"ledger"`
	Newest              string `sql:"newest"`
	Settings            string `sql:"settings"`
	Size                string `sql:"size"`
	StateFinished       string `sql:"state_finished"`
	StateHeld           string `sql:"state_held"`
	StateJobs           string `sql:"state_jobs"`
	StateParked         string `sql:"state_parked"`
	StateParkedAttempts string `sql:"state_parked_attempts"`
	StatePending        string `sql:"state_pending"`
	Unfinished          string `sql:"unfinished"`
}

// serverQueries are asked of PostgreSQL alone.
type serverQueries struct {
	Analyze      string `sql:"analyze"`
	Checkpoint   string `sql:"checkpoint"`
	Stale        string `sql:"stale"`
	Transactions string `sql:"transactions"`
	Updates      string `sql:"updates"`
	Vacuum       string `sql:"vacuum"`
}

func (q *queries) onPostgres(quoted string) error {
	return sqltext.Fill(q, sqlFiles, "sql/postgres", "pacht.", quoted)
}

func (q *queries) onSQLite(prefix string) error {
	return sqltext.Fill(q, sqlFiles, "sql/sqlite", "pacht_", prefix)
}

func (q *serverQueries) load(quoted string) error {
	return sqltext.Fill(q, sqlFiles, "sql/server", "pacht.", quoted)
}
