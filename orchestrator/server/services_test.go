package server_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/internal/agentprotocol"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/rpc"
	"linktrial/orchestrator/server"
	"linktrial/orchestrator/store/storetest"
)

// services is a server with everything that can be configured.
type services struct {
	*clients
	library linktrialv1connect.LibraryServiceClient
	lab     linktrialv1connect.LabServiceClient
	catalog linktrialv1connect.CatalogServiceClient
	data    string
	server  *server.Server
}

func serveAll(t testing.TB, url, data string, change func(*server.Config)) *services {
	t.Helper()
	drivers := filepath.Join(data, "drivers")
	if _, err := os.Stat(drivers); err != nil {
		writeDrivers(t, drivers)
	}
	cat, err := catalog.Load(catalog.Config{DriversDir: drivers, SavedDir: filepath.Join(data, "topologies"), SavedProfilesDir: filepath.Join(data, "radio-profiles")})
	require.NoError(t, err)
	cfg := server.Config{Listen: "127.0.0.1:0", DatabaseURL: url, DataDir: data, Catalog: cat, Version: "test", Settle: time.Millisecond,
		Plans: fstest.MapFS{"demo.yaml": {Data: fmt.Appendf(nil, testPlan, "64 KiB")}}}
	if change != nil {
		change(&cfg)
	}
	s, err := server.Start(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { stop(t, s) })
	c := connectTo(t, s.Addr())
	return &services{clients: c, data: data, server: s,
		library: linktrialv1connect.NewLibraryServiceClient(c.http, c.base, connect.WithGRPC()),
		lab:     linktrialv1connect.NewLabServiceClient(c.http, c.base, connect.WithGRPC()),
		catalog: linktrialv1connect.NewCatalogServiceClient(c.http, c.base, connect.WithGRPC())}
}

// code asserts the code of an error, and a part of its text.
func fails(t *testing.T, err error, code connect.Code, words ...string) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, code, connect.CodeOf(err), "%v", err)
	for _, w := range words {
		require.ErrorContains(t, err, w)
	}
}

const meadow = `name: meadow
title: A meadow
source: drawn on the map
stations:
  - {name: a, role: server, latitude: 39.03, longitude: -76.96, elevation: 10 m}
  - {name: r, role: relay, latitude: 39.035, longitude: -76.96, elevation: 11 m}
  - {name: b, role: client, latitude: 39.04, longitude: -76.96, elevation: 12 m}
links:
  - {between: [client, relay], source: computed}
  - {between: [relay, server], source: computed}
`

