package campaign

import (
	"context"
	"encoding/json"
	"slices"

	"linktrial/executor/figures"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/orchestrator/store/dbsqlc"
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
func sendings(s *runsheet.Sheet, t *runsheet.Trial, flows []dbsqlc.Flow) (out []sending) {
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
		again, ok := sentAgain(flows, i)
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
func sentAgain(flows []dbsqlc.Flow, flow int) (int64, bool) {
	i := slices.IndexFunc(flows, func(f dbsqlc.Flow) bool { return int(f.Flow) == flow })
	if i < 0 || flows[i].Verdict == nil || *flows[i].Verdict != string(journal.Succeeded) {
		return 0, false
	}
	var last contract.Sample
	if len(flows[i].LastSample) == 0 || json.Unmarshal(flows[i].LastSample, &last) != nil || last.Retransmits == nil {
		return 0, false
	}
	return *last.Retransmits + int64(last.More[contract.MoreRepairs]), true
}

// judgeRepaired holds an attempt's drivers to what the nodes counted of their payload.
func (e *Engine) judgeRepaired(ctx context.Context, v *validity, j *judged, run string, a *dbsqlc.UnjudgedAttemptsRow, at attemptTime, owners portOwners) error {
	if a.Verdict != string(journal.Succeeded) {
		return nil
	}
	rows, err := e.cfg.Store.FlowsOfTrials(ctx, dbsqlc.FlowsOfTrialsParams{RunID: run, Trials: []int32{a.Trial}})
	if err != nil {
		return err
	}
	flows := slices.DeleteFunc(rows, func(f dbsqlc.Flow) bool { return f.Attempt != a.Attempt })
	for _, x := range sendings(v.sheet, &v.sheet.Trials[a.Trial], flows) {
		from, to := v.node(x.from), v.node(x.to)
		if from == nil || to == nil {
			continue
		}
		sent, known := from.payload(owners, x.name, at, false)
		received, alsoKnown := to.payload(owners, x.name, at, true)
		if !known || !alsoKnown {
			continue
		}
		if wrong := figures.RepairedOf(x.again, sent-received, v.mtu(), x.from, x.to); wrong != nil {
			j.untrue(wrong)
		}
	}
	return nil
}

// node is the one of a role; nil: it has delivered nothing.
func (v *validity) node(role radio.Role) *watchedNode {
	for _, w := range v.watched {
		if w.role == role {
			return w
		}
	}
	return nil
}

// payload is how many bytes of payload at the ports of a listener a node has sent during an
// attempt for certain, or has received at the most; false: it is not known. The leading
// node's records begin and end between attempts; in those of the others a span may have
// packets of two attempts of one treatment.
func (w *watchedNode) payload(owners portOwners, name journal.ListenerName, at attemptTime, received bool) (sum int64, known bool) {
	known = w.counts()
	w.gap(at, func(string) { known = false })
	for i := range w.records {
		r, since := &w.records[i], w.since(i)
		margin := at.margin(w, r.seq)
		from, to := at.from.Add(-margin), at.to.Add(margin)
		if !received {
			from, to = at.from, at.to
			if w.role != leader {
				from, to = at.from.Add(margin), at.to.Add(-margin)
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
			case !received && (w.role == leader || least == 1):
				sum += int64(least * float64(x.SentPayload))
			}
		}
	}
	return sum, known
}

// untrue is that a driver reports what cannot be.
func (j *judged) untrue(f *figures.Fault) {
	if j.broken == "" {
		j.broken, j.drivers = f.Reason+": "+f.Message, true
	}
}
