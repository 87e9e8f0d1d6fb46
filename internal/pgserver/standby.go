package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// StartStandby copies the running server and starts the copy as its hot standby, with the
// same settings and more. It streams over the address through, host and port: the server's
// own, or a proxy's in front of it, and keeps its place by a slot of its name, which is also
// what synchronous_standby_names calls it. It returns when the standby streams. End it with
// Remove.
func (s *Server) StartStandby(ctx context.Context, name, through string, settings ...string) (*Server, error) {
	host, port, err := net.SplitHostPort(through)
	if err != nil {
		return nil, fmt.Errorf("pgserver: standby %s: %w", name, err)
	}
	dir, err := makeFolder()
	if err != nil {
		return nil, err
	}
	follow := []string{
		fmt.Sprintf("primary_conninfo=host=%s port=%s user=postgres application_name=%s sslmode=disable", host, port, name),
		"primary_slot_name=" + name, "hot_standby=on", "wal_retrieve_retry_interval=100ms",
	}
	b := &Server{dir: dir, bin: s.bin, settings: append(append(s.settings[:len(s.settings):len(s.settings)], follow...), settings...)}
	err = s.copyTo(ctx, b, name)
	if err == nil {
		b.port, err = freePort()
	}
	if err == nil {
		err = b.Start(ctx)
	}
	if err == nil {
		err = s.streams(ctx, name)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("pgserver: standby %s: %w", name, err), b.Remove())
	}
	return b, nil
}

// Promote makes a standby a primary, and returns when it takes writes.
func (s *Server) Promote(ctx context.Context) error {
	return s.session(ctx, func(conn *pgx.Conn) error {
		var done bool
		if err := conn.QueryRow(ctx, "SELECT pg_promote(true, 60)").Scan(&done); err != nil {
			return fmt.Errorf("pgserver: promote: %w", err)
		}
		if !done {
			return errors.New("pgserver: the standby was not promoted within a minute")
		}
		return nil
	})
}

// session runs fn on a connection to the database postgres.
func (s *Server) session(ctx context.Context, fn func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return err
	}
	return errors.Join(fn(conn), conn.Close(context.WithoutCancel(ctx)))
}

// copyTo makes a slot for the copy and takes a base backup, by hand: pg_basebackup is not in
// every package of the server.
func (s *Server) copyTo(ctx context.Context, b *Server, slot string) error {
	if err := Execute(ctx, s.URL("postgres"), "SELECT pg_create_physical_replication_slot('"+slot+"', true)"); err != nil {
		return err
	}
	data := filepath.Join(b.dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	if err := giveAway(b.dir, data); err != nil {
		return err
	}
	if err := s.session(ctx, func(conn *pgx.Conn) error { return s.backUp(ctx, conn, data) }); err != nil {
		return fmt.Errorf("copy the files: %w", err)
	}
	return put(filepath.Join(data, "standby.signal"), strings.NewReader(""))
}

// backUp is a base backup by hand, of version 15 and later: the files are copied as they are
// while they change, and the log since then mends them. The slot has the log.
func (s *Server) backUp(ctx context.Context, conn *pgx.Conn, to string) error {
	if _, err := conn.Exec(ctx, "SELECT pg_backup_start('standby', true)"); err != nil {
		return err
	}
	if err := copyTree(filepath.Join(s.dir, "data"), to); err != nil {
		return err
	}
	var label string
	if err := conn.QueryRow(ctx, "SELECT labelfile FROM pg_backup_stop(false)").Scan(&label); err != nil {
		return err
	}
	return put(filepath.Join(to, "backup_label"), strings.NewReader(label))
}

// ofTheRunning are the folders whose files belong to a server that runs, and not to a copy.
var ofTheRunning = map[string]bool{
	"pg_wal": true, "pg_replslot": true, "pg_dynshmem": true, "pg_notify": true, "pg_serial": true,
	"pg_snapshots": true, "pg_stat_tmp": true, "pg_subtrans": true,
}

func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(from, path)
		switch {
		case errors.Is(err, fs.ErrNotExist): // a file may go while we walk
			return nil
		case err != nil || relErr != nil:
			return errors.Join(err, relErr)
		case rel == "." || strings.HasPrefix(rel, "postmaster."):
			return nil
		}
		target := filepath.Join(to, rel)
		if top, _, inside := strings.Cut(rel, string(filepath.Separator)); inside && ofTheRunning[top] {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			if err := os.Mkdir(target, 0o700); err != nil {
				return err
			}
			return giveAway(target)
		}
		if !d.Type().IsRegular() {
			return nil
		}
		file, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		defer file.Close()
		return put(target, file)
	})
}

// put writes a file of the server's user.
func put(path string, text io.Reader) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, text)
	return errors.Join(err, file.Close(), giveAway(path))
}

// streams waits until a standby of this name receives the log as it is written.
func (s *Server) streams(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return s.session(ctx, func(conn *pgx.Conn) error {
		for {
			var streams bool
			err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM pg_stat_replication WHERE application_name = $1 AND state = 'streaming')", name).Scan(&streams)
			if err != nil || streams {
				return err
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("it does not stream: %w", context.Cause(ctx))
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
}
