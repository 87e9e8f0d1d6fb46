package peer

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	_ "modernc.org/sqlite" // the driver of every SQLite peer
)

// openPool is the pool that the Go peers for PostgreSQL get. pgx would allow as many
// connections as there are cores, 4 at least, and 8 goroutines enqueue.
func openPool(ctx context.Context, at Target, most int32) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(at.URL)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = most
	return pgxpool.NewWithConfig(ctx, cfg)
}

const poolSize = 16

// openFile is how the other SQLite peers get their file: one connection, as both ask for,
// the log in WAL mode, and SQLite's own waiting for the write lock.
func openFile(at Target) (*sql.DB, error) {
	if at.Synchronous != "FULL" && at.Synchronous != "NORMAL" {
		return nil, fmt.Errorf("synchronous %q: want FULL or NORMAL", at.Synchronous)
	}
	db, err := sql.Open("sqlite", "file:"+at.URL+"?_txlock=immediate&_pragma=busy_timeout(30000)"+
		"&_pragma=journal_mode(WAL)&_pragma=synchronous("+at.Synchronous+")")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// moduleFile reads a file of a module's source: peers that do not embed their schema want it
// taken from there.
func moduleFile(ctx context.Context, module, name string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("find the source of %s: %w", module, err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), name))
	return string(text), err
}
