package run

import (
	"slices"

	"github.com/pacht-queue/pacht/bench/peer"
)

// seconds that a scenario takes for one peer and one round of 100,000 jobs, on two cores: most
// of it is the slower half of the peers.
var seconds = map[string]float64{
	"drain": 16, "enqueue": 4.5, "pickup": 8.5, "snapshot": 76, "processes": 75, "sqlite": 28,
}

// Estimate is about how many minutes a run takes.
func Estimate(cfg Config) (minutes float64) {
	for _, s := range scenarios {
		if len(cfg.Scenarios) > 0 && !slices.Contains(cfg.Scenarios, s.name) {
			continue
		}
		for _, p := range peer.All() {
			a := p.About()
			if s.takes(a) && (len(cfg.Peers) == 0 || slices.Contains(cfg.Peers, a.Name)) {
				minutes += seconds[s.name] / 60 * float64(s.rounds(cfg.Rounds)) * (0.2 + 0.8*float64(cfg.Jobs)/100_000)
			}
		}
	}
	return minutes
}
