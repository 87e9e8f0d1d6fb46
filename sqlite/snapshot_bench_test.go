package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"testing"

	"github.com/pacht-queue/pacht"
)

// openSnapshot begins a read transaction, as a report or a backup does, that sees the file as
// it is now and keeps everything written since then in the write-ahead log.
func openSnapshot(tb testing.TB, s *Store) *sql.Tx {
	tb.Helper()
	tx, err := s.DB().BeginTx(context.Background(), &sql.TxOptions{ReadOnly: true})
	if err == nil {
		_, err = texts(context.Background(), txReader{tx}, "SELECT count(*) FROM pacht_leases")
	}
	if err != nil {
		tb.Fatal(err)
	}
	return tx
}

// txReader reads in a transaction.
type txReader struct{ *sql.Tx }

func walSize(tb testing.TB, s *Store) int64 {
	tb.Helper()
	info, err := os.Stat(s.path + "-wal")
	if err != nil {
		tb.Fatal(err)
	}
	return info.Size()
}

// BenchmarkRoundsBesideASnapshot enqueues and drains four rounds of b.N jobs, with and without
// a read transaction that is open from the beginning to the end.
func BenchmarkRoundsBesideASnapshot(b *testing.B) {
	for _, open := range []bool{false, true} {
		b.Run(map[bool]string{false: "none", true: "open"}[open], func(b *testing.B) {
			s := benchStore(b)
			fill(b, s, 1000)
			if open {
				defer openSnapshot(b, s).Rollback()
			}
			b.ResetTimer()
			for round := range 4 {
				fill(b, s, b.N)
				used := cpu(b)
				for left := b.N; left > 0; {
					n, err := drainOnce(b, s, 500)
					if err != nil {
						b.Fatal(err)
					}
					left -= n
				}
				b.ReportMetric((cpu(b)-used).Seconds()*100_000/float64(b.N), fmt.Sprintf("cpu-s/100k-round%d", round+1))
			}
			b.ReportMetric(float64(walSize(b, s))/1e6, "wal-MB")
		})
	}
}

// The write-ahead log is written from its start again once a snapshot that kept it is gone, and
// what it had grown beyond 64 MB is given back.
func TestTheLogShrinksAfterASnapshotIsClosed(t *testing.T) {
	s := newStore(t)
	mustEnqueue(t, s, 1)
	tx := openSnapshot(t, s)
	big := newJob(1)
	big.Args = fmt.Appendf(nil, `{"text":"%0900000d"}`, 1)
	for n := 0; walSize(t, s) < 80_000_000; n++ {
		if _, err := s.Enqueue(t.Context(), []pacht.NewJob{big, big, big, big}); err != nil {
			t.Fatal(err)
		}
		if n > 50 {
			t.Fatalf("the log has %d bytes beside an open snapshot", walSize(t, s))
		}
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the log is at most 64 MB again", func() bool {
		mustEnqueue(t, s, 1)
		return walSize(t, s) <= 64<<20
	})
}
