/* The lease of one job: workers that claim, renew, act outside, settle, stand still and die; a
   watcher; people; two kinds of clock; requests that are lost, carried out without an answer, or
   carried out late. "make model" has spin check it and each mutant of it (cases.go lists them).
   R1 to R12 are the rules in lease.go; docs/lease.md maps each step here to SQL and Go.

   Each d_step is one atomic step: one SQL statement, or one thing that a process does by itself.
   Between two of them anybody may stand still for as long as it likes: that is SIGSTOP, a machine
   that sleeps, a slow network. One job is enough, because no statement judges one lease by another. */

#ifndef MUTANT
#define MUTANT 0
#endif
#ifndef N
#define N 2                /* workers, 2 or 3 */
#endif
/* Budgets: how much goes wrong in one run. */
#ifndef FAULTS
#define FAULTS 1           /* requests lost, unanswered or late */
#endif
#ifndef KILLS
#define KILLS 1            /* crashes of workers */
#endif
#ifndef ACTS
#define ACTS 0             /* acts by hand, attempts given back, steps of the database's clock */
#endif
#ifndef ROUGH
#define ROUGH 0            /* 1: people act, and the database's clock is set forward */
#endif
#ifndef MAX_ATTEMPTS
#define MAX_ATTEMPTS 2
#endif

/* What is taken away; one at a time. */
#define is(m)              (MUTANT == m)
#define NO_FENCE           1   /* the resource outside does not look at the token */
#define NO_WATCHER         2
#define CAPS_PASSED_OVER   3   /* the watcher leaves alone what is at a cap */
#define TOKEN_STAYS        4   /* a claim does not raise the token */
#define READ_THEN_WRITE    5   /* a claim takes what was free when it looked */
#define RENEW_EXPIRED      6   /* a renewal after the end */
#define RENEW_ANY          7   /* a renewal without the token */
#define SETTLE_ANY_STATUS  8   /* a settle fenced by the token alone */
#define SETTLE_ANY_TOKEN   9   /* a settle fenced by the status alone */
#define NO_ROWS_IS_SUCCESS 10  /* the count of changed rows is not looked at */
#define COUNT_AT_THE_END   11  /* the attempt is counted by the settle, not by the claim */
#define EXPIRE_WHAT_WAS    12  /* the watcher closes what had expired when it looked */
#define NO_SELF_STOP       13  /* the handler works on, whatever its clocks say */
#define CLOCK_TOO_SLOW     14  /* a worker's clocks lose more than the margin */
#define RETRY_ANY          15  /* a completed job is retried by hand */
#define LATE_CLAIM         16  /* a claim is carried out after its owner has asked what it holds */
#define OVERLAP            17  /* takes nothing away: shows what is not promised */

#define TTL          2     /* in ticks, as all durations */
#define MARGIN       1     /* the holder stops itself so long before the end (worker/hold.go margin) */
#define SKEW         (is(CLOCK_TOO_SLOW) -> MARGIN + 1 : MARGIN)   /* ticks that its clocks may lose */
#define MAX_CRASHES  2
#define TOKENS       10
#define NOBODY       3
#define GONE         4     /* an owner whose process is dead; its name is never used again */

/* Status (status.go), finished from COMPLETED on. Outcome (lease.go). What a worker is at. */
#define PENDING 0
#define PROCESSING 1
#define STUCK 2
#define COMPLETED 3
#define DEAD 4
#define CANCELLED 5
mtype = { Done, Failed, Unknown, Released, Expired, Withdrawn };
mtype = { IDLE, CLAIM, UNSURE, ASK, RUN, CALL, RETURNED, NONE, RENEW, SETTLE };

/* The row in leases; left is lease_until less the database's now. The ledger: outcomes by token. */
byte status, token, attempt, crashes, left, owner = NOBODY, ledger[TOKENS];
bit cancel, holds;         /* cancel_requested; crash_policy = hold */

/* Each worker. own: how long it may believe in its lease, by its own clocks (hold.remaining); pend:
   the same for an answer it waits for, counted from before the request went out. A late request. */
mtype phase[3] = IDLE, late[3] = NONE;
byte tok[3], own[3], pend[3], slow[3], outcome[3], late_tok[3], late_out[3];
bit acted[3], asking[3];   /* asking: a renewal is on its way */

