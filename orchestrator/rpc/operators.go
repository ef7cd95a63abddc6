package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/runsheet"
	"linktrial/internal/checkkind"
	"linktrial/internal/telemetrysource"
	"linktrial/internal/yamldoc"
	"linktrial/orchestrator/campaign"
	"linktrial/orchestrator/launch"
	"linktrial/orchestrator/rpc/reply"
	"linktrial/orchestrator/rpc/results"
	"linktrial/orchestrator/rpc/rpcdb"
	"linktrial/orchestrator/sheet"
	"linktrial/orchestrator/store"
)

// operators is OperatorService.
type operators struct {
	cfg     Config
	results *results.Service
}

// asProblems turns the reasons for which a plan cannot be started into those of a reply; any
// other error is returned.
func asProblems(file string, err error) (out []*linktrialv1.Problem, other error) {
	var faults yamldoc.Problems
	var missing launch.Missing
	switch {
	case errors.As(err, &faults):
		for _, p := range faults {
			out = append(out, &linktrialv1.Problem{File: p.File, Line: int32(p.Line), Column: int32(p.Column), Message: p.Message, Path: p.Path})
		}
	case errors.As(err, &missing):
		for _, text := range missing {
			out = append(out, &linktrialv1.Problem{File: file, Message: text})
		}
	default:
		return nil, err
	}
	return out, nil
}

func (s *operators) CheckPlan(ctx context.Context, req *connect.Request[linktrialv1.CheckPlanRequest]) (*connect.Response[linktrialv1.CheckPlanResponse], error) {
	p, _, err := s.cfg.Launcher.Compile(ctx, req.Msg.File, req.Msg.Text, false)
	problems, err := asProblems(req.Msg.File, err)
	if err != nil {
		return nil, s.cfg.answer(ctx, "check plan", err)
	}
	out := &linktrialv1.CheckPlanResponse{Problems: problems}
	if p != nil {
		out.Summary = p.Summary()
	}
	return connect.NewResponse(out), nil
}

func (s *operators) ExplainPlan(ctx context.Context, req *connect.Request[linktrialv1.ExplainPlanRequest]) (*connect.Response[linktrialv1.ExplainPlanResponse], error) {
	_, sheets, err := s.cfg.Launcher.Compile(ctx, req.Msg.File, req.Msg.Text, false)
	problems, err := asProblems(req.Msg.File, err)
	if err != nil {
		return nil, s.cfg.answer(ctx, "explain plan", err)
	}
	out := &linktrialv1.ExplainPlanResponse{Problems: problems}
	for _, sh := range sheets {
		encoded, err := sh.Encode()
		if err != nil {
			return nil, s.cfg.answer(ctx, "explain plan", err)
		}
		x := &linktrialv1.SheetSummary{Sheet: encoded, SheetHash: runsheet.Hash(encoded), EstimatedSeconds: sheet.Total(sh).Seconds()}
		for _, d := range sheet.Estimate(sh) {
			x.TrialSeconds = append(x.TrialSeconds, d.Seconds())
		}
		out.Sheets = append(out.Sheets, x)
		out.EstimatedSeconds += x.EstimatedSeconds
	}
	return connect.NewResponse(out), nil
}

func (s *operators) StartPlan(ctx context.Context, req *connect.Request[linktrialv1.StartPlanRequest]) (*connect.Response[linktrialv1.StartPlanResponse], error) {
	m := req.Msg
	started, err := s.cfg.Launcher.Start(ctx, launch.Request{File: m.File, Text: m.Text, Name: m.Name, Virtual: m.Virtual, Moves: moves[m.Moves],
		Preflight: m.Preflight == linktrialv1.StartPlanRequest_PREFLIGHT_REQUIRED})
	var unproven launch.Unproven
	if errors.As(err, &unproven) {
		return connect.NewResponse(&linktrialv1.StartPlanResponse{WithoutPreflight: unproven}), nil
	}
	problems, err := asProblems(m.File, err)
	if err != nil {
		return nil, s.cfg.answer(ctx, "start plan", err)
	}
	return connect.NewResponse(&linktrialv1.StartPlanResponse{CampaignId: started.Campaign, RunIds: started.Runs, Problems: problems, WithoutPreflight: started.Unproven}), nil
}

var moves = map[linktrialv1.StartPlanRequest_Moves]campaign.Moves{
	linktrialv1.StartPlanRequest_MOVES_UNSPECIFIED: campaign.MovesOnReal,
	linktrialv1.StartPlanRequest_MOVES_CONFIRM:     campaign.MovesConfirm,
	linktrialv1.StartPlanRequest_MOVES_NONE:        campaign.MovesNone,
}

func (s *operators) AbortCampaign(ctx context.Context, req *connect.Request[linktrialv1.AbortCampaignRequest]) (*connect.Response[linktrialv1.AbortCampaignResponse], error) {
	if err := s.cfg.Engine.Abort(ctx, req.Msg.CampaignId, req.Msg.Reason); err != nil {
		return nil, s.cfg.answer(ctx, "abort campaign", err)
	}
	return connect.NewResponse(&linktrialv1.AbortCampaignResponse{}), nil
}

