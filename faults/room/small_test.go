package room_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"

	"github.com/pacht-queue/pacht/internal/pgserver"
)

// smallDisk is a folder on a file system of this many megabytes, which the server's user owns.
// Only root may mount one. Whoever is not names a folder of theirs on a small file system in
// PACHT_SMALL_DISK; it is filled to its end.
func smallDisk(t *testing.T, megabytes int) string {
	t.Helper()
	if given := os.Getenv("PACHT_SMALL_DISK"); given != "" {
		dir, err := os.MkdirTemp(given, "pacht-small-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		return dir
	}
	dir, err := os.MkdirTemp("", "pacht-small-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(dir) })
	if os.Geteuid() != 0 {
		t.Fatal("a small file system has to be mounted, which only root may do: run this as root, " +
			"or set PACHT_SMALL_DISK to a folder of yours on a file system of 50 to 300 MB, which will be filled to its end")
	}
	owner := ""
	if u, err := user.Lookup("postgres"); err == nil {
		owner = fmt.Sprintf(",uid=%s,gid=%s", u.Uid, u.Gid)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=755%s", megabytes, owner)); err != nil {
		t.Fatalf("mount a tmpfs of %d MB: %v", megabytes, err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return dir
}

// fill takes all room of the file system that a folder is on, until the returned function frees
// it.
func fill(t testing.TB, dir string) (free func()) {
	t.Helper()
	ballast, err := os.CreateTemp(dir, "ballast-")
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1 << 20, 4 << 10, 512} {
		for piece := make([]byte, size); ; {
			if _, err = ballast.Write(piece); err != nil {
				break
			}
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("fill %s: %v", dir, err)
		}
	}
	return func() {
		_ = ballast.Close() // what could not be written is no matter
		if err := os.Remove(ballast.Name()); err != nil {
			t.Error(err)
		}
	}
}

// adminOf is the URL of the database "postgres" on the server of this one.
func adminOf(t testing.TB, database string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/postgres"
	return u.String()
}

// nameOf is the name of the database.
func nameOf(t testing.TB, database string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(u.Path, "/")
}

func execute(t testing.TB, url, sql string) {
	t.Helper()
	if err := pgserver.Execute(context.Background(), url, sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// scalar asks for one number or text.
func scalar[V any](t testing.TB, url, sql string, args ...any) (v V) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if err := conn.QueryRow(ctx, sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// publicFolder is a folder that the server's user may enter too.
func publicFolder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pacht-room-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return filepath.Clean(dir)
}
