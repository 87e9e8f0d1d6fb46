package peer

import (
	"context"
	_ "embed" // the statements
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// leaseFloor is what the database costs that keeps a lease and a ledger as Pacht does, and the
// least that a client costs: two loops, and no worker around them.
type leaseFloor struct{}

var (
	//go:embed sql/lease_tables.sql
	leaseTables string
	//go:embed sql/lease_insert.sql
	leaseInsert string
	//go:embed sql/lease_claim.sql
	leaseClaim string
	//go:embed sql/lease_settle.sql
	leaseSettle string
)

const leaseBatch = 500

func (leaseFloor) About() About {
	return About{
		Name: "floor-lease", Title: "floor F3: lease and ledger", Version: "raw SQL", Floor: true,
		Settings: "2 loops that claim 500 rows by UPDATE, delete them and insert 500 rows of a ledger, poll 5 ms; Pacht's three tables without checks, " +
			"without further indexes and columns; no worker: no slots, renewals, retries or timeouts",
		Keeps:      "the job, and a ledger row for each attempt",
		Acts:       []Act{Drain},
		Unfinished: "FROM floor_leases",
		Kilobyte:   true,
	}
}

func (leaseFloor) Prepare(ctx context.Context, at Target) error {
	pool, err := openPool(ctx, at, 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	_, err = pool.Exec(ctx, leaseTables)
	return err
}

func (leaseFloor) Open(ctx context.Context, at Target) (Session, error) {
	pool, err := openPool(ctx, at, poolSize)
	if err != nil {
		return nil, err
	}
	return &leaseSession{pool: pool}, nil
}

type leaseSession struct{ pool *pgxpool.Pool }

func (s *leaseSession) EnqueueBulk(ctx context.Context, n, bytes int) error {
	return batches(n, bytes, 5000, func(batch []Payload) error {
		docs := make([]string, len(batch))
		for i, p := range batch {
			docs[i] = string(p.JSON())
		}
		_, err := s.pool.Exec(ctx, leaseInsert, docs)
		return err
	})
}

func (s *leaseSession) Work(ctx context.Context, handle func(int)) error {
	return loops(ctx, func() pass {
		l := &leaseLoop{pool: s.pool, handle: handle}
		return l.pass
	})
}

// leaseLoop remembers the place in the queue that it has got to: without it, each claim walks over
// all that is leased.
type leaseLoop struct {
	pool   *pgxpool.Pool
	handle func(int)
	runAt  time.Time
	id     int64
}

func (l *leaseLoop) pass(ctx context.Context) (int, error) {
	rows, err := l.pool.Query(ctx, leaseClaim, leaseBatch, "owner-of-a-floor-4d1f0c6e2b7a", l.runAt, l.id)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	var ids, tokens []int64
	for rows.Next() {
		var id, token int64
		var runAt, until time.Time
		var args []byte
		if err := rows.Scan(&id, &token, &runAt, &until, &args); err != nil {
			return 0, err
		}
		var p Payload
		if err := json.Unmarshal(args, &p); err != nil {
			return 0, err
		}
		l.handle(p.Number)
		ids, tokens = append(ids, id), append(tokens, token)
		if c := runAt.Compare(l.runAt); c > 0 || c == 0 && id > l.id {
			l.runAt, l.id = runAt, id
		}
	}
	if err := rows.Err(); err != nil {
		return 0, err
	}
	if len(ids) < leaseBatch {
		l.runAt, l.id = time.Time{}, 0 // what was committed late is found
	}
	if len(ids) == 0 {
		return 0, nil
	}
	_, err = l.pool.Exec(ctx, leaseSettle, ids, tokens)
	return len(ids), err
}

func (s *leaseSession) Close(context.Context) error { s.pool.Close(); return nil }
