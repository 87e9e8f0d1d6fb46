package main

// A way is how spin searches.
type way int

const (
	everywhere way = iota // every state, with the invariants that hold in each
	shortest              // the same, shortest paths first: for counterexamples that people can read
	fair                  // every run in which no process is passed over for ever, for no_job_forgotten
)

// A check is one run of the model and the answer that it must have.
type check struct {
	name  string
	set   []string // what is set: budgets, and the mutant
	way   way
	want  string // the invariant that must break; "" if all must hold
	large bool   // only with MODEL=large
}

// Budgets: how much goes wrong in one run. The model's own are one fault and one crash.
var (
	small = []string{"FAULTS=1", "KILLS=0"} // for liveness, which visits each state many times
	rough = []string{"ROUGH=1", "FAULTS=0", "KILLS=0", "ACTS=1"}
)

func with(budget []string, more ...string) []string {
	return append(budget[:len(budget):len(budget)], more...)
}

// mutant lacks one thing that the lease has, and must break the invariant that it is there for.
func mutant(name, want string, budget ...string) check {
	c := check{name: name, set: with(budget, "MUTANT="+name), way: shortest, want: want}
	if want == "no_job_forgotten" {
		c.way = fair
	}
	return c
}

// checks are the model and its mutants.
var checks = []check{
	{name: "lease"},
	{name: "lease, rough", set: rough},
	{name: "lease, fair", set: small, way: fair},

	mutant("NO_FENCE", "fenced"),
	mutant("NO_WATCHER", "no_job_forgotten", "FAULTS=0"),
	mutant("CAPS_PASSED_OVER", "no_job_forgotten", "FAULTS=0"),
	mutant("TOKEN_STAYS", "token_grows"),
	mutant("READ_THEN_WRITE", "one_owner"),
	mutant("RENEW_EXPIRED", "expired_is_expired"),
	mutant("RENEW_ANY", "success_is_true"),
	mutant("SETTLE_ANY_STATUS", "closed_once"),
	mutant("SETTLE_ANY_TOKEN", "one_owner"),
	mutant("NO_ROWS_IS_SUCCESS", "success_is_true"),
	mutant("COUNT_AT_THE_END", "attempts_counted"),
	mutant("EXPIRE_WHAT_WAS", "one_owner"),
	mutant("NO_SELF_STOP", "one_owner"),
	mutant("CLOCK_TOO_SLOW", "one_owner"),
	mutant("RETRY_ANY", "finished_stays", rough...),
	mutant("LATE_CLAIM", "lease_is_known"),
	mutant("OVERLAP", "never_two_at_once"),

	{name: "lease, more faults", set: []string{"FAULTS=2", "KILLS=1", "MAX_ATTEMPTS=3"}, large: true},
	{name: "lease, 3 workers", set: []string{"N=3", "FAULTS=1", "KILLS=0"}, large: true},
	{name: "lease, rough, with faults", set: []string{"ROUGH=1", "FAULTS=1", "KILLS=0", "ACTS=1"}, large: true},
	{name: "lease, rough and fair", set: rough, way: fair, large: true},
}
