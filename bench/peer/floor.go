package peer

import (
	"context"
	_ "embed" // the statements
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
)

// floor is what the database itself costs: two loops of raw SQL, no retry, no lease, no ledger. With
// these two: leaseFloor.
type floor struct{ update bool }

var (
	//go:embed sql/table.sql
	floorTable string
	//go:embed sql/insert.sql
	floorInsert string
	//go:embed sql/claim.sql
	floorClaim string
	//go:embed sql/complete.sql
	floorComplete string
	//go:embed sql/delete.sql
	floorDelete string
)

const (
	floorBatch = 1000
	floorLoops = 2
	floorPoll  = 5 * time.Millisecond
)

func (f floor) About() About {
	a := About{
		Name: "floor-delete", Title: "floor F2: DELETE", Version: "raw SQL", Floor: true,
		Settings:   "2 loops of DELETE ... RETURNING, 1,000 rows each; what crashes is lost",
		Keeps:      "nothing",
		Acts:       []Act{Drain},
		Unfinished: "FROM floor_jobs WHERE status <> 'done'",
		Kilobyte:   true, Snapshot: true,
	}
	if f.update {
		a.Name, a.Title = "floor-update", "floor F1: UPDATE"
		a.Settings = "2 loops that claim 1,000 rows by UPDATE and complete them by UPDATE, poll 5 ms; bulk by COPY; no lease, no retry, no ledger"
		a.Keeps, a.Acts = "the row, updated", []Act{Single, Bulk, Drain, Pickup}
	}
	return a
}

func (floor) Prepare(ctx context.Context, at Target) error {
	pool, err := openPool(ctx, at, 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	_, err = pool.Exec(ctx, floorTable)
	return err
}

func (f floor) Open(ctx context.Context, at Target) (Session, error) {
	pool, err := openPool(ctx, at, poolSize)
	if err != nil {
		return nil, err
	}
	return &floorSession{pool: pool, update: f.update}, nil
}

type floorSession struct {
	pool   *pgxpool.Pool
	update bool
}

func (s *floorSession) Enqueue(ctx context.Context, p Payload) error {
	_, err := s.pool.Exec(ctx, floorInsert, string(p.JSON()))
	return err
}

func (s *floorSession) EnqueueBulk(ctx context.Context, n, bytes int) error {
	return batches(n, bytes, 5000, func(batch []Payload) error {
		_, err := s.pool.CopyFrom(ctx, pgx.Identifier{"floor_jobs"}, []string{"args"},
			pgx.CopyFromSlice(len(batch), func(i int) ([]any, error) { return []any{string(batch[i].JSON())}, nil }))
		return err
	})
}

func (s *floorSession) Work(ctx context.Context, handle func(int)) error {
	return loops(ctx, func() pass {
		return func(ctx context.Context) (int, error) { return s.pass(ctx, handle) }
	})
}

// pass takes a batch of jobs, runs it, and says how many there were.
type pass func(ctx context.Context) (int, error)

// loops makes passes in two loops until ctx ends, and finishes those that it has begun.
func loops(ctx context.Context, each func() pass) error {
	group, ctx := errgroup.WithContext(ctx)
	for range floorLoops {
		next := each()
		group.Go(func() error {
			for ctx.Err() == nil {
				n, err := next(context.WithoutCancel(ctx))
				if err != nil {
					return err
				}
				if n > 0 {
					continue
				}
				select {
				case <-ctx.Done():
				case <-time.After(floorPoll):
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// pass takes a batch, runs it, and completes it.
func (s *floorSession) pass(ctx context.Context, handle func(int)) (int, error) {
	take := floorDelete
	if s.update {
		take = floorClaim
	}
	rows, err := s.pool.Query(ctx, take, floorBatch)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	var ids []int64
	for rows.Next() {
		var id int64
		var args []byte
		var p Payload
		if err := rows.Scan(&id, &args); err != nil {
			return 0, err
		}
		if err := json.Unmarshal(args, &p); err != nil {
			return 0, err
		}
		handle(p.Number)
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil || !s.update || len(ids) == 0 {
		return len(ids), err
	}
	_, err = s.pool.Exec(ctx, floorComplete, ids)
	return len(ids), err
}

func (s *floorSession) Close(context.Context) error { s.pool.Close(); return nil }
