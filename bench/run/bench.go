// Package run measures: it starts one PostgreSQL server, gives every run a fresh database and
// processes of its own, and alternates the peers.
package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/pacht-queue/pacht/bench/child"
	"github.com/pacht-queue/pacht/bench/peer"
	"github.com/pacht-queue/pacht/bench/result"
	"github.com/pacht-queue/pacht/internal/pgserver"
)

// Settings of the server beside PostgreSQL's defaults: room, and no checkpoint within a run,
// which would add full page images to the WAL of whoever is at work. fsync,
// synchronous_commit, full_page_writes and autovacuum are on, as by default.
var Settings = []string{
	"shared_buffers=512MB", "max_wal_size=16GB", "checkpoint_timeout=1h", "max_connections=400",
}

// Config says what to measure.
type Config struct {
	Rounds    int
	Jobs      int // of a drain and a bulk insert
	Quick     bool
	Scenarios []string // empty = all
	Peers     []string // empty = all
	Out       io.Writer
	Save      func(*result.File) error // called after each run
}

// Bench is a benchmark under way.
type Bench struct {
	cfg      Config
	self     string // this program
	server   *pgserver.Server
	folder   string // for SQLite files, and what children write
	file     *result.File
	peers    []peer.About
	patience time.Duration // with one act
	made     int           // databases so far
	spawning chan func()
}

// Run measures everything that is asked for. A run that fails is recorded and the others go on.
func Run(ctx context.Context, cfg Config) (file *result.File, err error) {
	b := &Bench{cfg: cfg, patience: 3 * time.Minute, spawning: make(chan func())}
	// Children die with the thread that started them: it must live on.
	go func() {
		runtime.LockOSThread()
		for start := range b.spawning {
			start()
		}
	}()
	defer close(b.spawning)
	if b.self, err = os.Executable(); err != nil {
		return nil, err
	}
	if b.folder, err = os.MkdirTemp("", "pacht-bench-"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.folder)) }()
	b.file = &result.File{
		Began:   time.Now().UTC().Format(time.RFC3339),
		Options: result.Options{Rounds: cfg.Rounds, Jobs: cfg.Jobs, Quick: cfg.Quick},
	}
	b.choose()
	if b.server, err = pgserver.Start(ctx, Settings...); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.server.Remove()) }()
	if b.file.Machine, err = b.machine(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
	for _, s := range scenarios {
		if len(cfg.Scenarios) > 0 && !slices.Contains(cfg.Scenarios, s.name) {
			continue
		}
		if err := b.scenario(ctx, s); err != nil {
			return b.file, err
		}
	}
	b.file.Took = time.Since(began).Seconds()
	return b.file, cfg.Save(b.file)
}

// scenario is something that is measured with each peer that can do it, round by round.
type scenario struct {
	name    string
	rounds  func(asked int) int
	takes   func(peer.About) bool
	measure func(b *Bench, ctx context.Context, p peer.About, record func(variant string, jobs int, values map[string]float64, err error))
}

var scenarios = []scenario{drainScenario, enqueueScenario, pickupScenario, snapshotScenario, processesScenario, sqliteScenario}

// Scenarios names them, as --only takes them.
func Scenarios() []string {
	names := make([]string, len(scenarios))
	for i, s := range scenarios {
		names[i] = s.name
	}
	return names
}

func (b *Bench) scenario(ctx context.Context, s scenario) error {
	var takers []peer.About
	for _, p := range b.peers {
		if s.takes(p) {
			takers = append(takers, p)
		}
	}
	for round := range s.rounds(b.cfg.Rounds) {
		for i := range takers {
			// Another one begins each round.
			p := takers[(i+round)%len(takers)]
			began := time.Now()
			s.measure(b, ctx, p, func(variant string, jobs int, values map[string]float64, err error) {
				r := result.Run{Scenario: s.name, Variant: variant, Peer: p.Name, Round: round + 1, Jobs: jobs, Values: values}
				if err != nil {
					r.Error = err.Error()
				}
				b.file.Runs = append(b.file.Runs, r)
				fmt.Fprintln(b.cfg.Out, describe(r))
			})
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			fmt.Fprintf(b.cfg.Out, "%-10s %-16s round %d took %.0f s\n", s.name, p.Name, round+1, time.Since(began).Seconds())
			if err := b.cfg.Save(b.file); err != nil {
				return err
			}
		}
	}
	return nil
}

// choose finds the peers that are asked for and can run here.
func (b *Bench) choose() {
	nodeMissing := ""
	if program, err := node(); err != nil {
		nodeMissing = "there is no Node.js"
	} else if _, err := os.Stat(filepath.Join(nodeDir, "node_modules", "graphile-worker")); err != nil {
		nodeMissing = "its packages are not installed: npm install --no-package-lock in bench/node"
	} else if out, err := exec.Command(program, "--version").Output(); err != nil {
		nodeMissing = fmt.Sprintf("Node.js does not run: %v", err)
	} else {
		b.file.Machine.Node = string(out)
	}
	for _, p := range peer.All() {
		a := p.About()
		if len(b.cfg.Peers) > 0 && !slices.Contains(b.cfg.Peers, a.Name) {
			continue
		}
		if a.Script != "" && nodeMissing != "" {
			b.file.LeftOut = append(b.file.LeftOut, result.LeftOut{Name: a.Title, Why: nodeMissing})
			continue
		}
		b.peers = append(b.peers, a)
		b.file.Peers = append(b.file.Peers, result.Peer{
			Name: a.Name, Title: a.Title, Version: version(a), Settings: a.Settings, Keeps: a.Keeps, SQLite: a.SQLite, Floor: a.Floor,
		})
	}
}

// spawn starts a child from the thread that stays.
func (b *Bench) spawn(cmd *exec.Cmd) error {
	done := make(chan error)
	b.spawning <- func() { done <- cmd.Start() }
	return <-done
}

// jobs is how many of n a peer gets.
func jobs(p peer.About, n int) int {
	if p.Share == 0 {
		return n
	}
	return max(1000, int(float64(n)*p.Share))
}

// fill makes a backlog and checks that it is there.
func (b *Bench) fill(ctx context.Context, d *database, n, bytes int) (child.Report, error) {
	r, err := b.once(ctx, d.about, child.Task{Do: "bulk", At: d.at, Jobs: n, Bytes: bytes})
	if err != nil {
		return r, fmt.Errorf("fill: %w", err)
	}
	found, err := d.count(ctx)
	if err != nil {
		return r, err
	}
	if found != n {
		return r, fmt.Errorf("%d jobs are there after an insert of %d", found, n)
	}
	return r, d.analyze(ctx)
}
