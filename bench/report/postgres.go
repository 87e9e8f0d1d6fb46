package report

import (
	"fmt"

	"github.com/pacht-queue/pacht/bench/result"
	"github.com/pacht-queue/pacht/bench/run"
)

func (p *page) head() {
	p.say(`# Benchmarks

The same work through Pacht and through other job queues: on one PostgreSQL server, one after the
other, round by round. Every figure on this page comes from ` + "`bench/results/latest.json`" + `, which
` + "`make bench`" + ` writes; it then writes this page. Figures are medians, with the least and the most of
the rounds in parentheses. Every run of jobs is checked: a job that did not run, or ran twice, fails it.

Jobs per second depend on the machine and on its mood. **CPU seconds and bytes of WAL hardly do**:
compare those first.
`)
	if p.file.Options.Quick {
		p.say("\n**This is a trial with few jobs and one round; its figures mean little.**\n")
	}
}

// summary is the figures of all sections in one table.
func (p *page) summary() {
	p.say("\n## In one table\n\nMedians; details and spread below. Args of 200 bytes.\n\n")
	t := table{head: []string{"", "drain, jobs/s", "CPU s per 100k, server + client", "WAL per job, B", "single inserts/s, 8 at once", "bulk inserts/s", "pickup p50 / p99, ms",
		fmt.Sprintf("drain with an open snapshot, round %d", run.HeldRounds)}}
	for _, peer := range p.file.Peers {
		if peer.SQLite {
			continue
		}
		of := func(scenario, variant, value string) result.Stat {
			return p.file.Stat(scenario, variant, peer.Name, value)
		}
		pickup := ""
		if s := of("pickup", "", run.PickupP50); s.N > 0 {
			pickup = number(s.Median) + " / " + number(of("pickup", "", run.PickupP99).Median)
		}
		held := ""
		if s, free := of("snapshot", run.HeldVariant(run.HeldRounds), run.JobsPerSecond), p.free(peer, run.JobsPerSecond); s.N > 0 && free.N > 0 {
			held = fmt.Sprintf("%.0f %%", 100*s.Median/free.Median)
		}
		t.add(peer.Title, median(of("drain", run.Small, run.JobsPerSecond)), p.both("drain", run.Small, peer.Name), median(of("drain", run.Small, run.WAL)),
			median(of("enqueue", run.SingleInserts, run.JobsPerSecond)), median(of("enqueue", run.BulkInserts, run.JobsPerSecond)), pickup, held)
	}
	p.say("%s", t.String())
}

// both is the CPU of server and client together.
func (p *page) both(scenario, variant, peer string) string {
	server := p.file.Stat(scenario, variant, peer, run.ServerCPU)
	client := p.file.Stat(scenario, variant, peer, run.ClientCPU)
	if server.N == 0 || client.N == 0 {
		return ""
	}
	return number(server.Median + client.Median)
}

func (p *page) drain() {
	peers := p.those(false, "drain")
	if len(peers) == 0 {
		return
	}
	p.say("\n## Drain: a backlog of no-op jobs, one process\n")
	p.say("\nThe clock runs from the start of the worker until the database has no unfinished job: every completion is durable.\n")
	for _, variant := range []string{run.Small, run.Large} {
		t := table{head: []string{"args of " + variant, "jobs", "jobs/s", "server CPU s per 100k", "client CPU s per 100k", "WAL per job, B", "client's peak memory, MB"}}
		for _, peer := range peers {
			if p.file.Jobs("drain", variant, peer.Name) == 0 {
				continue
			}
			row := []string{peer.Title, number(float64(p.file.Jobs("drain", variant, peer.Name)))}
			for _, value := range []string{run.JobsPerSecond, run.ServerCPU, run.ClientCPU, run.WAL, run.PeakMemory} {
				row = append(row, spread(p.file.Stat("drain", variant, peer.Name, value)))
			}
			t.add(row...)
		}
		p.say("\n%s", t.String())
	}
	p.failures("drain")
	for _, c := range []struct {
		name, title string
		legend      []string
		values      []string
	}{
		{"drain-cpu", "Drain: CPU seconds per 100,000 jobs (less is better)", []string{"server", "client"}, []string{run.ServerCPU, run.ClientCPU}},
		{"drain-wal", "Drain: bytes of WAL per job (less is better)", nil, []string{run.WAL}},
		{"drain-rate", "Drain: jobs per second (more is better)", nil, []string{run.JobsPerSecond}},
	} {
		p.draw(c.name, c.title, chart{title: c.title, legend: c.legend, bars: p.bars("drain", run.Small, peers, c.values...)}.svg())
	}
}

func (p *page) enqueue() {
	peers := p.those(false, "enqueue")
	if len(peers) == 0 {
		return
	}
	p.say("\n## Enqueue: args of 200 bytes\n")
	p.say("\nSingle: 8 callers at once, each job in a transaction of its own. Bulk: one caller, by the fastest way that is documented. The rows are counted afterwards.\n\n")
	t := table{head: []string{"", "single, jobs/s", "CPU s per 100k, server + client", "WAL per job, B", "bulk, jobs/s", "CPU s per 100k, server + client", "WAL per job, B"}}
	for _, peer := range peers {
		row := []string{peer.Title}
		for _, variant := range []string{run.SingleInserts, run.BulkInserts} {
			row = append(row, spread(p.file.Stat("enqueue", variant, peer.Name, run.JobsPerSecond)),
				p.both("enqueue", variant, peer.Name), median(p.file.Stat("enqueue", variant, peer.Name, run.WAL)))
		}
		t.add(row...)
	}
	p.say("%s", t.String())
	p.failures("enqueue")
	for _, variant := range []string{run.SingleInserts, run.BulkInserts} {
		title := fmt.Sprintf("Enqueue, %s: jobs per second (more is better)", variant)
		p.draw("enqueue-"+variant, title, chart{title: title, bars: p.bars("enqueue", variant, peers, run.JobsPerSecond)}.svg())
	}
}

