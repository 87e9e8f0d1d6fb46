// Package pgtest gives tests a real PostgreSQL: one private cluster per test process, started
// on first use as an unprivileged user on a free port, and removed at the end. A missing
// server is a failure of the test, never a skip. Only tests import it.
//
// PACHT_TEST_POSTGRES=postgres://... uses a server that is there, and makes and drops
// databases in it. PACHT_PG_BIN names the folder of the server's programs.
package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pacht-queue/pacht/internal/pgserver"
)

// Main is the TestMain of a package that needs PostgreSQL. It stops the cluster at the end
// and fails if a goroutine was left behind.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Run is Main for packages that wrap it: it answers the exit code. Options may except goroutines that
// a library leaves behind.
func Run(m interface{ Run() int }, except ...goleak.Option) int {
	code := m.Run()
	if err := shared.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest: stop:", err)
		code = max(code, 1)
	}
	if code == 0 {
		if err := goleak.Find(except...); err != nil {
			fmt.Fprintln(os.Stderr, "goroutines left behind:", err)
			code = 1
		}
	}
	return code
}

// Database makes an empty database for one test and returns its URL. It is dropped at the
// end of the test, whoever is still connected.
func Database(t testing.TB) string {
	t.Helper()
	if u := os.Getenv("PACHT_TEST_POSTGRES"); u != "" {
		return createDatabase(t, u)
	}
	s, err := shared.get()
	if errors.Is(err, pgserver.ErrNoPrograms) {
		t.Fatalf("%v, or set PACHT_TEST_POSTGRES=postgres://... to use a running server", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s.Database(t)
}

// shared is the cluster of this test process.
var shared lazyServer

type lazyServer struct {
	once sync.Once
	srv  *Server
	err  error
}

func (l *lazyServer) get() (*Server, error) {
	l.once.Do(func() { l.srv, l.err = newServer(context.Background()) })
	return l.srv, l.err
}

func (l *lazyServer) stop() error {
	if l.srv == nil {
		return nil
	}
	return l.srv.Remove()
}

// createDatabase makes a database on the server of admin, with a name that no other process
// picks.
func createDatabase(t testing.TB, admin string) string {
	t.Helper()
	u, err := url.Parse(admin)
	if err != nil {
		t.Fatalf("pgtest: the URL of the server does not parse: %v", err)
	}
	name := "pacht_test_" + rand.Text()
	if err := run(admin, `CREATE DATABASE "`+name+`" TEMPLATE template0 ENCODING 'UTF8'`); err != nil {
		t.Fatalf("pgtest: make a database: %v", err)
	}
	t.Cleanup(func() {
		// A test that killed its server leaves nothing to drop.
		if err := run(admin, `DROP DATABASE IF EXISTS "`+name+`" WITH (FORCE)`); err != nil {
			t.Logf("pgtest: drop database %s: %v", name, err)
		}
	})
	u.Path = "/" + name
	return u.String()
}

func run(url, sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return pgserver.Execute(ctx, url, sql)
}
