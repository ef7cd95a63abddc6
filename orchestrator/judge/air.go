package judge

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"linktrial/executor/credible"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
)

// On real radios each node counts what passes its radios' interfaces by listeners' ports,
// and what has none. An attempt beside which other packets passed than its own is marked as
// invalid, as the leading node does over emulated radios, which count by themselves.

// airMargin is how far from an attempt's begin and end packets are not counted, beside the
// clocks' bounds: nodes count in steps, and the attempt before it may just have ended.
const airMargin = 2 * journal.OtherTrafficStep

// defaultMTU is a packet's most bytes where the network is not known.
const defaultMTU = 1500

// counts reports whether a node counts the traffic of listeners' ports.
func (w *Node) counts() bool {
	return slices.ContainsFunc(w.Watched, func(r Watched) bool { return r.Listeners != nil })
}

// Counts reports whether any node counts the traffic of listeners' ports.
func (v *Run) Counts() bool { return slices.ContainsFunc(v.Nodes, (*Node).counts) }

// portOwners are the listeners of a run by their ports.
type portOwners map[int][]runsheet.Listener

// owners are the run's listeners by the ports that its sheet has and those that nodes have
// said.
func (v *Run) owners() portOwners {
	all := map[journal.ListenerName]runsheet.Listener{}
	out := portOwners{}
	for _, role := range radio.Roles {
		for _, l := range v.Sheet.Listeners(role) {
			all[nameOf(&l)] = l
			out[l.Port()] = append(out[l.Port()], l)
		}
	}
	for _, r := range v.Records {
		var b journal.Listener
		if r.Type != journal.TypeListenerReady || json.Unmarshal(r.Body, &b) != nil {
			continue
		}
		if l, known := all[b.Name()]; known && !out.has(b.Port, b.Name()) {
			out[b.Port] = append(out[b.Port], l)
		}
	}
	return out
}

// own reports whether a trial uses a listener at the port.
func (o portOwners) own(t *runsheet.Trial, port int) bool {
	return slices.ContainsFunc(o[port], func(l runsheet.Listener) bool {
		return slices.ContainsFunc(t.Carried(), func(f runsheet.Flow) bool { return f.Treatment == l.Treatment.Name })
	})
}

// has reports whether a listener has, or had, the port.
func (o portOwners) has(port int, name journal.ListenerName) bool {
	return slices.ContainsFunc(o[port], func(l runsheet.Listener) bool { return nameOf(&l) == name })
}

// text names the listener at a port.
func (o portOwners) text(port int) string {
	if port == 0 {
		return "between the ports of two listeners"
	}
	all := o[port]
	if len(all) == 0 {
		return fmt.Sprintf("at port %d, which no listener of the run has", port)
	}
	l := &all[len(all)-1]
	driver := l.Treatment.Protocol
	if l.Via != nil {
		driver = l.Via.Protocol
	}
	return fmt.Sprintf("at port %d, that of a listener of treatment %s (driver %s)", port, l.Treatment.Name, driver)
}

// passed is what passed a node's radios during an attempt, in bytes.
type passed struct {
	own, foreign int64
	most         int64 // of one kind
	what         string
	unknown      string
}

func (p *passed) add(n int64, what string) {
	p.foreign += n
	if n > p.most {
		p.most, p.what = n, what
	}
}

