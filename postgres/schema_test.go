package postgres

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/pgtest"
)

func TestSchemasInOneDatabaseKnowNothingOfEachOther(t *testing.T) { // S050
	url := pgtest.Database(t)
	decoys := poolAt(t, url)
	execute(t, decoys, `CREATE TABLE jobs (job_id int); CREATE TABLE leases (job_id int); CREATE TABLE schema_version (version int);
		CREATE SCHEMA decoy; CREATE TABLE decoy.leases (job_id int)`)
	astray := func(cfg *pgxpool.Config) { cfg.ConnConfig.RuntimeParams["search_path"] = "decoy, nowhere" }
	names := []string{"pay_a", "Pay-B", `o'ne"il; x`}
	for _, name := range names {
		s, pool := storeAt(t, url, Config{Schema: name}, astray)
		everyVerb(t, s, func() (pacht.Tx, func() error) { return pgxTx(t, s, pool) })
	}
	for _, name := range names {
		s, _ := storeAt(t, url, Config{Schema: name})
		if all, err := s.Jobs(t.Context(), pacht.Filter{Queue: pacht.DefaultQueue, Limit: 100}); err != nil || len(all) != 4 {
			t.Errorf("schema %q has %d jobs, %v", name, len(all), err)
		}
	}
	for _, table := range []string{"public.jobs", "public.leases", "public.schema_version", "decoy.leases"} {
		if n := value(t, decoys, "SELECT count(*) FROM "+table); n != "0" {
			t.Errorf("%s rows in the decoy %s", n, table)
		}
	}
}

func TestConfigIsRefusedWithTheBound(t *testing.T) {
	pool := poolAt(t, "postgres://nobody@127.0.0.1:1/x")
	for _, cfg := range []Config{{Schema: strings.Repeat("x", 64)}, {Schema: "a\x00b"}, {StatementTimeout: -1}} {
		var invalid *pacht.InvalidError
		if _, err := New(pool, cfg); !errors.As(err, &invalid) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	if _, err := New(nil, Config{}); err == nil {
		t.Error("no pool was accepted")
	}
}

func TestDatabaseWithoutTablesSaysWhatToRun(t *testing.T) {
	pool := poolAt(t, pgtest.Database(t))
	s, err := New(pool, Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, act := t.Context(), pacht.Act{By: "a", Reason: "b"}
	ref := pacht.Ref{Job: 1, Token: 1}
	refused := map[string]error{}
	_, refused["enqueue"] = s.Enqueue(ctx, []pacht.NewJob{pacht.New(charge{})})
	_, refused["claim"] = s.Claim(ctx, request("a", 1))
	_, _, refused["claim by id"] = s.ClaimID(ctx, "a", 1)
	_, refused["renew"] = s.Renew(ctx, []pacht.Ref{ref})
	_, refused["settle"] = s.Settle(ctx, []pacht.Settlement{{Ref: ref, Outcome: pacht.OutcomeCompleted}})
	_, refused["expire"] = s.Expire(ctx, pacht.ExpireRequest{By: "w", Limit: 1, Period: pacht.DefaultTTL})
	_, refused["job"] = s.Job(ctx, 1)
	_, refused["counts"] = s.Counts(ctx)
	_, refused["check"] = s.Check(ctx)
	_, refused["prune"] = s.Prune(ctx, pacht.PruneRequest{Status: pacht.Dead, Limit: 1})
	refused["step"] = s.SetStep(ctx, ref, "a", nil)
	refused["beat"] = s.Beat(ctx, pacht.WorkerInfo{Owner: "a", BeatEvery: pacht.DefaultTTL})
	refused["retry"] = s.Retry(ctx, 1, act)
	tx, _ := pgxTx(t, s, pool)
	_, refused["enqueue in a transaction"] = tx.EnqueueTx(ctx, []pacht.NewJob{pacht.New(charge{})})
	tx, _ = pgxTx(t, s, pool)
	refused["settle in a transaction"] = tx.SettleTx(ctx, pacht.Settlement{Ref: ref, Outcome: pacht.OutcomeCompleted})
	for verb, err := range refused {
		if !errors.Is(err, pacht.ErrSchema) || !strings.Contains(err.Error(), "pacht migrate up") {
			t.Errorf("%s: %v", verb, err)
		}
	}
	if found, wanted, err := s.Schema(ctx); err != nil || found != 0 || wanted != len(s.steps) {
		t.Errorf("schema %d, %d, %v", found, wanted, err)
	}
	if _, err := s.MigrateUp(ctx); err != nil {
		t.Fatal(err)
	}
	enqueue(t, s, 1)
}

func TestPrintedMigrationsCanBeAppliedByOtherMeans(t *testing.T) {
	url := pgtest.Database(t)
	cfg := Config{Schema: "By hand"}
	s, err := New(poolAt(t, url), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	execute(t, poolAt(t, url), s.MigrationSQL())
	if done, err := s.MigrateUp(t.Context()); err != nil || len(done) != 0 {
		t.Errorf("up after that: %v, %v", done, err)
	}
	complete(t, s, []pacht.JobInfo{held(t, s)})
}

// migrateInChild is what the test binary does instead of tests, if told so by its environment.
func migrateInChild(url string) error {
	pool, err := pgxpool.New(context.Background(), url)
	if err != nil {
		return err
	}
	defer pool.Close()
	s, err := New(pool, Config{})
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	done, err := s.MigrateUp(context.Background())
	fmt.Println("applied", len(done))
	return err
}

// child starts the test binary as another process that waits for a line to migrate.
func child(t *testing.T, url string) (start func(), end func() (string, error), kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PACHT_TEST_MIGRATE="+url)
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("the child said %q", lines.Text())
	}
	start = func() { fmt.Fprintln(in) }
	end = func() (string, error) {
		lines.Scan()
		return lines.Text(), cmd.Wait()
	}
	kill = func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	return start, end, kill
}

func TestThreeProcessesMigrateAtOnce(t *testing.T) {
	url := pgtest.Database(t)
	applied := 0
	var starts []func()
	var ends []func() (string, error)
	for range 3 {
		start, end, _ := child(t, url)
		starts, ends = append(starts, start), append(ends, end)
	}
	for _, start := range starts {
		start()
	}
	for _, end := range ends {
		said, err := end()
		if err != nil {
			t.Errorf("child: %q, %v", said, err)
		}
		var n int
		if _, err := fmt.Sscanf(said, "applied %d", &n); err != nil {
			t.Errorf("child said %q", said)
		}
		applied += n
	}
	s, _ := storeAt(t, url, Config{})
	if applied != len(s.steps) {
		t.Errorf("%d migrations were applied, want %d", applied, len(s.steps))
	}
}

func TestMigrationKilledInTheMiddleLeavesNothing(t *testing.T) {
	url := pgtest.Database(t)
	pool := poolAt(t, url)
	// The child stops in the middle: its schema's name is taken by a transaction that is open.
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "CREATE SCHEMA pacht", pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	start, _, kill := child(t, url)
	start()
	until(t, "the child is in its transaction and waits", func() bool {
		return value(t, pool, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") == "1"
	})
	kill()
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, "the server has noticed", func() bool {
		return value(t, pool, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == "0"
	})
	if n := value(t, pool, "SELECT count(*) FROM pg_namespace WHERE nspname = 'pacht'"); n != "0" {
		t.Errorf("%s schema is left", n)
	}
	s, _ := storeAt(t, url, Config{})
	enqueue(t, s, 1)
}
