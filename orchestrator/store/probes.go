package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"linktrial/executor/credible"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/store/storedb"
)

// Reasons of probes that the orchestrator gives where the journals of both ends are together.
const (
	reasonProbeDiffers = "figures-differ" // client and server report different values
	reasonUnverified   = "unverified"     // the server has reported nothing of it
)

// probeReception is what the server reports of a probe.
type probeReception struct {
	values json.RawMessage // nil: none
	fault  *credible.Fault // why there are none
}

// addProbes adds the probes to the attempts of runs that have any.
func addProbes(ctx context.Context, q *storedb.Queries, runs []*report.Run) error {
	byID := map[string]*report.Run{}
	var ids []string
	for _, r := range runs {
		if hasProbes(r.Sheet) {
			byID[r.ID], ids = r, append(ids, r.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	received, err := probeReceptions(ctx, q, ids)
	if err != nil {
		return err
	}
	rows, err := q.Probes(ctx, ids)
	if err != nil {
		return err
	}
	for i := range rows {
		p := &rows[i]
		if err := addProbe(byID[p.RunID], p, received[receptionKey{p.RunID, p.Transfer}]); err != nil {
			return fmt.Errorf("run %s, trial %d, attempt %d, probe %d: %w", p.RunID, p.Trial, p.Attempt, p.Probe, err)
		}
	}
	return addClocks(ctx, q, byID, ids)
}

func hasProbes(s *runsheet.Sheet) bool {
	return s != nil && slices.ContainsFunc(s.Trials, func(t runsheet.Trial) bool { return len(t.Probes) > 0 })
}

// probeReceptions are the servers' values; of several of one probe, the last holds. What
// the server's node has found to be false, or the driver has not given, is a fault.
func probeReceptions(ctx context.Context, q *storedb.Queries, ids []string) (map[receptionKey]probeReception, error) {
	rows, err := q.ProbeReceptions(ctx, ids)
	if err != nil {
		return nil, err
	}
	others, err := q.MeasuredReceptions(ctx, ids)
	if err != nil {
		return nil, err
	}
	out := map[receptionKey]probeReception{}
	for i := range others {
		switch r := &others[i]; {
		case r.Code == "":
		case journal.FalseValue(r.Code):
			out[receptionKey{r.RunID, *r.Transfer}] = probeReception{fault: &credible.Fault{Reason: r.Code, Message: r.Message}}
		default:
			out[receptionKey{r.RunID, *r.Transfer}] = probeReception{fault: &credible.Fault{Reason: journal.ReasonServerFailed, Message: fmt.Sprintf("the server reports %s: %s", r.Code, r.Message)}}
		}
	}
	for _, r := range rows {
		key := receptionKey{r.RunID, r.Transfer}
		x := probeReception{values: r.Metrics}
		if before := out[key].fault; before != nil && journal.FalseValue(before.Reason) {
			x.fault = before
		}
		out[key] = x
	}
	return out, nil
}

func addProbe(r *report.Run, p *storedb.Probe, received probeReception) error {
	if int(p.Trial) >= len(r.Trials) || int(p.Trial) >= len(r.Sheet.Trials) {
		return nil
	}
	spec, attempts := &r.Sheet.Trials[p.Trial], r.Trials[p.Trial].Attempts
	at := slices.IndexFunc(attempts, func(a report.Attempt) bool { return a.Attempt == int(p.Attempt) })
	k := int(p.Probe) - len(spec.Flows)
	if at < 0 || k < 0 || k >= len(spec.Probes) {
		return nil
	}
	a := &attempts[at]
	for len(a.Probes) <= k {
		f := &spec.Probes[len(a.Probes)]
		a.Probes = append(a.Probes, report.Probe{Treatment: f.Treatment, From: f.From, To: f.To})
	}
	x, err := buildProbe(p, received, &spec.Probes[k], a)
	if err != nil {
		return err
	}
	a.Probes[k] = *x
	if len(spec.Flows) == 0 && k == 0 { // the attempt is the probe
		a.Elapsed, a.Connect = x.Elapsed, x.Connect
		a.Verified = x.Counts()
		// What the server has not reported yet, it may still: as with a transfer.
		if a.Verdict == journal.Succeeded && x.Verdict == journal.Invalid && (x.Reason != reasonUnverified || !r.Waits(a)) {
			a.Verdict, a.Reason, a.Message = x.Verdict, x.Reason, x.Message
		}
	}
	return nil
}

func buildProbe(p *storedb.Probe, received probeReception, f *runsheet.Flow, a *report.Attempt) (*report.Probe, error) {
	x := &report.Probe{Treatment: f.Treatment, From: f.From, To: f.To, Reason: p.Reason, Message: p.Message}
	if p.Verdict != nil {
		x.Verdict = journal.Verdict(*p.Verdict)
	}
	if p.ConnectNs != nil {
		x.Connect = time.Duration(*p.ConnectNs)
	}
	if p.ElapsedNs != nil {
		x.Elapsed = time.Duration(*p.ElapsedNs)
	}
	if p.Metrics != nil {
		if err := json.Unmarshal(p.Metrics, &x.Metrics); err != nil {
			return nil, err
		}
	}
	switch {
	case x.Verdict != journal.Succeeded:
	case a.Mark != nil:
		x.Verdict, x.Reason, x.Message = a.Verdict, a.Reason, a.Message
	case received.fault != nil:
		x.Verdict, x.Reason, x.Message = journal.Invalid, received.fault.Reason, received.fault.Message
	case received.values == nil:
		x.Verdict, x.Reason, x.Message = journal.Invalid, reasonUnverified, "the server has reported nothing of the probe"
	case !bytes.Equal(received.values, p.Metrics): // as the database writes them: in one order
		x.Verdict, x.Reason, x.Message = journal.Invalid, reasonProbeDiffers, "the client and the server report different values for the probe"
	}
	return x, nil
}

// addClocks adds how the clocks of the probes' ends stand to each other.
func addClocks(ctx context.Context, q *storedb.Queries, runs map[string]*report.Run, ids []string) error {
	rows, err := q.ProbeClocks(ctx, ids)
	if err != nil {
		return err
	}
	type end struct{ run, role string }
	clocks := map[end][]storedb.ProbeClocksRow{}
	for _, c := range rows {
		k := end{c.RunID, c.Role}
		clocks[k] = append(clocks[k], c)
	}
	for id, r := range runs {
		// The nodes of emulated radios are on one machine (lab, executor/assignment.go).
		if r.Place == journal.PlaceVirtual || r.Place == journal.PlaceEmulated {
			r.ProbeClock = report.OneClock
			continue
		}
		r.ProbeClock = report.CompareClocks(compared(clocks[end{id, "client"}]), compared(clocks[end{id, "server"}]))
	}
	return nil
}