/* The resource outside: the highest token that it has seen, and who wrote under it. */
byte seen, writer = NOBODY;

byte faults = FAULTS, kills = KILLS, acts = ACTS;
bit stale;
byte top, claims, given;   /* only the invariants look at these */
bit got;                   /* what the statement of this step has answered */

/* A broken invariant ends the search with its name. */
bit one_owner = 1, token_grows = 1, closed_once = 1, fenced = 1, attempts_counted = 1, expired_is_expired = 1;
bit finished_stays = 1, success_is_true = 1, lease_is_known = 1, never_two_at_once = 1;
inline must(name, what) { name = (what); assert(name) }

/* R8: a worker that believes in its lease has it. Not so if ROUGH, when a lease is taken from its
   holder by hand, or ends early because the database's clock jumped: then only the fence holds. */
#define may(w)      (own[w] > 0 || is(NO_SELF_STOP))
#define believes(w) ((phase[w] == RUN || phase[w] == CALL) && may(w))
#define right(w)    (!believes(w) || ROUGH || (status == PROCESSING && owner == w && token == tok[w]))
#define known(w)    !(phase[w] == IDLE && status == PROCESSING && owner == w)
#define caps        (attempt >= MAX_ATTEMPTS || crashes + 1 >= MAX_CRASHES)
#define overdue     (status == PROCESSING && left == 0 && !holds && !caps && !cancel)
#define less(x)     (x > 0 -> x - 1 : 0)

/* ---- The statements: postgres/sql and sqlite/sql have each under the name given. ---- */

inline grow() {            /* R2: by taking the lease, and by nothing else */
	token = token + 1 - is(TOKEN_STAYS);
	must(token_grows, token > top); top = token }
inline close(how) {        /* R4: the key of the ledger is (job, token) */
	must(closed_once, ledger[token] == 0);
	ledger[token] = how; owner = NOBODY; left = 0 }
inline become(next) {      /* R9: with a cancel requested, what would be Pending is Cancelled */
	must(finished_stays, status < COMPLETED);
	status = (next == PENDING && cancel -> CANCELLED : next); cancel = 0 }
inline take(by) {          /* R5: the claim counts the attempt */
	grow(); status = PROCESSING; owner = by; left = TTL; got = 1;
	claims++; attempt = attempt + 1 - is(COUNT_AT_THE_END) }

inline claim(by) {         /* claim.sql, claim_id.sql: R1 */
	got = 0;
	if
	:: status == PENDING || is(READ_THEN_WRITE) -> take(by)
	:: overdue -> close(Expired); crashes++; take(by)
	:: else
	fi }

inline renew(t) {          /* renew.sql: R3, R7 */
	got = 0;
	if
	:: status == PROCESSING && (token == t || is(RENEW_ANY)) && (left > 0 || is(RENEW_EXPIRED)) ->
		must(expired_is_expired, left > 0); left = TTL; got = 1
	:: else
	fi }

inline settle(t, how) {    /* settle.sql; what closed nothing is answered by settled.sql: R3, R4, R7 */
	if
	:: (status == PROCESSING || is(SETTLE_ANY_STATUS)) && (token == t || is(SETTLE_ANY_TOKEN)) ->
		close(how); got = 1; attempt = attempt + is(COUNT_AT_THE_END);
		if
		:: how == Done -> become(COMPLETED)
		:: how == Unknown -> become(STUCK)
		:: how == Failed && attempt >= MAX_ATTEMPTS -> become(DEAD)
		:: how == Failed && attempt < MAX_ATTEMPTS -> become(PENDING); crashes = 0
		:: how == Released -> attempt--; given++; become(PENDING)
		fi
	:: else -> got = (is(NO_ROWS_IS_SUCCESS) || ledger[t] == how)
	fi }

inline expire() {          /* expire.sql, decided on the locked row: R6, R9 */
	if
	:: status == PROCESSING && (left == 0 || is(EXPIRE_WHAT_WAS)) && !(is(CAPS_PASSED_OVER) && caps) ->
		close(Expired); become((holds || caps -> STUCK : PENDING)); crashes++
	:: else
	fi }

/* ---- The processes. ---- */

