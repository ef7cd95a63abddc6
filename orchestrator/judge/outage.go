package judge

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/protocols/contract"
)

// The leading node cannot know everywhere that a listener of another node was not in
// order when an attempt failed. Where the journals of both are together it is known: the
// attempt says nothing of its protocol.

// outageMargin is added at both ends of an outage, beside what the clocks' offsets
// leave open: an agent that is killed cannot record when.
const outageMargin = time.Second

// Record is what a node that does not lead recorded of its listeners, of its radios'
// interfaces, or of a time at which its agent did not run.
type Record struct {
	Node   string
	Role   radio.Role
	At     time.Time // by the orchestrator's clock
	Clock  Clock     // the node's, for times in the body
	Type   journal.Type
	Body   []byte
	Before time.Time // of the record before, by the orchestrator's clock
}

// Outage is a time at which a listener or an agent was not in order through no fault of
// a driver, by the orchestrator's clock.
type Outage struct {
	From, To time.Time // To: zero while it lasts
	Stopped  bool      // what was not in order went on: values are false, too

	role     radio.Role
	name     journal.ListenerName // of the listener, unless it is the agent's
	agent    bool                 // the agent did not run
	iface    bool                 // the radio's interface
	forwards bool                 // also what only passes the node: its kernel forwards packets, or should have
	lasting  bool                 // another attempt would meet it again
	why      string
}

// OutageList is the outages of a run.
type OutageList struct {
	All   []Outage // by their begin
	sheet *runsheet.Sheet
}

// DuringStop marks the attempts during an outage that needed what it stopped: the values
// of those that succeeded are false, too.
func (o *OutageList) DuringStop(x *Outage, attempts []Attempt) (out []*Mark) {
	for i := range attempts {
		a := &attempts[i]
		if t := a.trialIn(o.sheet); t != nil && a.meets(x.From, x.To) && x.concerns(o.sheet, t) {
			out = append(out, a.mark(x.why, a.ended(), true))
		}
	}
	return out
}

// Failures marks the attempts that failed during an outage.
func (o *OutageList) Failures(attempts []Attempt) (out []*Mark) {
	for i := range attempts {
		a := &attempts[i]
		if x := o.during(a); x != nil {
			out = append(out, a.mark(x.why, a.ended(), !x.lasting))
		}
	}
	return out
}

// Unconfirmed marks the attempts that succeeded, and that the server does not confirm
// because it was not in order: its listener went on without the agent that would have
// recorded what arrived. Such an attempt would count as failed.
func (o *OutageList) Unconfirmed(attempts []Attempt) (out []*Mark) {
	for i := range attempts {
		a := &attempts[i]
		x := o.during(a)
		// Until the server has said what comes after the attempt, the confirmation may be
		// under way: the record that ends the outage comes after those of earlier transfers.
		if x == nil || !a.Final && (x.To.IsZero() || a.to().Add(a.Clock.Bound).After(x.To.Add(-outageMargin))) {
			continue
		}
		out = append(out, a.mark(x.why, "ended with a result that the server did not record", true))
	}
	return out
}

// during is an outage that an attempt met of something that it needed; nil: none.
func (o *OutageList) during(a *Attempt) *Outage {
	t := a.trialIn(o.sheet)
	if t == nil {
		return nil
	}
	i := slices.IndexFunc(o.All, func(x Outage) bool { return a.meets(x.From, x.To) && x.concerns(o.sheet, t) })
	if i < 0 {
		return nil
	}
	return &o.All[i]
}

// concerns reports whether a trial needs what was not in order.
func (x *Outage) concerns(sheet *runsheet.Sheet, t *runsheet.Trial) bool {
	if x.forwards && sheet.Passes(t, x.role) {
		return true
	}
	if x.iface {
		return sheet.Ends(t, x.role)
	}
	needed := sheet.Needs(t, x.role)
	if x.agent {
		starts := func(f runsheet.Flow) bool { return f.From == x.role }
		return len(needed) > 0 || slices.ContainsFunc(t.Carried(), starts)
	}
	return slices.ContainsFunc(needed, func(l runsheet.Listener) bool { return nameOf(&l) == x.name })
}

// Outages are those that records of nodes tell, which are in the order of journals.
func Outages(sheet *runsheet.Sheet, records []Record) *OutageList {
	t := outageTracker{sheet: sheet, listeners: map[listenerOf]Outage{}, interfaces: map[deviceOf]Outage{}}
	for i := range records {
		r := &records[i]
		switch r.Type {
		case journal.TypeRunResumed:
			t.resumed(r)
		case journal.TypeAgentStopped:
			t.stopped(r)
		case journal.TypeInterfaceFailed, journal.TypeInterfaceReady:
			t.radioInterface(r)
		default:
			t.listener(r)
		}
	}
	for _, x := range t.listeners {
		t.ended = append(t.ended, x)
	}
	for _, x := range t.interfaces {
		t.ended = append(t.ended, x)
	}
	slices.SortStableFunc(t.ended, func(a, b Outage) int { return a.From.Compare(b.From) })
	return &OutageList{All: t.ended, sheet: sheet}
}

type listenerOf struct {
	node string
	name journal.ListenerName
}

type deviceOf struct{ node, name string } // the interface of a node's radio

