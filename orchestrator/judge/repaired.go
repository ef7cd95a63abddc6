package judge

import (
	"slices"

	"linktrial/executor/credible"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/protocols/contract"
)

// What a driver says that it sent again is held, on real radios, against what of its flows'
// payload left one node and did not arrive at the other: all of an attempt that succeeded
// has arrived, so that was made up for.

// sending is the flows of one treatment that start at one node, and their first listener.
type sending struct {
	from  radio.Role
	to    radio.Role
	name  journal.ListenerName
	again int64
}

// sendings are those of a trial of which it is known how many packets were sent again:
// every flow was carried to its end over one path by a driver that counts them.
func sendings(s *runsheet.Sheet, t *runsheet.Trial, c *Carried) (out []sending) {
	if s.Network != nil && s.Network.Second != nil {
		return nil // a path that was given up takes its counts along
	}
	unknown := map[string]bool{}
	for i := range t.Flows {
		f := &t.Flows[i]
		x := sending{from: f.From, to: f.ServerAt(), name: journal.ListenerName{Treatment: f.Treatment}}
		if via := s.Treatment(f.Treatment).Passes(f.ClientAt()); len(via) > 0 {
			x.to, x.name.At = via[0].At, via[0].At
		}
		again, ok := c.sentAgain(i)
		k := slices.IndexFunc(out, func(y sending) bool { return y.name.Treatment == f.Treatment })
		switch {
		case !ok || f.Duration > 0 || f.FromServer() || x.from == x.to || k >= 0 && (out[k].from != x.from || out[k].name != x.name):
			unknown[f.Treatment] = true
		case k >= 0:
			out[k].again += again
		default:
			x.again = again
			out = append(out, x)
		}
	}
	return slices.DeleteFunc(out, func(x sending) bool { return unknown[x.name.Treatment] })
}

// sentAgain is how many packets the driver of a flow says that it sent again or as repairs.
func (c *Carried) sentAgain(flow int) (int64, bool) {
	last := c.Samples[flow]
	if last == nil || last.Retransmits == nil {
		return 0, false
	}
	return *last.Retransmits + int64(last.More[contract.MoreRepairs]), true
}

// judgeRepaired holds an attempt's drivers to what the nodes counted of their payload.
func (v *Run) judgeRepaired(j *judged, a *Attempt, owners portOwners) {
	if !a.Succeeded {
		return
	}
	for _, x := range sendings(v.Sheet, a.trialIn(v.Sheet), &a.Carried) {
		from, to := v.node(x.from), v.node(x.to)
		if from == nil || to == nil {
			continue
		}
		sent, known := from.payload(owners, x.name, a, false)
		received, alsoKnown := to.payload(owners, x.name, a, true)
		if !known || !alsoKnown {
			continue
		}
		if wrong := credible.RepairedOf(x.again, sent-received, v.mtu(), x.from, x.to); wrong != nil {
			j.untrue(wrong)
		}
	}
}

// node is the one of a role; nil: it has delivered nothing.
func (v *Run) node(role radio.Role) *Node {
	for _, w := range v.Nodes {
		if w.Role == role {
			return w
		}
	}
	return nil
}

// payload is how many bytes of payload at the ports of a listener a node has sent during an
// attempt for certain, or has received at the most; false: it is not known. The leading
// node's records begin and end between attempts; in those of the others a span may have
// packets of two attempts of one treatment.
func (w *Node) payload(owners portOwners, name journal.ListenerName, a *Attempt, received bool) (sum int64, known bool) {
	known = w.counts()
	w.gap(a, func(string) { known = false })
	for i := range w.Watched {
		r, since := &w.Watched[i], w.since(i)
		margin := a.margin(w, r)
		from, to := a.from().Add(-margin), a.to().Add(margin)
		if !received {
			from, to = a.from(), a.to()
			if w.Role != leader {
				from, to = a.from().Add(margin), a.to().Add(-margin)
			}
		}
		if r.Listeners == nil || w.until(i).Before(from) || since.After(to) {
			continue
		}
		if r.Listeners.Unknown != "" || r.ClockStep != 0 {
			return 0, false
		}
		for _, x := range r.Listeners.Spans {
			if !owners.has(x.Port, name) {
				continue
			}
			least, _ := shares(since.Add(x.After), &x, from, to)
			switch {
			case received && share(since.Add(x.After), x.Length, from, to) > 0:
				sum += x.ReceivedPayload
			case !received && (w.Role == leader || least == 1):
				sum += int64(least * float64(x.SentPayload))
			}
		}
	}
	return sum, known
}

// untrue is that a driver reports what cannot be.
func (j *judged) untrue(f *credible.Fault) {
	if j.broken == "" {
		j.broken, j.drivers = f.Reason+": "+f.Message, true
	}
}
