package postgres

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/failpoint"
)

// Many jobs at once go in by COPY, which costs the server less than half of what enqueue.sql
// does and writes less to its log. It takes four round trips, so it is for many only; and a
// taken key is an error to it and not an answer, so it is for jobs without one. What a queue or
// a default says is filled in here, by the same order as there.
const copyLeast = 200

// copied is what COPY stores of one job.
type copied struct {
	job                    *pacht.NewJob
	id                     int64
	runAt                  time.Time
	attempts, crashes, ttl int
	priority               int
	policy, queue          string
}

// errNotInTurn says that a transaction was undone because the batch before was not committed soon.
var errNotInTurn = errors.New("undone, to begin again when its turn has come")

// turnPatience is how long a transaction waits for its turn, with all stored and nothing committed: less
// than the server waits for it (see idle).
const turnPatience = 500 * time.Millisecond

// enqueueCopy stores jobs without keys in one transaction.
func (s *Store) enqueueCopy(ctx context.Context, jobs []pacht.NewJob, todo []int, answers []pacht.Enqueued, turn *pacht.Turn) error {
	for {
		err := s.copyInTurn(ctx, jobs, todo, answers, turn)
		if !errors.Is(err, errNotInTurn) {
			return err
		}
		if err := turn.Wait(ctx); err != nil { // without a connection, which the batch before may need
			return err
		}
	}
}

func (s *Store) copyInTurn(ctx context.Context, jobs []pacht.NewJob, todo []int, answers []pacht.Enqueued, turn *pacht.Turn) error {
	conn, ctx, release, err := s.acquire(ctx, s.pool)
	if err != nil {
		return err
	}
	defer release()
	if err := s.ready(ctx, conn); err != nil {
		return err
	}
	var now time.Time
	var ids []int64
	settings := map[string]pacht.QueueSettings{}
	err = s.send(ctx, conn, s.pool, append(s.opening(s.timeout, s.idle(), false, &now),
		stmt{sql: s.sql.Queues, each: func(scan scanner) error {
			var q pacht.QueueInfo
			err := scanQueue(&q, scan)
			settings[q.Name] = q.QueueSettings
			return err
		}},
		stmt{sql: s.sql.CopyNumber, args: []any{s.sequence(), int64(len(todo))}, each: func(scan scanner) error { return scan(&ids) }}))
	if err != nil {
		return err
	}
	if st := s.pool.Stat(); st.AcquiredConns()+1 < st.MaxConns() { // leaves one for others
		turn.Begun()
	}
	rows := make([]copied, 0, len(todo))
	for n, i := range todo {
		row := copied{job: &jobs[i], id: ids[n], runAt: later(now.Add(max(jobs[i].Delay, 0)), jobs[i].RunAt)}
		if row.runAt.After(now.Add(horizon)) {
			answers[i] = pacht.Enqueued{Err: tooFarAhead(row.job)}
			continue
		}
		row.fill(settings)
		answers[i] = pacht.Enqueued{ID: pacht.ID(row.id)}
		rows = append(rows, row)
	}
	err = s.copyRows(ctx, conn, now, rows)
	if err == nil {
		soon, cancel := context.WithTimeoutCause(ctx, turnPatience, errNotInTurn)
		err = turn.Wait(soon)
		cancel()
	}
	if err != nil {
		s.tidy(conn, err) // not committed, whatever became of the connection
		return err
	}
	err = s.send(ctx, conn, s.pool, []stmt{
		{sql: s.sql.CopyNotify, args: []any{dueQueues(now, rows)}},
		{sql: s.sql.Commit},
	})
	if err != nil {
		return sent(err)
	}
	return nil
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// fill says what the enqueue did not: the queue's settings, else the defaults (R6).
func (c *copied) fill(settings map[string]pacht.QueueSettings) {
	j := c.job
	c.queue = cmp.Or(j.Queue, pacht.DefaultQueue)
	c.priority = cmp.Or(j.Priority, pacht.DefaultPriority)
	q := settings[c.queue]
	c.attempts = cmp.Or(j.MaxAttempts, q.MaxAttempts, pacht.DefaultMaxAttempts)
	c.crashes = cmp.Or(j.MaxCrashes, q.MaxCrashes, pacht.DefaultMaxCrashes)
	c.ttl = int(cmp.Or(j.TTL, q.TTL, pacht.DefaultTTL).Milliseconds())
	c.policy = string(cmp.Or(j.CrashPolicy, q.CrashPolicy, pacht.DefaultCrashPolicy))
}

func dueQueues(now time.Time, rows []copied) []string {
	var queues []string
	for _, r := range rows {
		if !r.runAt.After(now) && !slices.Contains(queues, r.queue) {
			queues = append(queues, r.queue)
		}
	}
	return queues
}

// copyRows stores jobs, then their leases.
func (s *Store) copyRows(ctx context.Context, conn *pgxpool.Conn, now time.Time, rows []copied) error {
	jobs := func(d *copyData, r *copied) {
		d.row(12)
		d.int64(r.id)
		d.time(now)
		d.time(r.runAt)
		d.int32(r.ttl)
		d.int16(r.attempts)
		d.int16(r.crashes)
		d.int16(r.priority)
		d.text(r.policy)
		d.text(r.queue)
		d.text(r.job.Kind)
		d.bytes(r.job.Args)
		d.bytes(r.job.Metadata)
	}
	leases := func(d *copyData, r *copied) {
		d.row(9)
		d.int64(r.id)
		d.time(r.runAt)
		d.int32(r.attempts)
		d.int32(r.ttl)
		d.int16(r.crashes)
		d.int16(r.priority)
		d.text(r.policy)
		d.text(r.queue)
		d.text(r.job.Kind)
	}
	if err := copyFrom(ctx, conn, s.sql.CopyJobs, rows, jobs); err != nil {
		return err
	}
	failpoint.Here("postgres.copy.jobs") // jobs without leases, in an open transaction
	if err := copyFrom(ctx, conn, s.sql.CopyLeases, rows, leases); err != nil {
		return err
	}
	failpoint.Here("postgres.copy.leases")
	return nil
}

func copyFrom(ctx context.Context, conn *pgxpool.Conn, sql string, rows []copied, encode func(*copyData, *copied)) error {
	r := &copyReader{rows: rows, encode: encode}
	defer r.stop()
	_, err := conn.Conn().PgConn().CopyFrom(ctx, r, sql)
	return err
}

// copyReader encodes rows piece by piece, while the server stores those before. No bound of the
// server's ends a COPY whose next piece does not come.
type copyReader struct {
	mu         sync.Mutex
	stopped    bool     // the rows are the caller's again: pgx may still be reading when it gives up
	rows       []copied // that are left
	encode     func(*copyData, *copied)
	data       copyData
	read       int // of the data
	begun, end bool
}

// copyPiece is from how many bytes on a piece is sent: the server has work while the next is encoded.
const copyPiece = 32 << 10

func (c *copyReader) Read(b []byte) (int, error) {
	failpoint.Here("postgres.copy.piece")
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return 0, io.ErrClosedPipe
	}
	if c.read == len(c.data.buf) {
		if c.end {
			return 0, io.EOF
		}
		c.piece()
	}
	n := copy(b, c.data.buf[c.read:])
	c.read += n
	return n, nil
}