// A scheduled plan on a topology that was just saved starts by itself.
func TestScheduledPlanOnANewTopology(t *testing.T) {
	s, ctx := serveAll(t, storetest.URL(t), t.TempDir(), nil), t.Context()
	text := strings.Replace(fmt.Sprintf(testPlan, "64 KiB"), "vip-lot", "meadow", 1)
	saved, err := s.library.SavePlan(ctx, connect.NewRequest(&linktrialv1.SavePlanRequest{Name: "drawn", Text: []byte(text)}))
	require.NoError(t, err)
	require.EqualValues(t, 1, saved.Msg.Plan.Problems)
	require.Contains(t, saved.Msg.Plan.Summary, "meadow")

	_, err = s.catalog.SaveTopology(ctx, connect.NewRequest(&linktrialv1.SaveTopologyRequest{Name: "meadow", Text: []byte(strings.Replace(meadow, "39.04", "139.04", 1))}))
	fails(t, err, connect.CodeInvalidArgument, "meadow.yaml:7:", "139.04")
	_, err = s.catalog.SaveTopology(ctx, connect.NewRequest(&linktrialv1.SaveTopologyRequest{Name: "meadow", Text: []byte(meadow)}))
	require.NoError(t, err)
	got, err := s.library.GetPlan(ctx, connect.NewRequest(&linktrialv1.GetPlanRequest{Name: "drawn"}))
	require.NoError(t, err)
	require.Zero(t, got.Msg.Plan.Problems, got.Msg.Plan.Summary)
	require.Equal(t, text, string(got.Msg.Text))

	silent := make(chan struct{})
	cast(t, s.clients, func(p *player) { p.silent = silent })
	at := time.Now().Add(300 * time.Millisecond)
	x, err := s.library.Schedule(ctx, connect.NewRequest(&linktrialv1.ScheduleRequest{Plan: "drawn", At: timestamppb.New(at), Name: "evening", By: "test"}))
	require.NoError(t, err)
	require.Equal(t, "waiting", x.Msg.Schedule.State)
	var done *linktrialv1.ScheduledPlan
	require.Eventually(t, func() bool {
		res, err := s.library.ListSchedules(ctx, connect.NewRequest(&linktrialv1.ListSchedulesRequest{}))
		require.NoError(t, err)
		done = res.Msg.Schedules[0]
		return done.State != "waiting"
	}, 30*time.Second, 20*time.Millisecond)
	require.Equal(t, "started", done.State, done.Message)
	runs, err := s.operator.ListRuns(ctx, connect.NewRequest(&linktrialv1.ListRunsRequest{CampaignId: done.CampaignId}))
	require.NoError(t, err)
	require.Len(t, runs.Msg.Runs, 1)
	require.Equal(t, "meadow", runs.Msg.Runs[0].Topology)

	// What the overview shows of it: while it is open what it waits for, and then how it ended.
	open := func() []*linktrialv1.Run {
		res, err := s.operator.ListRuns(ctx, connect.NewRequest(&linktrialv1.ListRunsRequest{Open: true}))
		require.NoError(t, err)
		return res.Msg.Runs
	}
	require.Eventually(t, func() bool {
		all := open()
		return len(all) == 1 && slices.Contains(all[0].WaitingFor, "the provenance of client")
	}, 30*time.Second, 20*time.Millisecond)
	_, err = s.operator.AbortCampaign(ctx, connect.NewRequest(&linktrialv1.AbortCampaignRequest{CampaignId: done.CampaignId, Reason: "rain"}))
	require.NoError(t, err)
	close(silent)
	require.Eventually(t, func() bool { return len(open()) == 0 }, 30*time.Second, 20*time.Millisecond)
	listed, err := linktrialv1connect.NewResultServiceClient(s.http, s.base, connect.WithGRPC()).ListCampaigns(ctx, connect.NewRequest(&linktrialv1.ListCampaignsRequest{}))
	require.NoError(t, err)
	c := listed.Msg.Campaigns[0]
	require.Equal(t, linktrialv1.RunState_RUN_STATE_ABORTED, c.EndedAs)
	require.Contains(t, c.Message, "rain")
	require.Equal(t, c.Ended.AsTime(), c.LastActivity.AsTime(), "the end is the last that happened")

	_, err = s.library.CancelSchedule(ctx, connect.NewRequest(&linktrialv1.CancelScheduleRequest{Id: done.Id}))
	fails(t, err, connect.CodeFailedPrecondition, "started")
	_, err = s.library.SavePlan(ctx, connect.NewRequest(&linktrialv1.SavePlanRequest{Name: "drawn", Text: []byte(text), Revision: 7}))
	fails(t, err, connect.CodeAborted, "revision 1")
	_, err = s.library.SavePlan(ctx, connect.NewRequest(&linktrialv1.SavePlanRequest{Name: "demo"}))
	fails(t, err, connect.CodePermissionDenied, "demo")
	_, err = s.library.Schedule(ctx, connect.NewRequest(&linktrialv1.ScheduleRequest{Plan: "drawn"}))
	fails(t, err, connect.CodeInvalidArgument, "time")
}

