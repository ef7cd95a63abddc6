// Package auditing brings together what a run is audited by, as the API has it. Comes in:
// the handlers of the API, or clients of it. Goes out: an [audit.Run]; journals, exports
// and injected faults are for the caller to add.
package auditing

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"connectrpc.com/connect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/report/audit"
)

// Operator is what is asked of OperatorService.
type Operator interface {
	GetRun(context.Context, *connect.Request[linktrialv1.GetRunRequest]) (*connect.Response[linktrialv1.GetRunResponse], error)
}

// Results is what is asked of ResultService.
type Results interface {
	ListRecords(context.Context, *connect.Request[linktrialv1.ListRecordsRequest]) (*connect.Response[linktrialv1.ListRecordsResponse], error)
	Summarize(context.Context, *connect.Request[linktrialv1.SummarizeRequest]) (*connect.Response[linktrialv1.SummarizeResponse], error)
}

// Source reads runs.
type Source struct {
	Operator Operator
	Results  Results
	// Progress is told what is being done; nil: nobody is.
	Progress func(text string)
}

func (s *Source) tell(format string, args ...any) {
	if s.Progress != nil {
		s.Progress(fmt.Sprintf(format, args...))
	}
}

// Run reads a run as the orchestrator has it; of one that has ended also what pages show.
// Its records are read when they are asked for, until ctx ends.
func (s *Source) Run(ctx context.Context, id string) (*audit.Run, error) {
	s.tell("run %s: reading what the orchestrator has", id)
	res, err := s.Operator.GetRun(ctx, connect.NewRequest(&linktrialv1.GetRunRequest{RunId: id}))
	if err != nil {
		return nil, err
	}
	parts, err := s.Results.ListRecords(ctx, connect.NewRequest(&linktrialv1.ListRecordsRequest{RunId: id}))
	if err != nil {
		return nil, err
	}
	r := res.Msg.Run
	out := &audit.Run{ID: r.Id, State: stateName(r.State), Message: r.Message, TrialsEnded: int(r.TrialsEnded), TrialsNotNeeded: int(r.TrialsNotNeeded), AttemptsFailed: int(r.AttemptsFailed),
		Sheet: res.Msg.Sheet, SheetHash: r.SheetHash, Records: s.records(ctx, id)}
	for _, j := range parts.Msg.Journals {
		out.Parts = append(out.Parts, audit.Part{Node: j.Node, Role: j.Role, Committed: j.CommittedSeq, Ended: j.Ended, EndReason: j.EndReason})
	}
	for _, t := range res.Msg.Trials {
		x := audit.Trial{Trial: int(t.Trial), Iteration: int(t.Iteration), Treatment: t.Treatment, Verdict: t.Verdict, NotNeeded: t.NotNeeded}
		for _, a := range t.Attempts {
			x.Attempts = append(x.Attempts, attemptOf(a))
		}
		out.Trials = append(out.Trials, x)
	}
	if out.Ended() {
		err = s.addSummary(ctx, out)
	}
	return out, err
}

func stateName(s linktrialv1.RunState) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "RUN_STATE_"))
}

func attemptOf(a *linktrialv1.AttemptRow) audit.Attempt {
	x := audit.Attempt{Attempt: int(a.Attempt), Verdict: a.Verdict, Reason: a.Reason, Started: a.Started.AsTime(), Rate: a.ThroughputBytesPerSecond}
	for _, c := range a.Control {
		x.Control = append(x.Control, audit.ControlCount{Role: c.Role, Packets: c.Packets, Bytes: c.Bytes, Unknown: c.Unknown})
	}
	if m := a.Mark; m != nil {
		x.Mark = &audit.Mark{By: m.By, Reason: m.Reason, Verdict: m.JournalVerdict, VerdictReason: m.JournalReason}
	}
	return x
}

// records reads the store's records of a node's journal, page by page.
func (s *Source) records(ctx context.Context, run string) func(node string, bodies bool) iter.Seq2[audit.StoredRecord, error] {
	return func(node string, bodies bool) iter.Seq2[audit.StoredRecord, error] {
		return func(yield func(audit.StoredRecord, error) bool) {
			for after := int64(0); ; {
				page, err := s.Results.ListRecords(ctx, connect.NewRequest(&linktrialv1.ListRecordsRequest{RunId: run, Node: node, AfterSeq: after, Bodies: bodies}))
				if err != nil {
					yield(audit.StoredRecord{}, err)
					return
				}
				if len(page.Msg.Records) == 0 {
					return
				}
				for _, r := range page.Msg.Records {
					x := audit.StoredRecord{Seq: r.Seq, Type: r.Type, At: r.At.AsTime(), Body: []byte(r.BodyJson)}
					copy(x.SHA256[:], r.Sha256)
					if !yield(x, nil) {
						return
					}
					after = r.Seq
				}
				s.tell("run %s: %d records of node %s", run, after, node)
			}
		}
	}
}

// addSummary adds what pages show.
func (s *Source) addSummary(ctx context.Context, run *audit.Run) error {
	s.tell("run %s: reading values", run.ID)
	res, err := s.Results.Summarize(ctx, connect.NewRequest(&linktrialv1.SummarizeRequest{Ids: []string{run.ID}, Points: true}))
	if err != nil {
		return err
	}
	for _, r := range res.Msg.Runs {
		run.Summary = summaryOf(r)
	}
	return nil
}

func summaryOf(r *linktrialv1.RunSummary) *audit.Summary {
	out := &audit.Summary{}
	for _, t := range r.Treatments {
		out.Treatments = append(out.Treatments, audit.TreatmentSummary{Name: t.Name, Planned: int(t.Planned), Valid: int(t.Valid), Failed: int(t.Failed),
			Average: t.Average, SD: t.Sd, Min: t.Min, Max: t.Max})
	}
	p := r.Points
	for i := range p.GetTrial() {
		out.Points = append(out.Points, audit.Point{Trial: int(p.Trial[i]), Attempt: int(p.Attempt[i]), Rate: p.Throughput[i], Counts: p.Counts[i]})
	}
	return out
}