func (p *page) pickup() {
	peers := p.those(false, "pickup")
	if len(peers) == 0 {
		return
	}
	p.say("\n## Pickup: one job each 20 ms to an idle worker\n")
	p.say("\nMilliseconds from the answer of the commit, in the process that inserts, to the start of the handler, in the process that works; by the clock that they share. Less than 0: the handler ran before the answer had come.\n\n")
	t := table{head: []string{"", "p50", "p99", "longest"}}
	var bars []bar
	for _, peer := range peers {
		p50, p99 := p.file.Stat("pickup", "", peer.Name, run.PickupP50), p.file.Stat("pickup", "", peer.Name, run.PickupP99)
		t.add(peer.Title, spread(p50), spread(p99), spread(p.file.Stat("pickup", "", peer.Name, run.PickupMax)))
		if p50.N > 0 {
			bars = append(bars, bar{label: peer.Title, class: class(peer), parts: []float64{p50.Median, p99.Median}, text: number(p50.Median) + " / " + number(p99.Median)})
		}
	}
	p.say("%s", t.String())
	p.failures("pickup")
	title := "Pickup, ms, logarithmic (less is better)"
	p.draw("pickup", title, chart{title: title, legend: []string{"p50", "p99"}, log: true, bars: bars}.svg())
}

func (p *page) snapshot() {
	peers := p.those(false, "snapshot")
	if len(peers) == 0 {
		return
	}
	p.say("\n## Drain while somebody holds a snapshot open\n")
	p.say("\nAnother session keeps a REPEATABLE READ transaction open throughout, so that nothing dead can be removed. One worker process drains a new backlog in the same database, round after round. Per cent of the jobs per second that it had without the transaction (the median of %d rounds, also in one database).\n\n", run.FreeRounds)
	head := []string{"", "jobs a round", "free, jobs/s"}
	for round := range run.HeldRounds {
		head = append(head, fmt.Sprintf("round %d", round+1))
	}
	t := table{head: append(head, "CPU a job in the last round")}
	var all []lineOf
	for _, peer := range peers {
		free, cpu := p.free(peer, run.JobsPerSecond), ""
		row := []string{peer.Title, number(float64(p.file.Jobs("snapshot", run.FreeVariant(1), peer.Name))), spread(free)}
		line := lineOf{label: peer.Title, class: class(peer)}
		for round := range run.HeldRounds {
			held := p.file.Stat("snapshot", run.HeldVariant(round+1), peer.Name, run.JobsPerSecond)
			if held.N == 0 || free.N == 0 {
				row = append(row, "")
				continue
			}
			line.values = append(line.values, held.Median/free.Median)
			row = append(row, fmt.Sprintf("%.0f %%", 100*held.Median/free.Median))
			cpu = p.dearer(peer, round+1)
		}
		all = append(all, line)
		t.add(append(row, cpu)...)
	}
	p.say("%s", t.String())
	p.failures("snapshot")
	title := "Drain with an open snapshot, compared with none"
	p.draw("snapshot", title, lines(title, all))
}

// free is a value without a snapshot, over the rounds of one database.
func (p *page) free(peer result.Peer, value string) result.Stat {
	joined := &result.File{}
	for _, r := range p.file.Runs {
		for round := range run.FreeRounds {
			if r.Scenario == "snapshot" && r.Variant == run.FreeVariant(round+1) {
				r.Variant = ""
				joined.Runs = append(joined.Runs, r)
				break
			}
		}
	}
	return joined.Stat("snapshot", "", peer.Name, value)
}

// dearer compares the CPU of server and client in a round with a snapshot with that of none.
func (p *page) dearer(peer result.Peer, round int) string {
	free := p.free(peer, run.ServerCPU).Median + p.free(peer, run.ClientCPU).Median
	held := p.file.Stat("snapshot", run.HeldVariant(round), peer.Name, run.ServerCPU).Median +
		p.file.Stat("snapshot", run.HeldVariant(round), peer.Name, run.ClientCPU).Median
	if free == 0 || held == 0 {
		return ""
	}
	return fmt.Sprintf("× %.2f", held/free)
}

func (p *page) processes() {
	peers := p.those(false, "processes")
	if len(peers) == 0 {
		return
	}
	p.say("\n## Several worker processes on one queue\n\nJobs per second, all of them together, on the same cores, from a backlog of twice the jobs of a drain above. The time in which each process opens its connections counts.\n\n")
	head := []string{""}
	for _, n := range run.ProcessCounts {
		head = append(head, fmt.Sprintf("%d", n))
	}
	t := table{head: append(head, "CPU s per 100k, server + client, with 8")}
	var bars []bar
	for _, peer := range peers {
		row := []string{peer.Title}
		for _, n := range run.ProcessCounts {
			s := p.file.Stat("processes", run.ProcessVariant(n), peer.Name, run.JobsPerSecond)
			row = append(row, spread(s))
			if s.N > 0 {
				bars = append(bars, bar{label: fmt.Sprintf("%s × %d", peer.Title, n), class: class(peer), parts: []float64{s.Median}, text: number(s.Median)})
			}
		}
		t.add(append(row, p.both("processes", run.ProcessVariant(8), peer.Name))...)
	}
	p.say("%s", t.String())
	p.failures("processes")
	title := "Drain by several processes: jobs per second (more is better)"
	p.draw("processes", title, chart{title: title, bars: bars}.svg())
}