// outageTracker goes through records; an outage is in its maps until it ends.
type outageTracker struct {
	sheet      *runsheet.Sheet
	listeners  map[listenerOf]Outage
	interfaces map[deviceOf]Outage
	ended      []Outage
}

// down begins an outage of a listener, unless it is down already.
func (t *outageTracker) down(r *Record, name journal.ListenerName, from time.Time, why string, lasting bool) {
	k := listenerOf{r.Node, name}
	if _, already := t.listeners[k]; !already {
		t.listeners[k] = Outage{role: r.Role, name: name, From: from.Add(-r.Clock.Bound - outageMargin), why: why, lasting: lasting}
	}
}

func (t *outageTracker) restored(d deviceOf, at time.Time) {
	if x, ok := t.interfaces[d]; ok {
		x.To = at
		t.ended = append(t.ended, x)
		delete(t.interfaces, d)
	}
}

// resumed is an agent that was started again: it was not running since the record before,
// or since it knows to have been alive.
func (t *outageTracker) resumed(r *Record) {
	var b journal.RunStarted
	_ = json.Unmarshal(r.Body, &b) // without a time it is that of the record before
	from := r.Before
	if alive := b.Alive.Add(r.Clock.Offset); alive.After(from) && alive.Before(r.At) {
		from = alive
	}
	why := fmt.Sprintf("the agent of the %s was not running from %s to %s", r.Role, clockTime(from), clockTime(r.At))
	for _, l := range t.sheet.Listeners(r.Role) {
		t.down(r, nameOf(&l), from, why, false)
	}
	if b.Forwards { // its node may have had no power meanwhile
		margin := r.Clock.Bound + outageMargin
		t.ended = append(t.ended, Outage{role: r.Role, agent: true, forwards: true, From: from.Add(-margin), To: r.At.Add(margin), why: why})
	}
	// What is still wrong with an interface the new agent records again.
	for d := range t.interfaces {
		if d.node == r.Node {
			t.restored(d, r.At.Add(r.Clock.Bound))
		}
	}
}

// stopped is an agent that did not run for a time.
func (t *outageTracker) stopped(r *Record) {
	var b journal.AgentStopped
	if json.Unmarshal(r.Body, &b) != nil {
		return
	}
	from, to := b.From.Add(r.Clock.Offset), b.To.Add(r.Clock.Offset)
	t.ended = append(t.ended, Outage{role: r.Role, agent: true, Stopped: true, From: from.Add(-r.Clock.Bound), To: to.Add(r.Clock.Bound),
		why: fmt.Sprintf("the agent of the %s did not run from %s to %s", r.Role, clockTime(from), clockTime(to))})
}

func (t *outageTracker) radioInterface(r *Record) {
	var b journal.RadioInterface
	_ = json.Unmarshal(r.Body, &b) // checked when it was stored
	d := deviceOf{r.Node, b.Device}
	t.restored(d, r.At.Add(r.Clock.Bound))
	if r.Type == journal.TypeInterfaceFailed {
		t.interfaces[d] = Outage{role: r.Role, iface: true, forwards: b.Forwards, Stopped: true, From: r.At.Add(-r.Clock.Bound),
			why: fmt.Sprintf("the radio's interface %s of the %s was not in order at %s: %s", b.Device, r.Role, clockTime(r.At), b.Fault)}
	}
}

func (t *outageTracker) listener(r *Record) {
	var l journal.Listener
	if json.Unmarshal(r.Body, &l) != nil {
		return
	}
	k, failed := listenerOf{r.Node, l.Name()}, r.Type == journal.TypeListenerFailed
	switch {
	case failed && l.Stopped:
		// Its agent runs, and records the moment.
		t.listeners[k] = Outage{role: r.Role, name: l.Name(), Stopped: true, From: r.At.Add(-r.Clock.Bound),
			why: fmt.Sprintf("the listener of %s at the %s was stopped from outside at %s", l.Treatment, r.Role, clockTime(r.At))}
	case failed && (l.Renewed || l.Outside || l.Code == contract.CodeBadParameters):
		t.down(r, l.Name(), r.At, fmt.Sprintf("the listener of %s at the %s %s", l.Treatment, r.Role, whyDown(&l, r.At)), l.Code == contract.CodeBadParameters)
	default: // it is up, or what keeps it down is its driver's fault
		if x, ok := t.listeners[k]; ok {
			x.To = r.At.Add(r.Clock.Bound)
			if !x.Stopped {
				x.To = x.To.Add(outageMargin)
			}
			t.ended = append(t.ended, x)
			delete(t.listeners, k)
		}
	}
}

// whyDown says since when a listener is not up through no fault of its protocol.
func whyDown(l *journal.Listener, at time.Time) string {
	switch {
	case l.Renewed:
		return fmt.Sprintf("was started again after %s: %s", clockTime(at), l.Message)
	case l.Code == contract.CodeListenFailed:
		return fmt.Sprintf("was not up at %s: %s", clockTime(at), l.Message)
	case l.Code == contract.CodeBadParameters:
		return fmt.Sprintf("refused its parameters at %s: %s", clockTime(at), l.Message)
	}
	return "was ended from outside at " + clockTime(at)
}

// nameOf is a listener's name in journals.
func nameOf(l *runsheet.Listener) journal.ListenerName {
	return journal.ListenerName{Treatment: l.Treatment.Name, At: l.At()}
}
