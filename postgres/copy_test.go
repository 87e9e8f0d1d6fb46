package postgres

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/netfault"
	"github.com/pacht-queue/pacht/internal/pgtest"
)

// variedJobs differ in all that an enqueue can say.
func variedJobs(n int) []pacht.NewJob {
	options := [][]pacht.Option{
		{},
		{pacht.Queue("set")},
		{pacht.Queue("set"), pacht.MaxAttempts(7), pacht.MaxCrashes(2), pacht.TTL(90 * time.Millisecond * 10), pacht.OnCrash(pacht.CrashRetry)},
		{pacht.Priority(1), pacht.Metadata(map[string]string{"ä": "\\x00 \t\n"})},
		{pacht.RunIn(3 * time.Hour)},
		{pacht.RunAt(time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC))},
		{pacht.RunAt(time.Date(2031, 5, 6, 7, 8, 9, 123456789, time.UTC))},
	}
	jobs := make([]pacht.NewJob, n)
	for i := range jobs {
		jobs[i] = pacht.New(charge{i}, options[i%len(options)]...)
	}
	return jobs
}

const storedRows = `SELECT string_agg(concat_ws('|', j.args, j.metadata, j.kind, j.queue, j.priority, j.max_attempts, j.max_crashes, j.ttl_ms, j.crash_policy,
		CASE WHEN j.run_at < now() THEN 'due' WHEN j.run_at < now() + interval '1 year' THEN round(extract(epoch FROM j.run_at - j.created_at))::text ELSE j.run_at::text END,
		l.run_at = j.run_at, l.kind = j.kind, l.queue = j.queue, l.priority = j.priority, l.max_attempts = j.max_attempts, l.max_crashes = j.max_crashes,
		l.ttl_ms = j.ttl_ms, l.crash_policy = j.crash_policy, l.status, l.attempt, l.token, l.crashes, l.lease_owner), E'\n' ORDER BY (j.args->>'n')::int)
	FROM pacht.jobs AS j JOIN pacht.leases AS l ON l.job_id = j.job_id`