// maxList bounds a list of runs.
const maxList = 10_000

func (s *operators) ListRuns(ctx context.Context, req *connect.Request[linktrialv1.ListRunsRequest]) (*connect.Response[linktrialv1.ListRunsResponse], error) {
	limit := min(req.Msg.Limit, maxList)
	if limit <= 0 {
		limit = 100
	}
	var rows []rpcdb.RunOverview
	var err error
	if c := req.Msg.CampaignId; req.Msg.Open {
		rows, err = rpcdb.New(s.cfg.Store).OpenOverviews(ctx, rpcdb.OpenOverviewsParams{CampaignID: c, Count: limit})
	} else if c != "" {
		rows, err = rpcdb.New(s.cfg.Store).CampaignOverviewNewestFirst(ctx, rpcdb.CampaignOverviewNewestFirstParams{CampaignID: c, Limit: limit})
	} else {
		rows, err = rpcdb.New(s.cfg.Store).NewestOverviews(ctx, limit)
	}
	if err != nil {
		return nil, s.cfg.answer(ctx, "list runs", err)
	}
	settings, err := s.openSettings(ctx, rows)
	if err != nil {
		return nil, s.cfg.answer(ctx, "list runs", err)
	}
	out := &linktrialv1.ListRunsResponse{}
	guestsEnded := map[string]bool{} // by campaign in virtual time
	for i := range rows {
		r := s.run((*store.RunOverview)(&rows[i]))
		if r.Virtual && r.Ended == nil {
			over, known := guestsEnded[r.CampaignId]
			if !known {
				if over, err = rpcdb.New(s.cfg.Store).GuestsEnded(ctx, r.CampaignId); err != nil {
					return nil, s.cfg.answer(ctx, "list runs", err)
				}
				guestsEnded[r.CampaignId] = over
			}
			r.GuestsEnded = over
		}
		s.addWaits(r)
		r.Settings = settings[r.SheetHash]
		out.Runs = append(out.Runs, r)
	}
	return connect.NewResponse(out), nil
}

// openSettings returns the settings of runs that have not ended, by the hash of their
// sheets. The store keeps these sheets in memory; those of all runs are too many.
func (s *operators) openSettings(ctx context.Context, rows []rpcdb.RunOverview) (map[string]string, error) {
	var runs, hashes []string
	for i := range rows {
		if rows[i].EndedAt == nil {
			runs, hashes = append(runs, rows[i].ID), append(hashes, rows[i].SheetHash)
		}
	}
	sheets, err := s.cfg.Store.Sheets(ctx, runs, hashes)
	if err != nil {
		return nil, err
	}
	out := make(map[string]string, len(sheets))
	for hash, sheet := range sheets {
		out[hash] = sheet.Cell.Words()
	}
	return out, nil
}

// run is a run as calls answer with it. How long a run in virtual time still takes is
// known only to the rehearsal that runs it.
func (s *operators) run(o *store.RunOverview) *linktrialv1.Run {
	r := reply.Run(o)
	if r.Virtual = s.cfg.Engine.Nodes.AnyVirtual(o.Nodes); r.Virtual {
		r.EstimatedSecondsLeft = 0
		r.GuestsEnded = r.Started != nil || r.Ended != nil || r.TrialsEnded > 0
	}
	return r
}

// addWaits adds to an open run what it waits for and with which of its nodes there is no
// contact.
func (s *operators) addWaits(r *linktrialv1.Run) {
	if r.Ended != nil {
		return
	}
	r.WaitingFor = s.cfg.Engine.Live.Of(r.Id).WaitingFor
	for _, m := range s.cfg.Engine.Nodes.Missing(r.Id) {
		r.NoContact = append(r.NoContact, &linktrialv1.NoContact{RunId: r.Id, Node: m.Name, Since: timestamppb.New(m.Since), At: timestamppb.Now()})
	}
}

func (s *operators) GetRun(ctx context.Context, req *connect.Request[linktrialv1.GetRunRequest]) (*connect.Response[linktrialv1.GetRunResponse], error) {
	id, _, err := s.cfg.Store.FindRun(ctx, req.Msg.RunId)
	if err != nil {
		return nil, s.cfg.answer(ctx, "get run", err)
	}
	r, overview, err := s.cfg.Store.Run(ctx, id)
	if err != nil {
		return nil, s.cfg.answer(ctx, "get run", err)
	}
	encoded, err := s.cfg.Store.RunSheet(ctx, id)
	if err != nil {
		return nil, s.cfg.answer(ctx, "get run", err)
	}
	sheet, err := runsheet.Decode(encoded)
	if err != nil {
		return nil, s.cfg.answer(ctx, "get run", err)
	}
	notNeeded, err := rpcdb.New(s.cfg.Store).NotNeededTrials(ctx, id)
	if err != nil {
		return nil, s.cfg.answer(ctx, "get run", err)
	}
	out := &linktrialv1.GetRunResponse{Run: s.run(overview), Sheet: encoded}
	out.Run.Settings = sheet.Cell.Words()
	for _, t := range r.Trials {
		row := &linktrialv1.TrialRow{Trial: int32(t.Index), Iteration: int32(t.Iteration), Treatment: t.Treatment, Verdict: string(t.Verdict)}
		_, row.NotNeeded = slices.BinarySearch(notNeeded, int32(t.Index))
		for i := range t.Attempts {
			row.Attempts = append(row.Attempts, reply.Attempt(&t.Attempts[i]))
		}
		out.Trials = append(out.Trials, row)
	}
	return connect.NewResponse(out), nil
}

