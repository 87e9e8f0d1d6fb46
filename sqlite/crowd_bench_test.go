package sqlite

import (
	"slices"
	"testing"
	"time"
)

// BenchmarkClaimBeside is a claim of 100 from a queue with many rows that it may not take. The
// first claim, which looks past all of them, is told of by itself.
func BenchmarkClaimBeside(b *testing.B) {
	for _, c := range []struct {
		name, what string
		rows       int
	}{
		{"nothing", "", 0},
		{"1M_future", "future at a better priority", 1_000_000},
		{"200k_parked", "parked", 200_000},
		{"200k_held", "held", 200_000},
		{"100k_unknown", "of a kind nobody knows", 100_000},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := benchStore(b)
			if c.rows > 0 {
				crowd(b, s, c.what, c.rows)
			}
			fill(b, s, 100*(b.N+1))
			began := time.Now()
			if _, err := s.Claim(b.Context(), claimRequest("bench", 100)); err != nil {
				b.Fatal(err)
			}
			first := time.Since(began)
			var took []time.Duration
			used := cpu(b)
			b.ResetTimer()
			for range b.N {
				began := time.Now()
				claims, err := s.Claim(b.Context(), claimRequest("bench", 100))
				if err != nil || len(claims.Jobs) != 100 {
					b.Fatal(len(claims.Jobs), err)
				}
				took = append(took, time.Since(began))
			}
			b.StopTimer()
			slices.Sort(took)
			b.ReportMetric(float64(first.Microseconds())/1000, "first-ms")
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "median-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
			b.ReportMetric((cpu(b)-used).Seconds()*1000/float64(b.N), "cpu-ms/claim")
		})
	}
}

// BenchmarkIdleClaimBeside is what a claimer with nothing to do costs beside 100,000 rows of a
// kind it does not know, polling as fast as it can.
func BenchmarkIdleClaimBeside(b *testing.B) {
	s := benchStore(b)
	crowd(b, s, "of a kind nobody knows", 100_000)
	b.ResetTimer()
	for range b.N {
		if claims, err := s.Claim(b.Context(), claimRequest("bench", 100)); err != nil || len(claims.Jobs) > 0 {
			b.Fatal(claims.Jobs, err)
		}
	}
}