/* An answer is taken in with the step that made it. Between the two nobody else could tell: a worker
   that has its answer early believes more, and for longer, than one that still waits. */
#define fault       (faults > 0)
#define send(w)     pend[w] = TTL - MARGIN
#define busy(w)     (phase[w] == RUN || phase[w] == CALL || phase[w] == RETURNED)
/* Workers are alike, so the first to ask is worker 0. */
#define turn(w)     (w == 0 || phase[0] != IDLE || top > 0 || faults < FAULTS || kills < KILLS)
inline forget(w) { tok[w] = 0; own[w] = 0; pend[w] = 0; slow[w] = 0; acted[w] = 0; outcome[w] = 0; got = 0 }
inline arrived(w) { late[w] = NONE; late_tok[w] = 0; late_out[w] = 0; got = 0 }
inline delay(x, verb, num) { faults--; late[x] = verb; late_tok[x] = num; late_out[x] = outcome[x] }
inline begin(w) { tok[w] = token; own[w] = pend[w]; pend[w] = 0; phase[w] = RUN }

proctype Worker(byte w) {  /* claimLoop, handler, settler: worker/claim.go, runner.go, settle.go */
end:	do
	:: d_step { phase[w] == IDLE && !asking[w] && turn(w) && (status == PENDING || overdue) -> send(w); slow[w] = SKEW; phase[w] = CLAIM }
	:: d_step { phase[w] == CLAIM -> claim(w);
		if :: got -> begin(w); got = 0 :: else -> forget(w); phase[w] = IDLE fi }
	:: d_step { phase[w] == CLAIM && fault -> faults--; claim(w); forget(w); phase[w] = UNSURE }          /* no answer */
	:: d_step { phase[w] == CLAIM && fault && late[w] == NONE -> delay(w, CLAIM, w); forget(w); phase[w] = UNSURE }
	/* adopt, held_by.sql: what do I hold? */
	:: d_step { phase[w] == UNSURE && !asking[w] -> send(w); slow[w] = SKEW; phase[w] = ASK }
	:: d_step { phase[w] == ASK ->
		if
		:: status == PROCESSING && owner == w -> pend[w] = (left + pend[w] > TTL -> left + pend[w] - TTL : 0); begin(w)
		:: else -> forget(w); phase[w] = IDLE
		fi;
		/* void.sql: what is still on its way takes nothing */
		if :: late[w] == CLAIM && late_tok[w] == w && !is(LATE_CLAIM) -> arrived(w) :: else fi }
	/* The handler looks whether it may (Remaining, Ensure, its context), and then it acts. */
	:: d_step { phase[w] == RUN && may(w) && !acted[w] -> phase[w] = CALL }
	:: d_step { phase[w] == CALL ->
		if
		:: tok[w] < seen && !is(NO_FENCE)                               /* the resource refuses */
		:: else -> must(fenced, tok[w] > seen || (tok[w] == seen && writer == w)); seen = tok[w]; writer = w
		fi;
		acted[w] = 1; phase[w] = RUN }
	:: atomic { phase[w] == RUN ->                                          /* also when it was stopped */
		if :: outcome[w] = Done :: outcome[w] = Failed :: acted[w] -> outcome[w] = Unknown
		:: acts > 0 -> acts--; outcome[w] = Released fi;
		phase[w] = RETURNED }
	:: d_step { phase[w] == RETURNED -> settle(tok[w], outcome[w]);
		must(success_is_true, !got || ledger[tok[w]] == outcome[w]); forget(w); phase[w] = IDLE }
	:: d_step { phase[w] == RETURNED && fault -> faults--; settle(tok[w], outcome[w]); got = 0 }                   /* no answer: once more */
	:: d_step { phase[w] == RETURNED && fault && late[w] == NONE -> delay(w, SETTLE, tok[w]) }
	/* A crash. Its successor has another name, and knows nothing. */
	:: d_step { (phase[w] != IDLE || owner == w) && kills > 0 -> kills--; forget(w); asking[w] = 0; phase[w] = IDLE;
		if :: owner == w -> owner = GONE :: else fi;
		if :: writer == w -> writer = GONE :: else fi;
		if :: late[w] == CLAIM -> late_tok[w] = GONE :: else fi }
	od }