func (s *operators) Results(ctx context.Context, req *connect.Request[linktrialv1.ResultsRequest], stream *connect.ServerStream[linktrialv1.ResultsResponse]) error {
	return s.results.Export(ctx, req.Msg, stream.Send)
}

func (s *operators) ListNodes(ctx context.Context, _ *connect.Request[linktrialv1.ListNodesRequest]) (*connect.Response[linktrialv1.ListNodesResponse], error) {
	clocks, err := rpcdb.New(s.cfg.Store).LatestClockOffsets(ctx)
	if err != nil {
		return nil, s.cfg.answer(ctx, "list nodes", err)
	}
	offsets := map[string]time.Duration{}
	for _, c := range clocks {
		offsets[c.Node] = time.Duration(c.OffsetNs)
	}
	out := &linktrialv1.ListNodesResponse{Bounds: &linktrialv1.NodeBounds{ClockSeconds: checkkind.MaxClockOffset.Seconds(),
		EnoughCharge: checkkind.EnoughCharge, LowCharge: checkkind.LowCharge, EnoughDiskBytes: checkkind.EnoughDiskBytes}}
	for _, n := range s.cfg.Engine.Nodes.List() {
		if n.Virtual && n.Run == "" {
			continue // of a rehearsal that is over: there is no such machine
		}
		offset, known := offsets[n.Name]
		x := &linktrialv1.Node{Name: n.Name, Role: n.Role, Version: n.Version, Host: n.Host, Kernel: n.Kernel, Radio: n.Radio, Emulated: n.Emulated,
			RadioAddress: n.RadioAddress, DiskFreeBytes: n.DiskFreeBytes, LastContact: timestamppb.New(n.LastContact), Connected: n.Connected,
			ClockOffsetSeconds: offset.Seconds(), ClockOffsetKnown: known, RunId: n.Run, Silent: n.Silent, Virtual: n.Virtual,
			Lab: n.Lab, LabProblem: n.LabProblem}
		s.health(x)
		for _, d := range n.Drivers {
			x.Drivers = append(x.Drivers, &linktrialv1.DriverState{Name: d.Name, Version: d.Version, Implementation: d.Implementation, Sha256: d.SHA256, Unsupported: d.Unsupported, Choices: d.Choices,
				Remarks: d.Remarks})
		}
		out.Nodes = append(out.Nodes, x)
	}
	return connect.NewResponse(out), nil
}

func (s *operators) ListProfiles(ctx context.Context, _ *connect.Request[linktrialv1.ListProfilesRequest]) (*connect.Response[linktrialv1.ListProfilesResponse], error) {
	out := &linktrialv1.ListProfilesResponse{ShippedTopologies: s.cfg.Catalog.ShippedTopologies(), SavedRadios: s.cfg.Catalog.SavedProfiles()}
	for _, name := range s.cfg.Catalog.Profiles() {
		p := s.cfg.Catalog.Profile(name)
		b, err := json.Marshal(p)
		if err != nil {
			return nil, s.cfg.answer(ctx, "list profiles", err)
		}
		out.Radios = append(out.Radios, string(b))
		for i := range p.Telemetry {
			out.Sources = append(out.Sources, asSource(name, &p.Telemetry[i]))
		}
	}
	for _, name := range s.cfg.Catalog.Topologies() {
		b, err := json.Marshal(s.cfg.Catalog.Topology(name))
		if err != nil {
			return nil, s.cfg.answer(ctx, "list profiles", err)
		}
		out.Topologies = append(out.Topologies, string(b))
	}
	return connect.NewResponse(out), nil
}

// asSource is a source of a radio's profile in words.
func asSource(radio string, t *telemetrysource.Source) *linktrialv1.TelemetrySource {
	out := &linktrialv1.TelemetrySource{Radio: radio, Name: t.Name, On: string(t.On), Source: t.Origin, Way: t.Way(), When: t.When()}
	if d := telemetrysource.Of(t.Kind); d != nil {
		out.Tells, out.PlaceTitle = d.Tells, d.PlaceTitle
	}
	for _, v := range t.Values {
		out.Values = append(out.Values, &linktrialv1.TelemetryValue{Name: v.Name, Place: v.Place, Unit: v.Unit, Scale: v.Scale, Counter: v.Counter})
	}
	return out
}

// campaignOf checks that a campaign exists.
func (s *operators) campaignOf(ctx context.Context, id string) error {
	_, err := s.cfg.Store.Campaign(ctx, id)
	return reply.NotFound(fmt.Sprintf("campaign %q", id), err)
}
