package report

import (
	"strconv"
	"strings"

	"github.com/pacht-queue/pacht/bench/run"
)

func (p *page) sqlite() {
	peers := p.those(true, "sqlite")
	if len(peers) == 0 {
		return
	}
	p.say("\n## SQLite\n")
	p.say("\nArgs of 200 bytes, jobs per second; the drain by 1 and by 3 processes on the file. `synchronous=NORMAL` may lose the last commits with the power; Pacht has no such mode.\n\n")
	what := []string{run.SQLiteDrain(run.SQLiteProcesses[0]), run.SQLiteDrain(run.SQLiteProcesses[1]), run.SingleInserts, run.BulkInserts}
	head := append(append([]string{"synchronous"}, what...), "CPU s per 100k, "+what[0], "CPU s per 100k, "+what[1])
	for _, synchronous := range run.Synchronous {
		head[0] = synchronous
		t := table{head: append([]string(nil), head...)}
		for _, peer := range peers {
			row := []string{peer.Title}
			if peer.Name == "pacht-sqlite" && synchronous != "FULL" {
				continue // it has no such mode
			}
			for _, w := range what {
				row = append(row, spread(p.file.Stat("sqlite", run.SQLiteVariant(synchronous, w), peer.Name, run.JobsPerSecond)))
			}
			for _, w := range what[:2] {
				row = append(row, median(p.file.Stat("sqlite", run.SQLiteVariant(synchronous, w), peer.Name, run.ClientCPU)))
			}
			t.add(row...)
		}
		p.say("%s\n", t.String())
	}
	p.failures("sqlite")
	for _, w := range what[:3] {
		title := "SQLite, synchronous=FULL, " + w + ": jobs per second (more is better)"
		p.draw("sqlite-"+strings.ReplaceAll(w, " ", "-"), title, chart{title: title, bars: p.bars("sqlite", run.SQLiteVariant("FULL", w), peers, run.JobsPerSecond)}.svg())
	}
}

func (p *page) peers() {
	p.say("\n## Who took part, and how each was set up\n\n")
	p.say("| | version | settings | what is left of a finished job |\n| --- | --- | --- | --- |\n")
	for _, peer := range p.file.Peers {
		title := peer.Title
		if peer.SQLite {
			title += " (SQLite)"
		}
		p.say("| %s | %s | %s | %s |\n", title, peer.Version, peer.Settings, peer.Keeps)
	}
	for _, l := range p.file.LeftOut {
		p.say("\nLeft out: %s, because %s.\n", l.Name, l.Why)
	}
}

func (p *page) unequal() {
	p.say(`
## What was not equal

- **What a job gets.** Only Pacht gives each attempt a lease with an end and a token, checks the
  token at every write that closes it, and writes a row of a ledger for each attempt. The floors are
  raw SQL without retry, timeout or crash recovery. F3 writes a lease and a ledger all the same: its
  CPU is the least that these cost, and what Pacht's is above it are its worker, its checks, its further columns and
  the indexes that lists start from. Which queues accept the late completion of a worker that was given up is not
  measured here.
- **What is kept.** River and pg-boss keep a finished job and update its row; neoq too. Graphile-worker,
  gue and goqite delete it and keep nothing. Pacht never updates the job, deletes its lease, and keeps
  both job and ledger.
- **How many jobs are in the worker's hands.** Pacht 1,000, River tuned 2,000, River by default 100,
  graphile-worker 500 and pg-boss 4,000, gue 10. Whoever takes more at once writes in larger batches,
  and loses more to a crash.
- **When a slot is free.** Pacht's when the completion is committed. River and graphile-worker gather
  completions in memory and go on.
- **gue** runs each job in the transaction that locks it, so a crash frees the job at once, and each
  job in progress holds a connection and a snapshot.
- **goqite** is made for SQLite; on PostgreSQL its transactions are serializable and it takes one job at
  a time. **neoq** is told of each job by a notification; what was there before its worker it announces
  by 100 a minute, unless told to look more often, and then its pickup is slow: both are shown. Its
  synchronous commit was switched on, as everybody's is.
- **Languages.** Node.js has one thread for JavaScript, Go uses all cores. On a machine where the server
  shares them, that is no advantage for Go.
- **Slow queues got fewer jobs** (the tables say how many), so that the whole ends. Per job this
  changes little; a longer queue would be slower with some of them.
- **pg-boss** is measured with polling, and with LISTEN/NOTIFY where that changes something: it makes the
  pickup fast and each insert slow.
`)
}

func (p *page) method() {
	m, o := p.file.Machine, p.file.Options
	p.say("\n## How it is measured\n\n")
	p.say("| | |\n| --- | --- |\n")
	for _, row := range [][2]string{
		{"CPU", strings.TrimSpace(m.CPU) + ", " + strconv.Itoa(m.Cores) + " cores, shared by clients and server"},
		{"memory, disk", m.Memory + ", " + m.Disk},
		{"kernel", m.Kernel},
		{"PostgreSQL", m.Postgres + ", " + strings.Join(m.Settings, ", ") + "; fsync, synchronous_commit, full_page_writes, autovacuum on as by default"},
		{"SQLite", m.SQLite},
		{"Go, Node.js", m.Go + ", " + m.Node},
		{"when", p.file.Began + ", for " + number(p.file.Took/60) + " minutes; " + strconv.Itoa(o.Rounds) + " rounds"},
	} {
		p.say("| %s | %s |\n", row[0], row[1])
	}
	p.say(`
- Each run has a fresh database, and processes of its own that do one thing: one fills the queue, another
  drains it. Peers take turns, and another one begins each round.
- CPU of a client is the kernel's account of its process (getrusage), between the start of the work and
  its end; it must not exceed what wait4 says of the whole process. CPU of the server is that of all its
  processes, from /proc. WAL is the distance between two positions in the log.
- Statistics are fresh (ANALYZE) before a drain. There is no checkpoint within a run, so the WAL holds
  no images of pages that were clean before.
- The end of a drain is when the database says that nothing is unfinished, asked from outside once all
  handlers have been called.
- `+"`make bench-quick`"+` tries everything out in a few minutes; `+"`cd bench && go run . run --only drain --peers pacht,river-tuned`"+`
  measures a part. Scenarios: %s.
`, strings.Join(run.Scenarios(), ", "))
}