// passed adds up what the node counted during an attempt: of its own all that may have
// passed then, of the rest what did for certain. Of a span that the attempt shares in part,
// it is as much of the bytes, where it is known that they came evenly.
func (w *Node) passed(t *runsheet.Trial, owners portOwners, rule *runsheet.Interfering, a *Attempt) passed {
	out := passed{}
	type sum struct{ sent, received int64 }
	foreign, others, conversation := map[int]sum{}, int64(0), (*journal.Conversation)(nil)
	for i := range w.Watched {
		r, since := &w.Watched[i], w.since(i)
		if w.until(i).Before(a.from()) || since.After(a.to()) {
			continue
		}
		margin := a.margin(w, r)
		from, to := a.from().Add(margin), a.to().Add(-margin)
		if l := r.Listeners; l != nil {
			out.unknown = cmp.Or(out.unknown, l.Unknown)
			for _, x := range l.Spans {
				begin := since.Add(x.After)
				if !a.Succeeded && x.Port == runsheet.ExchangePort {
					continue // the leading node asks what the failure was
				}
				if owners.own(t, x.Port) {
					_, most := shares(begin, &x, a.from().Add(-margin), a.to().Add(margin))
					out.own += int64(most * float64(x.Sent+x.Received))
					continue
				}
				part, _ := shares(begin, &x, from, to)
				s := foreign[x.Port]
				foreign[x.Port] = sum{s.sent + int64(part*float64(x.Sent)), s.received + int64(part*float64(x.Received))}
			}
		}
		if rule != nil {
			continue // it is what holds for the other traffic
		}
		out.unknown = cmp.Or(out.unknown, r.Unwatched)
		if r.Other == nil {
			continue
		}
		here := int64(0)
		for _, b := range r.Other.Bytes {
			here += int64(share(since.Add(b.After), journal.OtherTrafficStep, from, to) * float64(b.Bytes))
		}
		if others += here; here > 0 && len(r.Other.Most) > 0 && (conversation == nil || r.Other.Most[0].Bytes > conversation.Bytes) {
			conversation = &r.Other.Most[0]
		}
	}
	for port, s := range foreign {
		way := "left it"
		if s.received > s.sent {
			way = "came to it"
		}
		out.add(s.sent+s.received, way+" "+owners.text(port))
	}
	if what := "had no listener's port"; others > 0 {
		if conversation != nil {
			what += ", mostly " + conversation.What
		}
		out.add(others, what)
	}
	return out
}

// margin is how far within an attempt's time what a node recorded passed for certain then.
func (a *Attempt) margin(w *Node, r *Watched) time.Duration {
	if w.Role == leader { // by the same clock
		return airMargin
	}
	return airMargin + a.Clock.Bound + r.Clock.Bound
}

// shares are how much of a span's bytes passed from one time to another for certain, and at
// the most.
func shares(begin time.Time, x *journal.PortSpan, from, to time.Time) (least, most float64) {
	part := share(begin, x.Length, from, to)
	if !x.Coarse || part == 0 || part == 1 {
		return part, part
	}
	return 0, 1
}

// share is how much of a span of time lies from one time to another, 0 to 1.
func share(begin time.Time, length time.Duration, from, to time.Time) float64 {
	end := begin.Add(length)
	if length <= 0 {
		if begin.Before(from) || begin.After(to) {
			return 0
		}
		return 1
	}
	first, last := begin, end
	if first.Before(from) {
		first = from
	}
	if last.After(to) {
		last = to
	}
	return float64(max(last.Sub(first), 0)) / float64(length)
}

// judgeAir holds an attempt against what else passed the nodes' radios meanwhile.
func (v *Run) judgeAir(j *judged, a *Attempt) {
	t := a.trialIn(v.Sheet)
	if t == nil || !v.Counts() {
		return
	}
	owners := v.owners()
	all, own := map[*Node]passed{}, int64(0)
	v.eachNode(func(w *Node) {
		p := w.passed(t, owners, v.rules().Interfering, a)
		all[w] = p
		own = max(own, p.own)
	})
	limit := credible.TolerableForeign(own, v.mtu())
	v.eachNode(func(w *Node) {
		switch p := all[w]; {
		case p.foreign > limit:
			j.spoilt("%s of packets that are not the attempt's passed the radio's interface of the %s, beside %s of the attempt; most, %s, %s",
				bytesText(p.foreign), w.Role, bytesText(own), bytesText(p.most), p.what)
		case p.unknown != "":
			j.undecided = append(j.undecided, fmt.Sprintf("%s: the %s: %s", journal.ReasonForeign, w.Role, p.unknown))
		case w.counts():
			w.gap(a, func(text string) { j.undecided = append(j.undecided, journal.ReasonForeign+": "+text) })
		}
	})
	v.judgeRepaired(j, a, owners)
}

// mtu is that of the run's network, in bytes.
func (v *Run) mtu() int {
	if n := v.Sheet.Network; n != nil && n.MTUBytes > 0 {
		return n.MTUBytes
	}
	return defaultMTU
}

// spoilt is that other packets were on the air.
func (j *judged) spoilt(format string, args ...any) {
	if j.broken == "" {
		j.broken = fmt.Sprintf("%s: %s", journal.ReasonForeign, fmt.Sprintf(format, args...))
	}
}
