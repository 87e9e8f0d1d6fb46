package history

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/pacht-queue/pacht"
)

// patience is how long one job's calls may take to check. Running out of it is a finding: what
// was not checked did not pass.
const patience = 20 * time.Second

// Finding is a job whose answers no order of the calls explains, or an answer that is wrong
// by itself.
type Finding struct {
	Job   pacht.ID
	Why   string // the rule, and what is wrong
	Call  string // the call whose answer cannot be
	After int    // how many events had been written down when it returned, earlier ones included
	// events is the calls of the job until then.
	events []*event
	of     *job
}

func (f Finding) String() string {
	return fmt.Sprintf("job %d, after %d events: %s; %s", f.Job, f.After, f.Why, f.Call)
}

// Check asks for every job whether an order of its calls explains all answers. before is how
// many events earlier histories of the same run had. The first finding comes first.
func (h *History) Check(before int) []Finding {
	h.close()
	h.mu.Lock()
	defer h.mu.Unlock()
	found := slices.Clone(h.direct)
	for _, t := range h.jobs {
		if f, bad := t.check(); bad {
			f.After = h.until(f.events)
			found = append(found, f)
		}
	}
	for i := range found {
		found[i].After += before
	}
	slices.SortFunc(found, func(a, b Finding) int { return cmp.Or(cmp.Compare(a.After, b.After), cmp.Compare(a.Job, b.Job)) })
	return found
}

// until counts the events that had returned when the last of these did.
func (h *History) until(events []*event) (n int) {
	end := last(events)
	for _, t := range h.jobs {
		for _, e := range t.events {
			if e.ret <= end {
				n++
			}
		}
	}
	return n
}

func (t *track) check() (Finding, bool) {
	switch t.ask(t.events) {
	case porcupine.Ok:
		return Finding{}, false
	case porcupine.Unknown:
		return Finding{Job: t.id, Why: fmt.Sprintf("not checked: the checker did not end within %s", patience), events: t.events, of: &t.job}, true
	}
	// Whatever explains a history explains each beginning of it: the shortest that nothing
	// explains ends with the answer that cannot be.
	slices.SortStableFunc(t.events, func(a, b *event) int { return cmp.Compare(a.ret, b.ret) })
	n := shortest(len(t.events), func(n int) bool { return t.ask(t.beginning(n)) == porcupine.Illegal })
	begun := t.beginning(n)
	f := Finding{Job: t.id, events: begun, of: &t.job}
	if n > 0 {
		f.Call = t.events[n-1].String()
		f.Why = t.reason(begun, t.events[n-1])
	}
	return f, true
}

// shortest is the least n for which bad holds; bad holds for the longest, and for all after
// the first.
func shortest(longest int, bad func(int) bool) int {
	lo, hi := 0, longest // bad(hi)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; bad(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}

// beginning is the first n answers, with the calls that were under way when the last came.
func (t *track) beginning(n int) []*event {
	events := slices.Clone(t.events[:n])
	end := last(events)
	for _, e := range t.events[n:] {
		if o := e.opened(); o != nil && e.call <= end {
			events = append(events, o)
		}
	}
	return events
}

func (t *track) ask(events []*event) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(t.model(), operations(events), patience)
}

// reason is what the model says of a call, from the states where it got stuck.
func (t *track) reason(events []*event, last *event) string {
	_, info := porcupine.CheckOperationsVerbose(t.model(), operations(events), patience)
	why, most := "no order explains it", -1
	for _, partial := range info.PartialLinearizationsOperations()[0] {
		if len(partial) < most {
			continue
		}
		s := lease{}
		for _, op := range partial {
			s, _ = t.step(s, op.Input.(*event))
		}
		if _, said := t.step(s, last); said != "" && (len(partial) > most || said < why) {
			why, most = said, len(partial)
		}
	}
	return why
}

func operations(events []*event) []porcupine.Operation {
	ops := make([]porcupine.Operation, len(events))
	for i, e := range events {
		ops[i] = porcupine.Operation{ClientId: e.client, Input: e, Call: e.call, Return: e.ret}
	}
	return ops
}

func (j *job) model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return lease{} },
		Step: func(state, input, _ any) (bool, any) {
			next, why := j.step(state.(lease), input.(*event))
			return why == "", next
		},
		DescribeOperation: func(input, _ any) string { return input.(*event).String() },
		DescribeState:     func(state any) string { return state.(lease).String() },
	}
}

// Draw writes porcupine's page of a finding into the folder, to be opened in a browser, and
// answers its path.
func (f Finding) Draw(folder string) (string, error) {
	if f.of == nil {
		return "", nil
	}
	path := filepath.Join(folder, fmt.Sprintf("job-%d.html", f.Job))
	out, err := os.Create(path)
	if err != nil {
		return "", fmt.Errorf("draw job %d: %w", f.Job, err)
	}
	defer out.Close()
	events := f.events
	end := last(events) + int64(time.Millisecond)
	for _, e := range events {
		e.ret = min(e.ret, end) // the page has an end
	}
	model := f.of.model()
	_, info := porcupine.CheckOperationsVerbose(model, operations(events), patience)
	if err := porcupine.Visualize(model, info, out); err != nil {
		return "", fmt.Errorf("draw job %d: %w", f.Job, err)
	}
	return path, nil
}

// last is when the last answer came.
func last(events []*event) (end int64) {
	for _, e := range events {
		if e.ret < forever {
			end = max(end, e.ret)
		}
	}
	return end
}