func (c *copyReader) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
}

func (c *copyReader) piece() {
	c.data.buf, c.read = c.data.buf[:0], 0
	if !c.begun {
		c.data.begin()
		c.begun = true
	}
	for len(c.rows) > 0 && len(c.data.buf) < copyPiece {
		c.encode(&c.data, &c.rows[0])
		c.rows = c.rows[1:]
	}
	if len(c.rows) == 0 {
		c.data.row(-1)
		c.end = true
	}
}

// copyData is rows in the binary format of COPY, which the manual of PostgreSQL describes.
type copyData struct{ buf []byte }

func (d *copyData) begin() {
	d.buf = append(d.buf, "PGCOPY\n\xff\r\n\x00"...)
	d.buf = append(d.buf, 0, 0, 0, 0, 0, 0, 0, 0) // no flags, nothing more in the header
}

func (d *copyData) row(columns int) { d.buf = binary.BigEndian.AppendUint16(d.buf, uint16(columns)) }

func (d *copyData) size(n int) { d.buf = binary.BigEndian.AppendUint32(d.buf, uint32(n)) }

func (d *copyData) int16(v int) { d.size(2); d.buf = binary.BigEndian.AppendUint16(d.buf, uint16(v)) }

func (d *copyData) int32(v int) { d.size(4); d.buf = binary.BigEndian.AppendUint32(d.buf, uint32(v)) }

func (d *copyData) int64(v int64) {
	d.size(8)
	d.buf = binary.BigEndian.AppendUint64(d.buf, uint64(v))
}

// epoch is from when PostgreSQL counts microseconds.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func (d *copyData) time(t time.Time) { d.int64(t.UnixMicro() - epoch.UnixMicro()) }

func (d *copyData) text(s string) { d.size(len(s)); d.buf = append(d.buf, s...) }

// bytes is NULL if there are none.
func (d *copyData) bytes(b []byte) {
	if len(b) == 0 {
		d.size(-1)
		return
	}
	d.size(len(b))
	d.buf = append(d.buf, b...)
}
