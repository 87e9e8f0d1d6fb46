package postgres_test

import (
	"context"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pacht-queue/pacht"
)

// docsSQL is the SQL of docs/textbook.md, by the name in the comment above each block.
func docsSQL(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../docs/textbook.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := map[string]string{}
	for _, m := range regexp.MustCompile("(?s)<!-- test: (\\w+) -->\n```sql\n(.*?)```").FindAllSubmatch(text, -1) {
		blocks[string(m[1])] = string(m[2])
	}
	if all := len(regexp.MustCompile("(?m)^```sql").FindAll(text, -1)); all != len(blocks) {
		t.Fatalf("docs/textbook.md has %d blocks of SQL, %d of them with a name of their own", all, len(blocks))
	}
	return blocks
}

func TestTextbookDocumentRunsAsWritten(t *testing.T) {
	h := byHand(t)
	docs := docsSQL(t)
	h.sql(`ALTER SEQUENCE pacht.jobs_job_id_seq RESTART WITH 42`)
	ran := map[string]bool{}
	run := func(block string, want int64) {
		t.Helper()
		ran[block] = true
		h.same(block, h.sql(docs[block]), want)
	}
	id := h.enqueue()
	h.same("id", id, pacht.ID(42))
	run("claim", 1)
	run("claim", 0)
	run("heartbeat", 1)
	run("search", 0)
	run("reset", 0)
	run("release", 1)
	run("heartbeat", 0)
	run("claim", 1)
	h.age(2 * time.Minute)
	run("heartbeat", 0)
	run("search", 1)
	run("claim", 1)
	h.age(2 * time.Minute)
	run("reset", 1)
	run("claim", 0) // it waits for the crash delay
	h.age(time.Minute)
	run("claim", 1)
	h.same("job", h.state(id), "Processing worker-a, attempt 3, token 4, crashes 2")
	run("token", 1)
	if _, err := h.conn.Exec(t.Context(), docs["complete"]); err == nil { // with token 1, which is stale by now
		t.Error("completed with a stale token")
	}
	ran["complete"] = true
	h.same("ledger", h.ledger(id), "1 Released Pending by worker-a, 2 Expired Processing by worker-a, 3 Expired Pending by worker-a")

	h.sql(`TRUNCATE pacht.jobs, pacht.leases, pacht.attempts`)
	h.sql(`ALTER SEQUENCE pacht.jobs_job_id_seq RESTART WITH 42`)
	h.asRole(docs["grant"])
	ran["grant"] = true
	h.enqueue()
	run("claim", 1)
	run("token", 1)
	run("heartbeat", 1)
	h.age(2 * time.Minute)
	run("reset", 1)
	h.age(time.Minute)
	run("claim", 1)
	run("release", 1)
	h.sql(`RESET ROLE`)
	h.sql(`TRUNCATE pacht.jobs, pacht.leases, pacht.attempts`)
	h.sql(`ALTER SEQUENCE pacht.jobs_job_id_seq RESTART WITH 42`)
	h.sql(`SET ROLE by_hand`)
	h.enqueue()
	run("claim", 1)
	if _, err := h.conn.Exec(t.Context(), docs["complete"]); err == nil {
		t.Error("completed without UPDATE on the leases, which the page says is needed")
	}
	h.sql(`RESET ROLE`)
	h.sql(`GRANT UPDATE ON pacht.leases TO by_hand`)
	h.sql(`SET ROLE by_hand`)
	h.sql(docs["complete"])
	h.same("ledger", h.ledger(42), "1 Completed Completed by worker-a")
	for block := range docs {
		if !ran[block] {
			t.Errorf("no step of this test runs the block %q", block)
		}
	}
}

// asRole makes the role of the page, with the rights that it gives, and acts as it from here on.
func (h *hand) asRole(grants string) {
	h.Helper()
	h.sql(`CREATE ROLE by_hand`)
	h.Cleanup(func() {
		conn, err := pgx.Connect(context.Background(), h.url)
		if err != nil {
			h.Error(err)
			return
		}
		defer conn.Close(context.Background())
		if _, err := conn.Exec(context.Background(), `DROP OWNED BY by_hand; DROP ROLE by_hand`); err != nil {
			h.Error(err)
		}
	})
	_, err := h.conn.Exec(h.Context(), grants)
	h.must(err)
	h.sql(`SET ROLE by_hand`)
}