// A rule is previewed, kept, listed with its next start, paused and removed.
func TestRepeatedSchedule(t *testing.T) {
	s, ctx := serveAll(t, storetest.URL(t), t.TempDir(), nil), t.Context()
	preview := func(rule string) *linktrialv1.PreviewRecurrenceResponse {
		t.Helper()
		res, err := s.library.PreviewRecurrence(ctx, connect.NewRequest(&linktrialv1.PreviewRecurrenceRequest{Rule: rule}))
		require.NoError(t, err)
		return res.Msg
	}
	require.Contains(t, preview("daily 25:00").Problem, `time of day "25:00"`)
	shown := preview("daily 08:30 Asia/Tokyo")
	require.Equal(t, "Asia/Tokyo", shown.Zone)
	require.Len(t, shown.Next, 3)
	require.Regexp(t, `^[A-Z][a-z]{2} \d{4}-\d\d-\d\d 08:30$`, shown.Local[2])
	require.Equal(t, 23, shown.Next[0].AsTime().Hour())

	made, err := s.library.ScheduleRecurrence(ctx, connect.NewRequest(&linktrialv1.ScheduleRecurrenceRequest{Plan: "demo", Rule: "daily 08:30 Asia/Tokyo", By: "test"}))
	require.NoError(t, err)
	id := made.Msg.Recurrence.Id
	list := func() *linktrialv1.ListSchedulesResponse {
		t.Helper()
		res, err := s.library.ListSchedules(ctx, connect.NewRequest(&linktrialv1.ListSchedulesRequest{}))
		require.NoError(t, err)
		return res.Msg
	}
	require.Eventually(t, func() bool { return len(list().Schedules) == 1 }, 30*time.Second, 20*time.Millisecond)
	next := list().Schedules[0]
	require.Equal(t, id, next.RecurrenceId)
	require.EqualValues(t, 1, next.Number)
	require.True(t, shown.Next[0].AsTime().Equal(next.At.AsTime()))

	change := func(c linktrialv1.ChangeRecurrenceRequest_Change) error {
		_, err := s.library.ChangeRecurrence(ctx, connect.NewRequest(&linktrialv1.ChangeRecurrenceRequest{Id: id, Change: c}))
		return err
	}
	fails(t, change(linktrialv1.ChangeRecurrenceRequest_CHANGE_UNSPECIFIED), connect.CodeInvalidArgument, "pause, resume or remove")
	require.NoError(t, change(linktrialv1.ChangeRecurrenceRequest_CHANGE_PAUSE))
	require.Empty(t, list().Schedules)
	require.Equal(t, "paused", list().Recurrences[0].State)
	fails(t, change(linktrialv1.ChangeRecurrenceRequest_CHANGE_PAUSE), connect.CodeFailedPrecondition, "is paused, expected active")
	require.NoError(t, change(linktrialv1.ChangeRecurrenceRequest_CHANGE_REMOVE))
	require.Empty(t, list().Recurrences)
	fails(t, change(linktrialv1.ChangeRecurrenceRequest_CHANGE_RESUME), connect.CodeNotFound, id)
	_, err = s.library.ScheduleRecurrence(ctx, connect.NewRequest(&linktrialv1.ScheduleRecurrenceRequest{Plan: "demo", Rule: "hourly"}))
	fails(t, err, connect.CodeInvalidArgument, "expected a rule like")
}

// A schedule for which no nodes are connected at its time fails with the reason, when its
// patience has ended.
func TestScheduleWithoutNodes(t *testing.T) {
	t.Parallel()
	s, ctx := serveAll(t, storetest.URL(t), t.TempDir(), nil), t.Context()
	at := time.Now().Add(time.Hour)
	_, err := s.library.Schedule(ctx, connect.NewRequest(&linktrialv1.ScheduleRequest{Plan: "demo", At: timestamppb.New(at), Patience: durationpb.New(time.Second)}))
	fails(t, err, connect.CodeInvalidArgument, "10s to 24h")
	at = time.Now().Add(3 * time.Second) // still to come when a busy machine has the call
	_, err = s.library.Schedule(ctx, connect.NewRequest(&linktrialv1.ScheduleRequest{Plan: "demo", At: timestamppb.New(at), Patience: durationpb.New(10 * time.Second)}))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		res, err := s.library.ListSchedules(ctx, connect.NewRequest(&linktrialv1.ListSchedulesRequest{}))
		require.NoError(t, err)
		x := res.Msg.Schedules[0]
		if x.State == "waiting" {
			return false
		}
		require.Equal(t, "failed", x.State)
		require.Contains(t, x.Message, "could not start within 10s: ")
		require.Contains(t, x.Message, "no client node is connected")
		require.GreaterOrEqual(t, time.Since(at), 10*time.Second)
		return true
	}, 60*time.Second, 20*time.Millisecond)
}