proctype Connection(byte w) {  /* renewLoop: worker/keep.go; and what arrives late */
end:	do
	:: d_step { busy(w) && !asking[w] && own[w] > 0 -> send(w); asking[w] = 1 }
	:: d_step { asking[w] -> renew(tok[w]); must(success_is_true, !got || token == tok[w]);
		if /* hold.renewed, hold.forfeit */ :: busy(w) -> own[w] = (got -> pend[w] : 0) :: else fi;
		pend[w] = 0; asking[w] = 0; got = 0 }
	:: d_step { asking[w] && fault -> faults--; renew(tok[w]); pend[w] = 0; asking[w] = 0; got = 0 }
	:: d_step { asking[w] && fault && late[w] == NONE -> delay(w, RENEW, tok[w]); pend[w] = 0; asking[w] = 0 }
	:: d_step { late[w] == CLAIM -> claim(late_tok[w]); arrived(w) }
	:: d_step { late[w] == RENEW -> renew(late_tok[w]); arrived(w) }
	:: d_step { late[w] == SETTLE -> settle(late_tok[w], late_out[w]); arrived(w) }
	od }

proctype Watcher() {       /* watch.Watcher. A pass is one statement: a crash is a pass that does not come */
end:	do
	:: d_step { status == PROCESSING && left == 0 && !is(EXPIRE_WHAT_WAS) && !(is(CAPS_PASSED_OVER) && caps) -> expire() }
	:: d_step { status == PROCESSING && left == 0 && is(EXPIRE_WHAT_WAS) && !stale -> stale = 1 }
	:: d_step { stale -> stale = 0; expire() }
	od }

inline lapse(w) {          /* one tick by the clocks of w, which may lose some */
	if
	:: own[w] + pend[w] > 0 -> own[w] = less(own[w]); pend[w] = less(pend[w])
	:: own[w] + pend[w] > 0 && slow[w] > 0 -> slow[w]--
	:: own[w] + pend[w] == 0
	fi }

proctype Clock() {         /* the database's clock decides (R6); each worker believes its own (R8) */
end:	do
	:: atomic { left = less(left); lapse(0); lapse(1); lapse(2) }
	:: d_step { ROUGH && acts > 0 && left > 0 -> acts--; left = 0 }
	od }

proctype Operator() {      /* release.sql, cancel.sql, retry.sql */
	byte t;                /* the token that the person saw */
end:	do
	:: d_step { acts > 0 && t == 0 && status == PROCESSING -> t = token }
	:: d_step { t > 0 -> acts = less(acts);
		if :: status == PROCESSING && token == t -> close(Released); attempt--; given++; become(PENDING) :: else fi;
		t = 0 }
	:: d_step { acts > 0 && status == PROCESSING -> acts--; cancel = 1 }
	:: d_step { acts > 0 && (status == PENDING || status == STUCK) -> acts--; grow(); close(Withdrawn); become(CANCELLED) }
	:: d_step { acts > 0 && status >= STUCK && (status != COMPLETED || is(RETRY_ANY)) -> acts--;
		must(finished_stays, status != COMPLETED); status = PENDING; crashes = 0 }
	od }

proctype Invariants() {    /* stands still as long as these hold, in every state */
end:	do
	:: d_step { !(right(0) && right(1) && right(2)) -> must(one_owner, false) }
	:: d_step { !(known(0) && known(1) && known(2)) -> must(lease_is_known, false) }
	:: d_step { attempt + given != claims -> must(attempts_counted, false) }
	:: d_step { is(OVERLAP) && phase[0] == CALL && phase[1] == CALL -> must(never_two_at_once, false) }
	od }

init { atomic {
	if :: holds = 0 :: holds = 1 fi;
	run Worker(0); run Connection(0); run Worker(1); run Connection(1);
	if :: N == 3 -> run Worker(2); run Connection(2) :: else fi;
	if :: !is(NO_WATCHER) -> run Watcher() :: else fi;
	run Clock();
	if :: ROUGH -> run Operator() :: else fi;
	run Invariants()
} }

/* Under weak fairness: the job ends, or is put before a person, and stays so. */
ltl no_job_forgotten { <>[] (status >= STUCK) }
