package results

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/rpc/reply"
	"linktrial/orchestrator/store"
)

func (s *Service) GetAttempt(ctx context.Context, req *connect.Request[linktrialv1.GetAttemptRequest]) (*connect.Response[linktrialv1.GetAttemptResponse], error) {
	out, err := s.getAttempt(ctx, req.Msg)
	if err != nil {
		return nil, s.answer(ctx, "get attempt", err)
	}
	return connect.NewResponse(out), nil
}

func (s *Service) getAttempt(ctx context.Context, m *linktrialv1.GetAttemptRequest) (*linktrialv1.GetAttemptResponse, error) {
	run, err := s.run(ctx, m.RunId)
	if err != nil {
		return nil, err
	}
	overview, err := s.cfg.Store.RunOverview(ctx, run.id)
	if err != nil {
		return nil, err
	}
	t, err := s.trial(ctx, run, m.Trial)
	if err != nil {
		return nil, err
	}
	all, err := s.parts(ctx, run, []store.Trial{t})
	if err != nil {
		return nil, err
	}
	p := all[t.Trial]
	a := &store.Attempt{} // of a trial that has not begun, or never will
	if len(p.attempts) > 0 || m.Attempt != 0 {
		if a, err = p.attempt(m.Attempt); err != nil {
			return nil, fmt.Errorf("run %s, trial %d: %w", run.id, t.Trial, err)
		}
	}
	marks, err := store.ReadMarks(ctx, s.cfg.Store.Conn, run.id)
	if err != nil {
		return nil, err
	}
	spec := &run.sheet.Trials[t.Trial]
	row := &linktrialv1.TrialRow{Trial: t.Trial, Iteration: t.Iteration, Treatment: t.Treatment, NotNeeded: t.NotNeeded}
	of := report.Trial{Index: int(t.Trial)}
	if t.Verdict != nil {
		of.Verdict = journal.Verdict(*t.Verdict)
	}
	for i := range p.attempts {
		x := &p.attempts[i]
		y, err := store.BuildAttempt(x, p.flows[x.Attempt], spec, marks.Of(x.Trial, x.Attempt))
		if err != nil {
			return nil, fmt.Errorf("run %s, trial %d, attempt %d: %w", run.id, x.Trial, x.Attempt, err)
		}
		of.Attempts = append(of.Attempts, *y)
	}
	named := &report.Run{ID: run.id, Sheet: run.sheet, Trials: []report.Trial{of}}
	if err := store.NameCrashes(ctx, s.cfg.Store.Conn, named); err != nil {
		return nil, fmt.Errorf("run %s: crashes of listeners: %w", run.id, err)
	}
	of = named.Trials[0]
	for i := range of.Attempts {
		row.Attempts = append(row.Attempts, reply.Attempt(&of.Attempts[i]))
	}
	row.Verdict = string(store.OfTrial(of.Verdict, of.Attempts))
	treatment, err := treatmentJSON(run.sheet, spec)
	if err != nil {
		return nil, err
	}
	out := &linktrialv1.GetAttemptResponse{Run: reply.Run(&overview), Trial: row, Attempt: a.Attempt, Log: a.Log, RadioJson: string(a.Radio),
		TreatmentJson: treatment, ChannelSeed: spec.ChannelSeed, Label: run.sheet.Label(t.Treatment)}
	for _, f := range p.flows[a.Attempt] {
		out.Flows = append(out.Flows, asFlow(&f, spec))
	}
	if out.Breaches, err = s.breaches(ctx, run.id, spec, a.Attempt); err != nil {
		return nil, err
	}
	if len(spec.Probes) > 0 && a.Attempt > 0 {
		err = s.addProbes(ctx, out)
	}
	return out, err
}

// addProbes adds the probes of an attempt.
func (s *Service) addProbes(ctx context.Context, out *linktrialv1.GetAttemptResponse) error {
	r, _, err := s.cfg.Store.Run(ctx, out.Run.Id)
	if err != nil {
		return err
	}
	t := r.AttemptProbes(int(out.Trial.Trial), int(out.Attempt))
	for i := range t.Probes {
		out.Probes = append(out.Probes, asProbe(&t.Probes[i]))
	}
	out.ProbeClock = t.ProbeCertainty()
	return nil
}

// breaches are those of an attempt, and those of its treatments' drivers that
// belong to no attempt.
func (s *Service) breaches(ctx context.Context, run string, trial *runsheet.Trial, attempt int32) (out []*linktrialv1.Breach, err error) {
	rows, err := s.cfg.Store.Breaches(ctx, run)
	if err != nil {
		return nil, err
	}
	all, err := store.Breaches(rows)
	if err != nil {
		return nil, err
	}
	for i := range all {
		b := &all[i]
		of := b.Trial != nil && *b.Trial == trial.Index && b.Attempt == int(attempt)
		ours := b.Trial == nil && slices.ContainsFunc(trial.Carried(), func(f runsheet.Flow) bool { return f.Treatment == b.Treatment })
		if of || ours {
			out = append(out, &linktrialv1.Breach{At: timestamppb.New(b.At), Node: b.Node, Role: b.Role, Treatment: b.Treatment, Message: b.Message, OfAttempt: of, Log: b.Log})
		}
	}
	return out, nil
}

// treatmentJSON is what the sheet says of a trial's treatment; of a mix, of the
// treatments in it.
func treatmentJSON(sheet *runsheet.Sheet, trial *runsheet.Trial) (string, error) {
	seen := map[string]bool{}
	var list []runsheet.Treatment
	for _, f := range trial.Carried() {
		for _, t := range sheet.Treatments {
			if t.Name == f.Treatment && !seen[t.Name] {
				seen[t.Name] = true
				list = append(list, t)
			}
		}
	}
	document := any(list)
	if len(list) == 1 {
		document = list[0]
	}
	b, err := json.Marshal(document)
	if err != nil {
		return "", fmt.Errorf("treatment %s: %w", trial.Treatment, err)
	}
	return string(b), nil
}

func asFlow(f *store.Flow, trial *runsheet.Trial) *linktrialv1.FlowRow {
	seconds := func(ns *int64) float64 {
		if ns == nil {
			return 0
		}
		return time.Duration(*ns).Seconds()
	}
	out := &linktrialv1.FlowRow{Flow: f.Flow.Flow, Transfer: f.Transfer, Reason: f.Reason, Message: f.Message,
		ConnectSeconds: seconds(f.ConnectNs), ElapsedSeconds: seconds(f.ElapsedNs), ReceivedDigest: f.ReceivedDigest, LastSampleJson: string(f.LastSample)}
	if f.Verdict != nil {
		out.Verdict = *f.Verdict
	}
	if f.Digest != nil {
		out.Digest = *f.Digest
	}
	if carried, k := trial.Carried(), int(f.Flow.Flow); k < len(carried) {
		spec := &carried[k]
		out.Treatment, out.From, out.To, out.SizeBytes, out.StartSeconds = spec.Treatment, string(spec.From), string(spec.To), spec.SizeBytes, spec.Start.Seconds()
	}
	if f.SizeBytes != nil {
		out.SizeBytes = *f.SizeBytes
	}
	return out
}