func TestTopologies(t *testing.T) {
	url, data := storetest.URL(t), t.TempDir()
	s, ctx := serveAll(t, url, data, nil), t.Context()
	_, err := s.catalog.SaveTopology(ctx, connect.NewRequest(&linktrialv1.SaveTopologyRequest{Name: "meadow", Text: []byte(meadow)}))
	require.NoError(t, err)
	for _, restarted := range []bool{false, true} {
		if restarted {
			stop(t, s.server)
			s = serveAll(t, url, data, nil)
		}
		src, err := s.catalog.GetSource(ctx, connect.NewRequest(&linktrialv1.GetSourceRequest{Kind: "topology", Name: "meadow"}))
		require.NoError(t, err)
		require.Equal(t, meadow, string(src.Msg.Text))
		require.False(t, src.Msg.Shipped)
		all, err := s.operator.ListProfiles(ctx, connect.NewRequest(&linktrialv1.ListProfilesRequest{}))
		require.NoError(t, err)
		require.Len(t, all.Msg.Topologies, len(all.Msg.ShippedTopologies)+1)
		require.NotContains(t, all.Msg.ShippedTopologies, "meadow")
	}
	src, err := s.catalog.GetSource(ctx, connect.NewRequest(&linktrialv1.GetSourceRequest{Kind: "radio", Name: "mpu4"}))
	require.NoError(t, err)
	require.True(t, src.Msg.Shipped)
	require.Contains(t, string(src.Msg.Text), "name: mpu4")
	for _, c := range []struct {
		kind, name string
		code       connect.Code
	}{{"radio", "none", connect.CodeNotFound}, {"topology", "none", connect.CodeNotFound}, {"plan", "demo", connect.CodeInvalidArgument}} {
		_, err := s.catalog.GetSource(ctx, connect.NewRequest(&linktrialv1.GetSourceRequest{Kind: c.kind, Name: c.name}))
		fails(t, err, c.code)
	}
	for document, key := range map[string]string{"plan": "sample_interval", "radio": "processing_delay", "topology": "second_radio"} {
		language, err := s.catalog.GetLanguage(ctx, connect.NewRequest(&linktrialv1.GetLanguageRequest{Document: document}))
		require.NoError(t, err)
		require.Contains(t, string(language.Msg.Schema), `"`+key+`":`)
	}
	_, err = s.catalog.GetLanguage(ctx, connect.NewRequest(&linktrialv1.GetLanguageRequest{Document: "poem"}))
	fails(t, err, connect.CodeInvalidArgument, `document "poem", expected plan`)
	_, err = s.catalog.SaveTopology(ctx, connect.NewRequest(&linktrialv1.SaveTopologyRequest{Name: "vip-lot", Text: []byte(strings.Replace(meadow, "name: meadow", "name: vip-lot", 1))}))
	fails(t, err, connect.CodePermissionDenied, "another name")
	_, err = s.catalog.DeleteTopology(ctx, connect.NewRequest(&linktrialv1.DeleteTopologyRequest{Name: "vip-lot"}))
	fails(t, err, connect.CodePermissionDenied)
	_, err = s.catalog.DeleteTopology(ctx, connect.NewRequest(&linktrialv1.DeleteTopologyRequest{Name: "meadow"}))
	require.NoError(t, err)
	_, err = s.catalog.DeleteTopology(ctx, connect.NewRequest(&linktrialv1.DeleteTopologyRequest{Name: "meadow"}))
	fails(t, err, connect.CodeNotFound)
}

// suite is a conformance suite that is told what to find.
type suite struct {
	checks []*linktrialv1.ConformanceCheck
	wait   chan struct{} // nil: no
	quick  bool          // as it was called
	err    error
}

func (x *suite) States(context.Context) ([]*linktrialv1.DriverState, error) {
	return []*linktrialv1.DriverState{{Name: "alpha", Version: "1.2", Sha256: "feed"}}, nil
}

