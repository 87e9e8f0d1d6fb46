package lint

import (
	"fmt"
	"path"
	"slices"
	"testing"
)

// alone are the statements that one store has and the other does not, each with the reason.
// All others exist in both, with the same name and meaning.
type alone struct{ store, pattern, reason string }

const (
	partOfVerb = "SQLite changes one table in a statement: this is a part of a verb, in the verb's transaction"
	wholeVerb  = "one statement here; SQLite needs several, with names of their own"
)

var oneStoreOnly = []alone{
	{"postgres", "age", wholeVerb},
	{"postgres", "cancel", wholeVerb},
	{"postgres", "complete", "the common settle with less to carry; SQLite settles row by row anyhow"},
	{"postgres", "claiming", "a claim on a file that its caller gave up was never made, or is over"},
	{"postgres", "claims_over", "see claiming"},
	{"postgres", "void", "see claiming"},
	{"postgres", "copy_*", "many jobs at once; SQLite has no COPY, and its enqueue is a prepared statement in one transaction as it is"},
	{"postgres", "gate", "a file has one writer at a time as it is"},
	{"postgres", "reached", "see gate"},
	{"postgres", "sweep_floors", "see gate"},
	{"postgres", "keys", wholeVerb},
	{"postgres", "release", wholeVerb},
	{"postgres", "resolve", wholeVerb},
	{"postgres", "retry", wholeVerb},
	{"postgres", "settled", wholeVerb},
	{"postgres", "lock_job", "SQLite has one writer: what is read in a transaction stays so"},
	{"postgres", "sweep_due", "SQLite asks the same of sweep_turn, without a lock"},
	{"postgres", "sweep_keys", "on SQLite prune_keys_find and prune_keys"},
	{"postgres", "schema_lock", "SQLite's write transaction is the lock"},
	{"postgres", "schema", "SQLite has no schemas"},
	{"postgres", "backend", "no process of a server stands behind a file"},
	{"postgres", "durable", "a commit of SQLite waits for nobody else"},
	{"postgres", "lineage", "no other file takes the place of a file"},
	{"postgres", "bound*", "a session of PostgreSQL can be bounded in time, a connection to a file cannot"},
	{"postgres", "break*", "PostgreSQL breaks a transaction by an error; SQLite's stays usable after one, the Tx rolls it back"},
	{"postgres", "*listen", "SQLite has no notices: its store hears of its own enqueues"},
	{"postgres", "notify", "SQLite has no notices"},
	{"postgres", "sleep", "on SQLite nobody has to know who sleeps"},
	{"postgres", "rise", "on SQLite nobody has to know who sleeps"},
	{"sqlite", "age_*", partOfVerb},
	{"sqlite", "audit_add", partOfVerb},
	{"sqlite", "cancel_request", partOfVerb},
	{"sqlite", "claim_id_close", partOfVerb},
	{"sqlite", "claim_look", "a claim on a file first looks without its write lock; on PostgreSQL a claim that looks makes nobody wait"},
	{"sqlite", "claimed*", partOfVerb},
	{"sqlite", "decide_note", partOfVerb},
	{"sqlite", "enqueue_lease", partOfVerb},
	{"sqlite", "expire*_*", partOfVerb},
	{"sqlite", "finish*", partOfVerb},
	{"sqlite", "key_*", partOfVerb},
	{"sqlite", "lost", partOfVerb},
	{"sqlite", "prune_*", partOfVerb},
	{"sqlite", "report", partOfVerb},
	{"sqlite", "retry_*", partOfVerb},
	{"sqlite", "settle_done", partOfVerb},
	{"sqlite", "take_and_close", partOfVerb},
	{"sqlite", "vacate", partOfVerb},
	{"sqlite", "watch_*", partOfVerb},
	{"sqlite", "queue", "PostgreSQL reads a queue's settings inside the statement of the enqueue"},
	{"sqlite", "data_version", "PostgreSQL has nothing like it: tells that another process wrote to the file"},
	{"sqlite", "pragmas", "settings of a connection to a file"},
	{"sqlite", "savepoint*", "pgx has savepoints of its own"},
}

func TestStoresHaveTheSameStatements(t *testing.T) {
	for _, f := range sameStatements(thisModule(t), oneStoreOnly) {
		t.Error(f)
	}
}

func sameStatements(m *module, allowed []alone) (broken []string) {
	have := map[string][]string{} // name of a statement: the stores that have it
	for _, f := range m.texts {
		for _, store := range stores {
			if path.Dir(f.path) == store+"/sql" && path.Ext(f.path) == ".sql" {
				name := path.Base(f.path[:len(f.path)-len(".sql")])
				have[name] = append(have[name], store)
			}
		}
	}
	used := map[alone]bool{}
	for name, in := range have {
		if len(in) == len(stores) {
			continue
		}
		i := slices.IndexFunc(allowed, func(a alone) bool {
			ok, _ := path.Match(a.pattern, name) // fails only on a bad pattern
			return ok && a.store == in[0]
		})
		if i < 0 {
			broken = append(broken, fmt.Sprintf("%s/sql/%s.sql: the other store has no statement of this name, and no reason stands in oneStoreOnly", in[0], name))
			continue
		}
		used[allowed[i]] = true
	}
	for _, a := range allowed {
		if !used[a] {
			broken = append(broken, fmt.Sprintf("%s/sql/%s.sql: stands in oneStoreOnly, and there is no such statement that only this store has", a.store, a.pattern))
		}
	}
	slices.Sort(broken)
	return broken
}

func TestStatementsThatDifferAreSeen(t *testing.T) {
	allowed := []alone{{"postgres", "listen*", "SQLite has no LISTEN"}, {"sqlite", "pragmas", "of a file"}}
	m := parse(t, map[string]string{
		"postgres/sql/claim.sql": "", "sqlite/sql/claim.sql": "",
		"postgres/sql/listen_on.sql": "",
		"sqlite/sql/renew.sql":       "",
		"postgres/sql/pragmas.sql":   "",
	})
	found := sameStatements(m, allowed)
	if len(found) != 3 { // renew, pragmas in the wrong store, and the entry for it
		t.Errorf("found %q", found)
	}
}
