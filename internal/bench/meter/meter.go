// Package meter measures what work on a database costs, by accounts that hardly depend on the
// neighbours of the machine: CPU seconds of this process and of the PostgreSQL server, and
// bytes of WAL. What cannot be known is nil: the server's CPU where it does not run on this
// machine or the system is not Linux, the WAL of other databases.
package meter

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pacht-queue/pacht/internal/clock"
)

// Subject is what to measure beside this process.
type Subject struct {
	// Conn is a connection to the PostgreSQL server; nil if there is none. It is used within
	// Start and Stop only, and may be one through a pooler.
	Conn *pgx.Conn
	// ServerPID is the postmaster of the server; 0 means to look for it on this machine, by Conn.
	ServerPID int
}

// Usage is what was used between Start and Stop.
type Usage struct {
	Seconds   float64  // wall time
	ClientCPU *float64 // CPU seconds of this process, children not included
	ServerCPU *float64 // CPU seconds of the PostgreSQL server: postmaster and all its processes
	WAL       *float64 // bytes of WAL, of the whole server
}

// Meter is a measurement under way.
type Meter struct {
	subject Subject
	began   time.Time
	first   reading
}

type reading struct {
	client, server *time.Duration
	wal            *int64
}

// Start begins to measure.
func Start(ctx context.Context, s Subject) (*Meter, error) {
	if s.ServerPID == 0 && s.Conn != nil {
		pid, err := FindServer(ctx, s.Conn)
		if err != nil {
			return nil, err
		}
		s.ServerPID = pid
	}
	m := &Meter{subject: s}
	var err error
	m.first, err = m.read(ctx)
	m.began = clock.Now().Time()
	return m, err
}

// Stop answers what was used since Start. It may be asked more than once.
func (m *Meter) Stop(ctx context.Context) (Usage, error) {
	u := Usage{Seconds: clock.Since(m.began).Seconds()}
	now, err := m.read(ctx)
	if err != nil {
		return u, err
	}
	u.ClientCPU = seconds(m.first.client, now.client)
	u.ServerCPU = seconds(m.first.server, now.server)
	if m.first.wal != nil && now.wal != nil {
		bytes := float64(*now.wal - *m.first.wal)
		u.WAL = &bytes
	}
	return u, nil
}

// ClientPer100k is the CPU seconds of this process per 100,000 of n jobs.
func (u Usage) ClientPer100k(n int) *float64 { return per(u.ClientCPU, n, 100_000) }

// ServerPer100k is the CPU seconds of the server per 100,000 of n jobs.
func (u Usage) ServerPer100k(n int) *float64 { return per(u.ServerCPU, n, 100_000) }

// WALPerJob is the bytes of WAL per job, of n jobs.
func (u Usage) WALPerJob(n int) *float64 { return per(u.WAL, n, 1) }

func per(v *float64, n, unit int) *float64 {
	if v == nil || n <= 0 {
		return nil
	}
	share := *v * float64(unit) / float64(n)
	return &share
}

func seconds(from, to *time.Duration) *float64 {
	if from == nil || to == nil {
		return nil
	}
	s := (*to - *from).Seconds()
	return &s
}

func (m *Meter) read(ctx context.Context) (r reading, err error) {
	if m.subject.Conn != nil {
		var wal int64
		err := m.subject.Conn.QueryRow(ctx, "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint",
			pgx.QueryExecModeSimpleProtocol).Scan(&wal)
		if err != nil {
			return r, fmt.Errorf("read the position of the WAL: %w", err)
		}
		r.wal = &wal
	}
	if m.subject.ServerPID != 0 {
		if d, ok := ServerCPU(m.subject.ServerPID); ok {
			r.server = &d
		}
	}
	if d, ok := OwnCPU(); ok {
		r.client = &d
	}
	return r, nil
}

// FindServer is the postmaster behind a connection, if that runs on this machine; else 0.
func FindServer(ctx context.Context, conn *pgx.Conn) (int, error) {
	var pid, port int
	var user, database string
	err := conn.QueryRow(ctx, "SELECT pg_backend_pid(), coalesce(inet_client_port(), -1), session_user, current_database()",
		pgx.QueryExecModeSimpleProtocol).Scan(&pid, &port, &user, &database)
	if err != nil {
		return 0, fmt.Errorf("ask for the server's process: %w", err)
	}
	// A server elsewhere may name the number of a process here: its title must be that of a
	// session of this very user, database and client.
	client := "[local]"
	if port > 0 {
		client = fmt.Sprintf("(%d)", port)
	}
	return postmasterOf(pid, []string{"postgres: ", " " + user + " " + database + " ", client}), nil
}