func (x *suite) Check(ctx context.Context, _ string, quick bool, tell func(*linktrialv1.ConformanceCheck, int)) error {
	x.quick = quick
	for _, c := range x.checks {
		tell(c, len(x.checks))
	}
	if x.wait != nil {
		select {
		case <-x.wait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return x.err
}

func TestProtocols(t *testing.T) {
	x := &suite{checks: []*linktrialv1.ConformanceCheck{{Name: "size-0", Outcome: "passed", Seconds: 0.5}, {Name: "cut", Outcome: "failed", Message: "hung\x00"}, {Name: "namespaces", Outcome: "skipped"}}}
	s, ctx := serveAll(t, storetest.URL(t), t.TempDir(), func(c *server.Config) { c.Drivers = x }), t.Context()
	check := func(name string) ([]string, *linktrialv1.ConformanceResult, error) {
		stream, err := s.catalog.CheckProtocol(ctx, connect.NewRequest(&linktrialv1.CheckProtocolRequest{Name: name}))
		require.NoError(t, err)
		defer stream.Close()
		var told []string
		var result *linktrialv1.ConformanceResult
		for stream.Receive() {
			require.Nil(t, result, "something comes after the result")
			if c := stream.Msg().GetCheck(); c != nil {
				told = append(told, c.Name+" "+c.Outcome)
			}
			result = stream.Msg().GetResult()
		}
		return told, result, stream.Err()
	}
	list := func() *linktrialv1.ProtocolInfo {
		res, err := s.catalog.ListProtocols(ctx, connect.NewRequest(&linktrialv1.ListProtocolsRequest{}))
		require.NoError(t, err)
		require.Len(t, res.Msg.Protocols, 2)
		return res.Msg.Protocols[0]
	}
	p := list()
	require.Equal(t, "alpha", p.Name)
	require.Contains(t, p.ManifestJson, `"congestion"`)
	require.Equal(t, "1.2", p.Here.Version)
	require.Nil(t, p.LastCheck)
	require.FileExists(t, p.File)

	told, result, err := check("alpha")
	require.NoError(t, err)
	require.Equal(t, []string{"size-0 passed", "cut failed", "namespaces skipped"}, told)
	require.Equal(t, []any{int32(1), int32(1), int32(1), "feed", "1.2"}, []any{result.Passed, result.Failed, result.Skipped, result.Sha256, result.Version})
	last := list().LastCheck
	require.Equal(t, result.CheckedUnix, last.CheckedUnix)
	require.Len(t, last.Checks, 3)
	require.Equal(t, "hung", last.Checks[1].Message)

	// A quick suite leaves the last result as it is.
	x.checks = x.checks[:2]
	stream, err := s.catalog.CheckProtocol(ctx, connect.NewRequest(&linktrialv1.CheckProtocolRequest{Name: "alpha", Quick: true}))
	require.NoError(t, err)

	for stream.Receive() {
		require.EqualValues(t, 2, stream.Msg().Total)
	}
	require.NoError(t, stream.Err())
	require.True(t, x.quick)
	require.Len(t, list().LastCheck.Checks, 3)

	_, _, err = check("gamma")
	fails(t, err, connect.CodeNotFound, "alpha, beta")
	x.err = errors.New("no namespaces")
	_, _, err = check("alpha")
	fails(t, err, connect.CodeInternal, "no namespaces")
	require.Equal(t, last.CheckedUnix, list().LastCheck.CheckedUnix, "a suite that failed to run replaced the last result")

	// One at a time; and who leaves ends it.
	x.err, x.wait = nil, make(chan struct{})
	leave, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err = s.catalog.CheckProtocol(leave, connect.NewRequest(&linktrialv1.CheckProtocolRequest{Name: "alpha"}))
	require.NoError(t, err)
	require.True(t, stream.Receive())
	_, _, err = check("beta")
	fails(t, err, connect.CodeFailedPrecondition, "alpha")
	cancel()
	stream.Close()
	close(x.wait)
	require.Eventually(t, func() bool { _, _, err := check("beta"); return err == nil }, 20*time.Second, 20*time.Millisecond)
}

// bench is a lab that only records its calls.
type bench struct {
	up   bool
	said []string
}

func (b *bench) Status(context.Context) (*linktrialv1.LabStatusResponse, error) {
	st := &linktrialv1.LabStatusResponse{Up: b.up}
	if b.up {
		st.Nodes = []*linktrialv1.LabNode{{Name: "client"}, {Name: "relay"}, {Name: "server"}}
	}
	return st, nil
}
func (b *bench) Up(_ context.Context, radio, topology string) error {
	if b.up {
		return fmt.Errorf("%w: one stands", rpc.ErrLab)
	}
	b.up, b.said = true, append(b.said, "up "+radio+" "+topology)
	return nil
}
func (b *bench) Down(context.Context) error {
	b.up, b.said = false, append(b.said, "down")
	return nil
}
func (b *bench) SetControlLink(_ context.Context, node string, up bool) error {
	b.said = append(b.said, fmt.Sprint("link ", node, " ", up))
	return nil
}

func TestLab(t *testing.T) {
	b, ctx := &bench{}, t.Context()
	addr := ""
	s := serveAll(t, storetest.URL(t), t.TempDir(), func(c *server.Config) {
		c.Lab = func(a string) (rpc.Lab, error) { addr = a; return b, nil }
	})
	require.Equal(t, strings.TrimPrefix(s.base, "http://"), addr)
	up := func(radio, topology string) error {
		_, err := s.lab.LabUp(ctx, connect.NewRequest(&linktrialv1.LabUpRequest{Radio: radio, Topology: topology}))
		return err
	}
	fails(t, up("walkie-talkie", "vip-lot"), connect.CodeInvalidArgument, "prc-117g-anw2c")
	fails(t, up("mpu4", "moon"), connect.CodeInvalidArgument, "vip-lot")
	require.NoError(t, up("mpu4", "vip-lot"))
	fails(t, up("mpu4", "vip-lot"), connect.CodeFailedPrecondition, "one stands")
	_, err := s.lab.SetControlLink(ctx, connect.NewRequest(&linktrialv1.SetControlLinkRequest{Node: "client"}))
	require.NoError(t, err)
	require.Equal(t, []string{"up mpu4 vip-lot", "link client false"}, b.said)

	// Not under a run, and not beside nodes of the same names.
	cast(t, s.clients, func(p *player) { p.pace = time.Minute })
	_, err = s.operator.StartPlan(ctx, connect.NewRequest(&linktrialv1.StartPlanRequest{File: "x", Text: fmt.Appendf(nil, testPlan, "64 KiB")}))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		res, err := s.operator.ListNodes(ctx, connect.NewRequest(&linktrialv1.ListNodesRequest{}))
		require.NoError(t, err)
		return res.Msg.Nodes[0].RunId != ""
	}, 20*time.Second, 10*time.Millisecond)
	_, err = s.lab.LabDown(ctx, connect.NewRequest(&linktrialv1.LabDownRequest{}))
	fails(t, err, connect.CodeFailedPrecondition, "in run")
	b.up = false
	fails(t, up("mpu4", "vip-lot"), connect.CodeFailedPrecondition, "client, relay, server")
}