// Many jobs at once take another road than few, and nobody can tell afterwards (R6).
func TestManyJobsAreStoredAsFewAre(t *testing.T) {
	s, pool := newStore(t)
	set := pacht.QueueSettings{TTL: 17 * time.Second, MaxAttempts: 4, MaxCrashes: 9, CrashPolicy: pacht.CrashHold}
	if err := s.SetQueue(t.Context(), "set", set, pacht.Act{By: "test", Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	jobs := variedJobs(copyLeast + 13)
	var few []string
	for part := range 3 {
		from := part * len(jobs) / 3
		answers, err := s.Enqueue(t.Context(), jobs[from:(part+1)*len(jobs)/3])
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range answers {
			few = append(few, fmt.Sprint(a.Err, a.Duplicate))
		}
	}
	want := value(t, pool, storedRows)
	execute(t, pool, "DELETE FROM pacht.jobs; DELETE FROM pacht.leases")
	answers, err := s.Enqueue(t.Context(), jobs)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range answers {
		if got := fmt.Sprint(a.Err, a.Duplicate); got != few[i] {
			t.Errorf("job %d: %s, want %s", i, got, few[i])
		}
		if n := value(t, pool, "SELECT args->>'n' FROM pacht.jobs WHERE job_id = $1", int64(a.ID)); n != fmt.Sprint(i) {
			t.Fatalf("answer %d is job %d, which is %s", i, a.ID, n)
		}
	}
	if got := value(t, pool, storedRows); got != want {
		t.Errorf("stored as\n%.2000s\nwant\n%.2000s", got, want)
	}
}

func TestManyJobsAreStoredInEveryModeAndBehindAPooler(t *testing.T) { // S047
	url := pgtest.Database(t)
	stored := func(t *testing.T, s *Store, pool *pgxpool.Pool) {
		t.Helper()
		enqueue(t, s, copyLeast)
		enqueue(t, s, copyLeast+1)
		if n := value(t, pool, "SELECT count(*) FROM "+s.quoted+"leases"); n != fmt.Sprint(2*copyLeast+1) {
			t.Errorf("%s jobs", n)
		}
	}
	for _, m := range modes {
		t.Run(m.String(), func(t *testing.T) {
			s, pool := storeAt(t, url, Config{Schema: `"` + m.String()}, mode(m))
			stored(t, s, pool)
		})
	}
	t.Run("pooler", func(t *testing.T) {
		s, pool := storeAt(t, pgtest.Bouncer(t, url), Config{Schema: "pooled"}, mode(modes[1]))
		stored(t, s, pool)
	})
}

// R12: what is refused does not stop the others, and takes no row.
func TestRefusedJobDoesNotStopManyOthers(t *testing.T) {
	s, pool := newStore(t)
	jobs := variedJobs(copyLeast + 2)
	jobs[3] = pacht.NewJob{Kind: "other kind!"}
	answers, err := s.Enqueue(t.Context(), jobs)
	if err != nil {
		t.Fatal(err)
	}
	var invalid *pacht.InvalidError
	if !errors.As(answers[3].Err, &invalid) || answers[3].ID != 0 {
		t.Errorf("answer %+v", answers[3])
	}
	for i, a := range answers {
		if i != 3 && (a.Err != nil || a.ID == 0) {
			t.Errorf("answer %d: %+v", i, a)
		}
	}
	if n := value(t, pool, "SELECT count(*) FROM pacht.jobs"); n != fmt.Sprint(len(jobs)-1) {
		t.Errorf("%s jobs", n)
	}
}

func TestManyJobsOfWhichOneFailsLeaveNothing(t *testing.T) {
	s, pool := newStore(t)
	execute(t, pool, "ALTER TABLE pacht.leases ADD CONSTRAINT refuse CHECK (priority <> 4)")
	jobs := variedJobs(copyLeast + 2)
	jobs[copyLeast].Priority = 4
	if _, err := s.Enqueue(t.Context(), jobs); err == nil || !strings.Contains(err.Error(), "refuse") {
		t.Errorf("error %v", err)
	}
	if n := value(t, pool, "SELECT (SELECT count(*) FROM pacht.jobs) + (SELECT count(*) FROM pacht.leases)"); n != "0" {
		t.Errorf("%s rows", n)
	}
	jobs[copyLeast].Priority = 3
	if _, err := s.Enqueue(t.Context(), jobs); err != nil {
		t.Errorf("the connection cannot be used any more: %v", err)
	}
}

func TestManyJobsWhoseCommitIsNotAnsweredAreUnknownAndNeverRepeated(t *testing.T) { // R11, S046
	s, proxy, pool := faulty(t, mode(pgx.QueryExecModeCacheDescribe)) // so that COMMIT is spelled out each time
	enqueue(t, s, copyLeast)                                          // so that all is described
	trap := proxy.CutAnswer([]byte("COMMIT\x00"), netfault.Committed)
	_, err := s.Enqueue(t.Context(), variedJobs(copyLeast))
	trap.Wait(t)
	if !errors.Is(err, pacht.ErrUnknown) {
		t.Errorf("error %v", err)
	}
	if n := value(t, pool, "SELECT count(*) FROM pacht.jobs"); n != fmt.Sprint(2*copyLeast) {
		t.Errorf("%s jobs are stored", n)
	}
}

func TestManyJobsWakeWhoSleeps(t *testing.T) {
	s, _ := newStore(t)
	e := listen(t, s).working(t)
	sleep(t, s, "owner", "a", "later")
	enqueue(t, s, copyLeast, pacht.Queue("later"), pacht.RunIn(time.Hour))
	enqueue(t, s, copyLeast, pacht.Queue("a"))
	e.hears(t, "a")
	if len(e.woken) > 0 {
		t.Errorf("told of %s too", <-e.woken)
	}
}

// Whoever gives an enqueue up has its jobs back when the call returns, though pgx may still be reading.
func TestCopyThatWasGivenUpReadsTheJobsNoMore(t *testing.T) {
	r := &copyReader{rows: make([]copied, 3), encode: func(*copyData, *copied) { t.Error("a job was read") }}
	r.stop()
	if n, err := r.Read(make([]byte, 100)); n != 0 || err == nil {
		t.Errorf("it read %d bytes, %v", n, err)
	}
}
