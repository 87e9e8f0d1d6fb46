package run

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"

	"github.com/pacht-queue/pacht/bench/child"
	"github.com/pacht-queue/pacht/bench/peer"
	"github.com/pacht-queue/pacht/internal/bench/meter"
	"github.com/pacht-queue/pacht/internal/pgserver"
)

// database is a fresh one with a peer's tables, and what looks into it from outside.
type database struct {
	about  peer.About
	at     peer.Target
	conn   *pgx.Conn // PostgreSQL: of the benchmark's own
	db     *sql.DB   // SQLite: for reading only
	drop   func(context.Context) error
	server int // the postmaster's process
	out    string
}

// fresh makes a database, runs with it, and drops it.
func (b *Bench) fresh(ctx context.Context, p peer.About, synchronous string, use func(*database) error) (err error) {
	b.made++
	d := &database{about: p, out: filepath.Join(b.folder, fmt.Sprintf("out-%d", b.made))}
	if p.SQLite {
		err = b.makeFile(d, synchronous)
	} else {
		err = b.makeDatabase(ctx, d)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.drop(context.WithoutCancel(ctx))) }()
	if _, err := b.once(ctx, p, child.Task{Do: "prepare", At: d.at}); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	return use(d)
}

func (b *Bench) makeDatabase(ctx context.Context, d *database) error {
	name := fmt.Sprintf("bench_%d", b.made)
	url, err := b.server.Create(ctx, name)
	if err != nil {
		return err
	}
	d.at, d.server = peer.Target{URL: url}, b.server.PID()
	if d.conn, err = pgx.Connect(ctx, url); err != nil {
		return err
	}
	d.drop = func(ctx context.Context) error {
		return errors.Join(d.conn.Close(ctx),
			pgserver.Execute(ctx, b.server.URL("postgres"), "DROP DATABASE "+name+" WITH (FORCE)"))
	}
	return nil
}

func (b *Bench) makeFile(d *database, synchronous string) error {
	folder := filepath.Join(b.folder, fmt.Sprintf("sqlite-%d", b.made))
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	file := filepath.Join(folder, "bench.db")
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=query_only(1)&_pragma=busy_timeout(5000)")
	if err != nil {
		return err
	}
	d.db, d.at = db, peer.Target{URL: file, Synchronous: synchronous}
	d.drop = func(context.Context) error { return errors.Join(db.Close(), os.RemoveAll(folder)) }
	return nil
}

// count says how many jobs are not finished.
func (d *database) count(ctx context.Context) (n int, err error) {
	query := "SELECT count(*) " + d.about.Unfinished
	if d.db != nil {
		err = d.db.QueryRowContext(ctx, query).Scan(&n)
	} else {
		err = d.conn.QueryRow(ctx, query).Scan(&n)
	}
	if err != nil {
		err = fmt.Errorf("count unfinished jobs: %w", err)
	}
	return n, err
}

// left says whether any job is not finished.
func (d *database) left(ctx context.Context) (yes bool, err error) {
	query := "SELECT EXISTS (SELECT 1 " + d.about.Unfinished + ")"
	if d.db != nil {
		err = d.db.QueryRowContext(ctx, query).Scan(&yes)
	} else {
		err = d.conn.QueryRow(ctx, query).Scan(&yes)
	}
	if err != nil {
		err = fmt.Errorf("look for unfinished jobs: %w", err)
	}
	return yes, err
}

// analyze gives every peer true statistics of its backlog: a plan by luck would be noise.
func (d *database) analyze(ctx context.Context) error {
	if d.conn == nil {
		return nil
	}
	_, err := d.conn.Exec(ctx, "ANALYZE")
	return err
}

// meter begins to measure the server.
func (d *database) meter(ctx context.Context) (*meter.Meter, error) {
	return meter.Start(ctx, meter.Subject{Conn: d.conn, ServerPID: d.server})
}