func TestNoLab(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*server.Config)
		word   string
	}{
		"none":         {nil, "linktrial serve"},
		"not possible": {func(c *server.Config) { c.Lab = func(string) (rpc.Lab, error) { return nil, errors.New("needs root") } }, "needs root"},
		"beyond loopback": {func(c *server.Config) {
			c.Listen, c.Open = "0.0.0.0:0", true
			c.Lab = func(string) (rpc.Lab, error) { return &bench{}, nil }
		}, "0.0.0.0"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveAll(t, storetest.URL(t), t.TempDir(), c.change)
			st, err := s.lab.LabStatus(t.Context(), connect.NewRequest(&linktrialv1.LabStatusRequest{}))
			require.NoError(t, err)
			require.Contains(t, st.Msg.Unavailable, c.word)
			_, err = s.lab.LabUp(t.Context(), connect.NewRequest(&linktrialv1.LabUpRequest{Radio: "mpu4", Topology: "vip-lot"}))
			fails(t, err, connect.CodeFailedPrecondition, c.word)
			_, err = s.lab.LabDown(t.Context(), connect.NewRequest(&linktrialv1.LabDownRequest{}))
			fails(t, err, connect.CodeFailedPrecondition, c.word)
		})
	}
}

// What agents report with their polls is in the list of nodes.
func TestHealthOfNodes(t *testing.T) {
	s, ctx := serveAll(t, storetest.URL(t), t.TempDir(), nil), t.Context()
	cast(t, s.clients)
	charge := 0.42
	res, err := s.operator.ListNodes(ctx, connect.NewRequest(&linktrialv1.ListNodesRequest{}))
	require.NoError(t, err)
	require.Nil(t, res.Msg.Nodes[0].Battery)
	require.False(t, res.Msg.Nodes[0].ClockOffsetKnown)
	reg := &linktrialv1.RegisterRequest{Protocol: agentprotocol.Number, Name: "other", Role: "client", Emulated: true, Incarnation: "1"}
	_, err = s.agent.Register(ctx, connect.NewRequest(reg))
	require.NoError(t, err)
	_, err = s.agent.Poll(ctx, connect.NewRequest(&linktrialv1.PollRequest{Protocol: agentprotocol.Number, Name: "other", Incarnation: "1", Battery: &charge, Discharging: true, ClockOffsetNs: -5e6, ClockErrorNs: 1e6}))
	require.NoError(t, err)
	_, err = s.agent.Poll(ctx, connect.NewRequest(&linktrialv1.PollRequest{Protocol: agentprotocol.Number, Name: "client", Incarnation: "stranger", Battery: &charge}))
	fails(t, err, connect.CodeNotFound)
	res, err = s.operator.ListNodes(ctx, connect.NewRequest(&linktrialv1.ListNodesRequest{}))
	require.NoError(t, err)
	for _, n := range res.Msg.Nodes {
		if n.Name != "other" {
			require.Nil(t, n.Battery, "a stranger spoke for %s", n.Name)
			continue
		}
		require.InDelta(t, 0.42, *n.Battery, 1e-9)
		require.True(t, n.Discharging)
		require.True(t, n.ClockOffsetKnown)
		require.InDelta(t, -0.005, n.ClockOffsetSeconds, 1e-9)
		require.InDelta(t, 0.001, n.ClockErrorSeconds, 1e-9)
	}
}
