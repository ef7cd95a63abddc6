package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"linktrial/executor/credible"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radiocontrol"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/store/storedb"
	"linktrial/protocols/contract"
)

// Dataset reads what results are made from, all of it at one moment. tell, which can be
// nil, hears how many of the campaign's runs are read.
func (s *Store) Dataset(ctx context.Context, scope Scope, tell func(read, of int)) (*report.Dataset, error) {
	if scope.Imported {
		return importedDataset(ctx, s.q, scope)
	}
	var ds *report.Dataset
	err := s.Snapshot(ctx, func(tx Conn) error {
		q := tx.q
		c, err := q.Campaign(ctx, scope.Campaign)
		if errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("campaign %q: %w", scope.Campaign, ErrNotFound)
		} else if err != nil {
			return err
		}
		ds = &report.Dataset{Campaign: c.ID, Plan: c.Plan, Created: c.CreatedAt, Complete: true}
		if len(c.Caveats) > 0 {
			ds.Notes = c.Caveats
		}
		if err := addWords(ctx, q, ds); err != nil {
			return err
		}
		runs, err := q.CampaignOverview(ctx, c.ID)
		if err != nil {
			return err
		}
		virtual := len(runs) > 0
		for i := range runs {
			if scope.Run != "" && runs[i].ID != scope.Run {
				continue
			}
			r, err := readRun(ctx, q, &runs[i])
			if err != nil {
				return fmt.Errorf("run %s: %w", runs[i].ID, err)
			}
			ds.Runs = append(ds.Runs, *r)
			if tell != nil {
				tell(i+1, len(runs))
			}
			ds.Complete = ds.Complete && runs[i].EndedAt != nil
			virtual = virtual && r.Place == journal.PlaceVirtual
		}
		if virtual && len(ds.Runs) > 0 {
			// The time at which the campaign was queued would differ between two
			// runs of the same plan, whose exports are the same to the byte.
			ds.Created = ds.Runs[0].Started
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read results: %w", err)
	}
	return ds, nil
}

// Run reads one run with every attempt.
func (s *Store) Run(ctx context.Context, id string) (*report.Run, *storedb.RunOverview, error) {
	var r *report.Run
	var o storedb.RunOverview
	err := s.Snapshot(ctx, func(tx Conn) error {
		q := tx.q
		var err error
		if o, err = q.RunOverview(ctx, id); err != nil {
			return err
		}
		r, err = readRun(ctx, q, &o)
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read run %s: %w", id, err)
	}
	return r, &o, nil
}

func readRun(ctx context.Context, q *storedb.Queries, o *storedb.RunOverview) (*report.Run, error) {
	encoded, err := q.RunSheet(ctx, o.ID)
	if err != nil {
		return nil, err
	}
	sheet, err := runsheet.Decode(encoded)
	if err != nil {
		return nil, err
	}
	r := &report.Run{ID: o.ID, State: o.State, Message: o.Message, Place: o.Place, SheetHash: o.SheetHash, Sheet: sheet,
		Provenance: map[string]journal.Provenance{}, Clocks: map[string][]journal.ClockOffset{}}
	if o.StartedAt != nil {
		r.Started = *o.StartedAt
	}
	if o.EndedAt != nil {
		r.Ended = *o.EndedAt
	}
	if err := readNodes(ctx, q, r); err != nil {
		return nil, err
	}
	if err := readTrials(ctx, q, o, r); err != nil {
		return nil, err
	}
	if err := addProbes(ctx, q, []*report.Run{r}); err != nil {
		return nil, err
	}
	if err := nameCrashes(ctx, q, r); err != nil {
		return nil, fmt.Errorf("crashes of listeners: %w", err)
	}
	breaches, err := q.Breaches(ctx, o.ID)
	if err != nil {
		return nil, err
	}
	if r.Breaches, err = Breaches(breaches); err != nil {
		return nil, err
	}
	if err := addLooks(ctx, q, r); err != nil {
		return nil, err
	}
	if r.Place == journal.PlaceVirtual {
		guestTimes(r)
	}
	return r, nil
}

// guestTimes replaces the orchestrator's times of a run in virtual time, at which
// its journal arrived, with those of the virtual clock.
func guestTimes(r *report.Run) {
	r.Started, r.Ended = time.Time{}, time.Time{}
	for _, t := range r.Trials {
		for _, a := range t.Attempts {
			if r.Started.IsZero() || a.Started.Before(r.Started) {
				r.Started = a.Started
			}
			if end := a.Started.Add(a.Duration); end.After(r.Ended) {
				r.Ended = end
			}
		}
	}
}

// readTrials reads the trials of a run.
func readTrials(ctx context.Context, q *storedb.Queries, o *storedb.RunOverview, r *report.Run) error {
	flows, err := readFlows(ctx, q, o.ID)
	if err != nil {
		return err
	}
	attempts, err := q.Attempts(ctx, o.ID)
	if err != nil {
		return err
	}
	byTrial := map[int32][]storedb.Attempt{}
	for _, a := range attempts {
		byTrial[a.Trial] = append(byTrial[a.Trial], storedb.Attempt(a))
	}
	marks, err := readMarks(ctx, q, o.ID)
	if err != nil {
		return err
	}
	trials, err := q.Trials(ctx, o.ID)
	if err != nil {
		return err
	}
	for _, t := range trials {
		x := report.Trial{Index: int(t.Trial), Iteration: int(t.Iteration), Treatment: t.Treatment, Attempts: []report.Attempt{}}
		if t.Verdict != nil {
			x.Verdict = journal.Verdict(*t.Verdict)
		}
		for i := range byTrial[t.Trial] {
			a := &byTrial[t.Trial][i]
			y, err := BuildAttempt(a, flows[[2]int32{a.Trial, a.Attempt}], &r.Sheet.Trials[t.Trial], marks.Of(a.Trial, a.Attempt))
			if err != nil {
				return fmt.Errorf("trial %d, attempt %d: %w", a.Trial, a.Attempt, err)
			}
			x.Attempts = append(x.Attempts, *y)
		}
		x.Verdict = OfTrial(x.Verdict, x.Attempts)
		r.Trials = append(r.Trials, x)
	}
	return nil
}

func readNodes(ctx context.Context, q *storedb.Queries, r *report.Run) error {
	nodes, err := q.RunNodes(ctx, r.ID)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if n.Provenance == nil {
			continue
		}
		var p journal.Provenance
		if err := json.Unmarshal(n.Provenance, &p); err != nil {
			return fmt.Errorf("provenance of %s: %w", n.Node, err)
		}
		r.Provenance[n.Node] = p
	}
	clocks, err := q.ClockOffsets(ctx, r.ID)
	if err != nil {
		return err
	}
	for _, c := range clocks {
		if c.Moment == momentStep {
			continue
		}
		r.Clocks[c.Node] = append(r.Clocks[c.Node], journal.ClockOffset{When: c.Moment, Offset: time.Duration(c.OffsetNs), Error: time.Duration(c.ErrorNs), Unknown: c.Unknown})
	}
	return nil
}

// Flow is one flow of an attempt with what the server received of it.
type Flow struct {
	storedb.Flow
	ReceivedDigest string        // empty: the server has not recorded that all arrived
	received       *credible.End // as the server reports it; nil: it has not yet
	last           *LastState    // in place of LastSample, where only parts of it were read
}

// readFlows returns the flows of each attempt, in order.
func readFlows(ctx context.Context, q *storedb.Queries, run string) (map[[2]int32][]Flow, error) {
	receptions, err := q.Receptions(ctx, run)
	if err != nil {
		return nil, err
	}
	received := Received(receptions)
	rows, err := q.Flows(ctx, run)
	if err != nil {
		return nil, err
	}
	out := map[[2]int32][]Flow{}
	for _, f := range rows {
		key := [2]int32{f.Trial, f.Attempt}
		out[key] = append(out[key], NewFlow(f, received))
	}
	return out, nil
}

// BuildAttempt puts an attempt together from its rows and the mark that people gave
// it; mark is nil where its value counts.
func BuildAttempt(a *storedb.Attempt, flows []Flow, trial *runsheet.Trial, mark *Mark) (*report.Attempt, error) {
	x := &report.Attempt{Attempt: int(a.Attempt), Started: a.StartedAt, Log: a.Log}
	if a.Verdict != nil {
		x.Verdict = journal.Verdict(*a.Verdict)
	}
	if mark != nil && x.Verdict != "" {
		x.Mark = &report.Mark{Reason: mark.Reason, By: mark.By, At: mark.At, Verdict: x.Verdict, JournalReason: a.Reason, JournalMessage: a.Message}
	}
	x.Verdict, x.Reason, x.Message = mark.Verdict(x.Verdict, a.Reason, a.Message)
	if a.Undecided != nil && *a.Undecided != "" {
		x.Undecided = strings.Split(*a.Undecided, "\n")
	}
	if a.Control != nil {
		if err := json.Unmarshal(a.Control, &x.Control); err != nil {
			return nil, fmt.Errorf("control traffic: %w", err)
		}
	}
	if a.Host != nil {
		if err := json.Unmarshal(a.Host, &x.Host); err != nil {
			return nil, fmt.Errorf("load of the host: %w", err)
		}
	}
	if a.DurationNs != nil {
		x.Duration = time.Duration(*a.DurationNs)
	}
	if err := addFlows(x, flows, trial); err != nil {
		return nil, err
	}
	if wrong := contradiction(flows); wrong != nil && x.Verdict == journal.Succeeded {
		x.Verdict, x.Reason, x.Message = journal.Invalid, wrong.Reason, wrong.Message
	}
	if err := addWindow(x, a.CommonWindow); err != nil {
		return nil, err
	}
	if len(flows) == 1 && flows[0].Digest != nil {
		x.Digest = *flows[0].Digest
	}
	if a.Radio == nil {
		return x, nil
	}
	return x, addRadioReport(x, a.Radio, trial)
}

// addFlows adds the flows of the trial's sheet to an attempt, and the values of
// the attempt that are made of them all. It took as long as from the start of the
// first flow's transfer to the end of the last one's.
func addFlows(x *report.Attempt, flows []Flow, trial *runsheet.Trial) error {
	x.Verified = len(flows) > 0
	var first, last time.Duration // of the flows' clocks, after the trial's start
	for i := range trial.Flows {
		spec := &trial.Flows[i]
		y := report.Flow{Treatment: spec.Treatment, Session: spec.Session, Start: spec.Start, Bound: spec.Duration, SizeBytes: spec.SizeBytes}
		if spec.Duration > 0 {
			y.SizeBytes = 0 // its size is only more than the radio can carry
		}
		k := slices.IndexFunc(flows, func(f Flow) bool { return int(f.Flow.Flow) == i })
		if k >= 0 {
			if err := fillFlow(&y, &flows[k]); err != nil {
				return err
			}
		}
		x.Verified = x.Verified && k >= 0 && flows[k].Digest != nil && *flows[k].Digest == flows[k].ReceivedDigest
		x.SizeBytes += y.SizeBytes
		x.Connect = max(x.Connect, y.Connect)
		if y.Elapsed > 0 {
			began := y.Start + y.Connect
			if last == 0 || began < first {
				first = began
			}
			last = max(last, began+y.Elapsed)
		}
		x.Retransmits, x.Timeouts = sum(x.Retransmits, y.Retransmits), sum(x.Timeouts, y.Timeouts)
		if len(trial.Flows) > 1 || spec.Duration > 0 {
			x.Flows = append(x.Flows, y)
		}
		if i == 0 {
			x.TransmittedBytes, x.RetransmittedBytes = y.TransmittedBytes, y.RetransmittedBytes
		} else {
			x.TransmittedBytes, x.RetransmittedBytes = sumOfAll(x.TransmittedBytes, y.TransmittedBytes), sumOfAll(x.RetransmittedBytes, y.RetransmittedBytes)
		}
		if len(trial.Flows) == 1 {
			x.Paths, x.RTTMeanUS, x.RTTLeastUS = y.Paths, y.RTTMeanUS, y.RTTLeastUS
		}
	}
	x.Elapsed = last - first
	return nil
}

// addRadioReport adds what an emulated radio reported of the attempt.
func addRadioReport(x *report.Attempt, encoded []byte, trial *runsheet.Trial) error {
	// The histories of the channels are most of the report, and not needed here.
	var rep struct {
		Hops       []radiocontrol.Hop `json:"hops"`
		Ideal      []time.Duration    `json:"ideal_ns"`
		CodedBound []time.Duration    `json:"coded_bound_ns"`
		BusyShare  float64            `json:"busy_share"`
		Late       *radiocontrol.Late `json:"late"`
	}
	if err := json.Unmarshal(encoded, &rep); err != nil {
		return fmt.Errorf("radio's report: %w", err)
	}
	x.Radio = &report.RadioReport{BusyShare: rep.BusyShare, Late: rep.Late}
	for _, h := range rep.Hops {
		x.Radio.SentPackets += h.SentPackets
		x.Radio.LostPackets += h.LostPackets
		x.Radio.DroppedPackets += h.DroppedPackets
	}
	x.Ideal, x.CodedBound = boundOf(rep.Ideal, trial), boundOf(rep.CodedBound, trial)
	return nil
}

// boundOf is Ideal or the coded bound of a trial from the emulator's list of
// all flows; 0 where it is not known.
func boundOf(flows []time.Duration, trial *runsheet.Trial) time.Duration {
	// That of a flow that a time bounds would be that of a size nobody meant; one
	// beside probes would be that of a radio which is idle but for the flow.
	if len(trial.Flows) == 1 && len(flows) == 1 && trial.Flows[0].Duration == 0 && len(trial.Probes) == 0 {
		return flows[0]
	}
	return 0
}

// fillFlow copies what the journals have of a flow.
func fillFlow(x *report.Flow, f *Flow) error {
	if f.Verdict != nil {
		x.Verdict = journal.Verdict(*f.Verdict)
	}
	if f.ElapsedNs != nil {
		x.Elapsed = time.Duration(*f.ElapsedNs)
	}
	if f.ConnectNs != nil {
		x.Connect = time.Duration(*f.ConnectNs)
	}
	if f.SizeBytes != nil && x.Bound > 0 {
		x.SizeBytes = *f.SizeBytes
	}
	if f.last != nil {
		fillProtocol(x, f.last)
		return nil
	}
	if f.LastSample == nil {
		return nil
	}
	var s LastState
	if err := json.Unmarshal(f.LastSample, &s); err != nil {
		return fmt.Errorf("last sample: %w", err)
	}
	fillProtocol(x, &s)
	x.Paths = s.Paths
	if x.Verdict != journal.Succeeded {
		x.LastBytes, x.LastAt = s.SentBytes, time.Duration(s.ElapsedNS)
		if s.AckedBytes != nil {
			x.LastBytes = *s.AckedBytes
		}
	}
	return nil
}

// fillProtocol copies what tables and files have of a flow's protocol.
func fillProtocol(x *report.Flow, s *LastState) {
	x.Retransmits, x.Timeouts = s.Retransmits, s.Timeouts
	x.TransmittedBytes, x.RetransmittedBytes = s.TransmittedBytes, s.RetransmittedBytes
	if s.RTT != nil {
		x.RTTMeanUS, x.RTTLeastUS = &s.RTT.MeanUS, s.RTT.LeastUS
	}
}

// LastState is the last state known of a flow's protocol, as it is stored: its last
// sample, what each path carried where there are several, and its round-trip times.
type LastState struct {
	contract.Sample
	Paths []contract.PathResult `json:"paths,omitempty"`
	RTT   *journal.RoundTrips   `json:"rtt,omitempty"`
}

// sum adds what is known; where nothing is, the sum is not known either.
func sum(a, b *int64) *int64 {
	if a == nil || b == nil {
		if a == nil {
			return b
		}
		return a
	}
	n := *a + *b
	return &n
}

// sumOfAll is the sum of what is known of both; else it is not known.
func sumOfAll(a, b *int64) *int64 {
	if a == nil || b == nil {
		return nil
	}
	return sum(a, b)
}
