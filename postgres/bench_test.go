package postgres

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/pgtest"
)

func benchStore(b *testing.B) (*Store, *pgxpool.Pool) {
	b.Helper()
	pool, err := pgxpool.New(b.Context(), pgtest.Database(b))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	s, err := New(pool, Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	if _, err := s.MigrateUp(b.Context()); err != nil {
		b.Fatal(err)
	}
	return s, pool
}

func benchJobs(n int) []pacht.NewJob {
	jobs := make([]pacht.NewJob, n)
	for i := range jobs {
		jobs[i] = pacht.New(charge{i})
	}
	return jobs
}

// BenchmarkLife is a batch of 500 jobs from enqueue to history; per op one job.
func BenchmarkLife(b *testing.B) {
	s, _ := benchStore(b)
	const batch = 500
	for n := 0; n < b.N; n += batch {
		if _, err := s.Enqueue(b.Context(), benchJobs(batch)); err != nil {
			b.Fatal(err)
		}
		got, err := s.Claim(b.Context(), request("owner", batch))
		if err != nil || len(got.Jobs) != batch {
			b.Fatal(len(got.Jobs), err)
		}
		if _, err := s.Settle(b.Context(), settlements(got.Jobs, pacht.OutcomeCompleted)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRenew is one renewal as the store makes it, and its bare statement without the
// transaction around it: what BEGIN, bounds and COMMIT in the same round trip cost.
func BenchmarkRenew(b *testing.B) {
	s, _ := benchStore(b)
	if _, err := s.Enqueue(b.Context(), benchJobs(1)); err != nil {
		b.Fatal(err)
	}
	got, err := s.Claim(b.Context(), request("owner", 1))
	if err != nil {
		b.Fatal(err)
	}
	ref := got.Jobs[0].Ref()
	b.Run("whole", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Renew(b.Context(), []pacht.Ref{ref}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("bare", func(b *testing.B) {
		args := []any{[]int64{int64(ref.Job)}, []int64{int64(ref.Token)}}
		for b.Loop() {
			if err := s.readOnce(b.Context(), s.renewal, s.sql.Renew, args, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}
