package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/journal"
	"linktrial/internal/agentprotocol"
	"linktrial/internal/process"
	"linktrial/orchestrator/campaign"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/postgres"
	"linktrial/orchestrator/report/render"
	"linktrial/orchestrator/server"
	"linktrial/orchestrator/store/storetest"
)

const serveEnv = "LINKTRIAL_TEST_SERVE" // "DATA LISTEN"

func TestMain(m *testing.M) {
	if v := os.Getenv(serveEnv); v != "" {
		data, listen, _ := strings.Cut(v, " ")
		cat, err := catalog.Load(catalog.Config{DriversDir: filepath.Join(data, "drivers")})
		if err == nil {
			_, err = server.Start(context.Background(), server.Config{Listen: listen, DataDir: data, Catalog: cat, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
		}
		if err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		fmt.Println("ready")
		select {} // until killed
	}
	storetest.Main(m)
}

func startOn(t testing.TB, url string) *server.Server {
	t.Helper()
	s, err := server.Start(t.Context(), server.Config{Listen: "127.0.0.1:0", DatabaseURL: url, Catalog: testCatalog(t), Version: "test",
		Waits: campaign.Waits{Abort: 5 * time.Second, Collect: 20 * time.Second}})
	require.NoError(t, err)
	return s
}

func stop(t testing.TB, s *server.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	require.NoError(t, s.Stop(ctx))
}

// serve starts an orchestrator for the test.
func serve(t testing.TB) *clients {
	t.Helper()
	s := startOn(t, storetest.URL(t))
	t.Cleanup(func() { stop(t, s) })
	return connectTo(t, s.Addr())
}

// ledger checks a stream of events as it arrives.
type ledger struct {
	t        testing.TB
	runs     map[string]*linktrialv1.Run
	ended    map[string]int // by run/trial/attempt
	last     map[string]int // by run/trial
	started  int
	progress int
	notes    []string
	states   map[string][]string
}

func newLedger(t testing.TB) *ledger {
	return &ledger{t: t, runs: map[string]*linktrialv1.Run{}, ended: map[string]int{}, last: map[string]int{}, states: map[string][]string{}}
}

func (l *ledger) event(ev *linktrialv1.WatchResponse) {
	switch e := ev.Event.(type) {
	case *linktrialv1.WatchResponse_Run:
		l.runs[e.Run.Id] = e.Run
		word := strings.ToLower(strings.TrimPrefix(e.Run.State.String(), "RUN_STATE_"))
		if s := l.states[e.Run.Id]; len(s) == 0 || s[len(s)-1] != word {
			l.states[e.Run.Id] = append(s, word)
		}
	case *linktrialv1.WatchResponse_TrialStarted:
		l.started++
	case *linktrialv1.WatchResponse_Progress:
		l.progress++
		if e.Progress.Bytes <= 0 || e.Progress.SizeBytes <= 0 {
			l.t.Errorf("progress of nothing: %v", e.Progress)
		}
	case *linktrialv1.WatchResponse_TrialEnded:
		x := e.TrialEnded
		l.ended[fmt.Sprint(x.RunId, "/", x.Trial, "/", x.Attempt.Attempt)]++
		if x.LastAttempt {
			l.last[fmt.Sprint(x.RunId, "/", x.Trial)]++
		}
		if want := int(x.Attempt.Attempt) == attempts(int(x.Trial)); x.LastAttempt != want {
			l.t.Errorf("trial %d, attempt %d: last attempt is %t", x.Trial, x.Attempt.Attempt, x.LastAttempt)
		}
	case *linktrialv1.WatchResponse_Note:
		l.notes = append(l.notes, e.Note.Text)
	}
}

const trials = 8 // of a run of the test's plan: two treatments, four iterations

// complete checks that every attempt of every run was shown exactly once.
func (l *ledger) complete(runs int) {
	l.t.Helper()
	require.Len(l.t, l.runs, runs)
	for id, r := range l.runs {
		require.Equal(l.t, linktrialv1.RunState_RUN_STATE_COMPLETED, r.State, r.Message)
		require.Empty(l.t, r.Message)
		require.EqualValues(l.t, trials, r.Trials)
		require.EqualValues(l.t, trials, r.TrialsEnded, id)
		require.EqualValues(l.t, 1, r.AttemptsFailed)
		require.Equal(l.t, "emulated, real time", r.Place)
		require.Zero(l.t, r.EstimatedSecondsLeft)
	}
	require.Len(l.t, l.ended, runs*(trials+1))
	for key, n := range l.ended {
		require.Equal(l.t, 1, n, key)
	}
	require.Len(l.t, l.last, runs*trials)
}

func TestCampaign(t *testing.T) {
	c := serve(t)
	cast(t, c, func(p *player) { p.pace = 60 * time.Millisecond })
	started := c.start(t, fmt.Sprintf(testPlan, "[1 KiB, 2 KiB]"))
	require.Empty(t, started.Problems)
	require.Equal(t, []string{started.CampaignId + "-1", started.CampaignId + "-2"}, started.RunIds)

	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	l := newLedger(t)
	require.NoError(t, c.watch(ctx, started.CampaignId, l.event))
	l.complete(2)
	require.Positive(t, l.started)
	require.Positive(t, l.progress)
	first, second := l.runs[started.RunIds[0]], l.runs[started.RunIds[1]]
	require.False(t, second.Started.AsTime().Before(first.Ended.AsTime()), "runs on the same nodes overlap")
	require.Equal(t, "completed", l.states[first.Id][len(l.states[first.Id])-1])

	// A watcher that comes late sees all of it at once.
	late := newLedger(t)
	require.NoError(t, c.watch(ctx, started.CampaignId, late.event))
	late.complete(2)

	for _, format := range append(render.OfDataset(), "samples-csv", "") {
		res, err := c.results(ctx, &linktrialv1.ResultsRequest{RunId: started.CampaignId, Format: format})
		if format == "delays-svg" { // the plan has no probes
			require.ErrorContains(t, err, "has no probes")
			require.Equal(t, connect.CodeNotFound, connect.CodeOf(err))
			continue
		}
		require.NoError(t, err, format)
		require.NotEmpty(t, res.Content, format)
		require.NotEmpty(t, res.FileName, format)
		require.NotEmpty(t, res.MediaType, format)
		require.Equal(t, started.RunIds, res.RunIds)
		if format == "samples-csv" {
			require.Equal(t, 1+2*(trials+1)*5, strings.Count(string(res.Content), "\n"))
		}
	}
	_, err := c.results(ctx, &linktrialv1.ResultsRequest{Format: "tabel"})
	require.ErrorContains(t, err, `unknown format "tabel"`)
	require.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err))

	run, err := c.operator.GetRun(ctx, connect.NewRequest(&linktrialv1.GetRunRequest{RunId: started.RunIds[1]}))
	require.NoError(t, err)
	require.Len(t, run.Msg.Trials, trials)
	a := run.Msg.Trials[2].Attempts
	require.Len(t, a, 2)
	require.Equal(t, []string{"failed", "reset", "the peer went away"}, []string{a[0].Verdict, a[0].Reason, a[0].Message})
	require.Equal(t, "succeeded", a[1].Verdict)
	require.InDelta(t, 2048, a[1].ThroughputBytesPerSecond, 1e-9, "the sheet's size in a second")
	require.InDelta(t, 0.05, a[1].ConnectSeconds, 1e-9)

	nodes, err := c.operator.ListNodes(ctx, connect.NewRequest(&linktrialv1.ListNodesRequest{}))
	require.NoError(t, err)
	require.Len(t, nodes.Msg.Nodes, 3)
	for _, n := range nodes.Msg.Nodes {
		require.True(t, n.ClockOffsetKnown)
		require.InDelta(t, 0.002, n.ClockOffsetSeconds, 1e-9)
		require.EqualValues(t, 1<<30, n.DiskFreeBytes)
	}
	list, err := c.operator.ListRuns(ctx, connect.NewRequest(&linktrialv1.ListRunsRequest{}))
	require.NoError(t, err)
	require.Equal(t, second.Id, list.Msg.Runs[0].Id, "newest first")
	profiles, err := c.operator.ListProfiles(ctx, connect.NewRequest(&linktrialv1.ListProfilesRequest{}))
	require.NoError(t, err)
	require.NotEmpty(t, profiles.Msg.Radios)

	metrics := get(t, c, "/metrics")
	for _, want := range []string{`linktrial_runs{state="completed"} 2`, `linktrial_nodes_connected 3`, fmt.Sprintf("linktrial_samples_total %d", 2*(trials+1)*5), `linktrial_deliveries_total{outcome="refused"} 0`} {
		require.Contains(t, metrics, want)
	}
	require.Equal(t, "ok\n", get(t, c, "/healthz"))
	require.Contains(t, get(t, c, "/"), "Linktrial")
	require.Contains(t, get(t, c, "/handbook"), "Linktrial", "the handbook, or why there is none")
}

func get(t testing.TB, c *clients, path string) string {
	t.Helper()
	h := &http.Client{Transport: &http.Transport{}} // HTTP/1.1, as browsers and scripts
	defer h.CloseIdleConnections()
	res, err := h.Get(c.base + path)
	require.NoError(t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, res.StatusCode, string(b))
	return string(b)
}

// The orchestrator is killed again and again while a run goes on; the run
// completes, with no trial lost and none repeated.
func TestRunSurvivesKillsOfTheOrchestrator(t *testing.T) {
	t.Parallel()
	data, err := os.MkdirTemp("", "linktrial-servertest-")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(data) })
	require.NoError(t, os.Chmod(data, 0o755))
	writeDrivers(t, filepath.Join(data, "drivers"))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	listen := l.Addr().String()
	l.Close()
	launch := func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), serveEnv+"="+data+" "+listen)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, process.Start(cmd))
		line, err := bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "ready\n", line)
		return cmd
	}
	kill := func(cmd *exec.Cmd) {
		require.NoError(t, cmd.Process.Kill())
		cmd.Wait()
	}
	cmd := launch()
	defer func() { kill(cmd) }()
	c := connectTo(t, listen)
	cast(t, c, func(p *player) { p.pace = 150 * time.Millisecond })
	started := c.start(t, fmt.Sprintf(testPlan, "1 KiB"))
	require.Empty(t, started.Problems)

	ctx, cancel := context.WithTimeout(t.Context(), 120*time.Second)
	defer cancel()
	for _, want := range []int32{0, 2, 5} { // kills: as it is prepared, and after so many trials
		require.Eventually(t, func() bool {
			res, err := c.operator.GetRun(ctx, connect.NewRequest(&linktrialv1.GetRunRequest{RunId: started.RunIds[0]}))
			return err == nil && res.Msg.Run.TrialsEnded >= want
		}, 60*time.Second, 5*time.Millisecond)
		kill(cmd)
		cmd = launch()
	}
	var watched *ledger
	for {
		watched = newLedger(t)
		if err := c.watch(ctx, started.CampaignId, watched.event); err == nil {
			break
		} else if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	watched.complete(1)

	// The same data folder is not for two.
	_, err = server.Start(ctx, server.Config{Listen: "127.0.0.1:0", DataDir: data, Catalog: testCatalog(t)})
	require.ErrorContains(t, err, fmt.Sprintf("in use by another orchestrator (process %d)", cmd.Process.Pid))
}

// An agent with another state folder than that which holds the journal of an open run does
// not take the node's place, whether or not the orchestrator hears of the one that has it.
func TestJournalInAnotherStateFolder(t *testing.T) {
	c := serve(t)
	_, started, _ := c.held(t, "[1 KiB]", func(p *player) { p.incarnation = "FOLDER/" + string(p.role) })
	second := newPlayer(c, "server")
	second.incarnation = "OTHER/1"
	fails(t, second.register(t.Context()), connect.CodeAlreadyExists, "server takes part in run "+started.RunIds[0]+": that run's journal is in another state folder", "linktrial run abort "+started.RunIds[0])
	_, err := c.operator.AbortCampaign(t.Context(), connect.NewRequest(&linktrialv1.AbortCampaignRequest{CampaignId: started.CampaignId, Reason: "rain"}))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		return strings.Contains(second.register(t.Context()).Error(), "another agent of that name is connected")
	}, 30*time.Second, 10*time.Millisecond)
}

func TestAbort(t *testing.T) {
	c := serve(t)
	players, started, hold := c.held(t, "[1 KiB, 2 KiB]")
	abort := &linktrialv1.AbortCampaignRequest{CampaignId: started.CampaignId, Reason: "rain"}
	_, err := c.operator.AbortCampaign(t.Context(), connect.NewRequest(abort))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	runs := map[string]*linktrialv1.Run{}
	require.NoError(t, c.watch(ctx, started.CampaignId, func(ev *linktrialv1.WatchResponse) {
		if r := ev.GetRun(); r != nil {
			runs[r.Id] = r
		}
	}))
	for _, id := range started.RunIds {
		require.Equal(t, linktrialv1.RunState_RUN_STATE_ABORTED, runs[id].State)
		require.Equal(t, "rain", runs[id].Message)
	}
	require.EqualValues(t, 2, runs[started.RunIds[0]].TrialsEnded)
	require.EqualValues(t, 0, runs[started.RunIds[1]].TrialsEnded)
	_, err = c.operator.AbortCampaign(ctx, connect.NewRequest(abort))
	require.Equal(t, connect.CodeFailedPrecondition, connect.CodeOf(err))
	_, err = c.operator.AbortCampaign(ctx, connect.NewRequest(&linktrialv1.AbortCampaignRequest{CampaignId: "nope"}))
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(err))
	for _, p := range players {
		p.mu.Lock()
		require.True(t, p.parts[started.RunIds[0]].over, "%s was told", p.role)
		require.Nil(t, p.parts[started.RunIds[1]], "%s got nothing of the second run", p.role)
		p.mu.Unlock()
	}
	// The nodes are free again.
	close(hold)
	again := c.start(t, fmt.Sprintf(testPlan, "1 KiB"))
	l := newLedger(t)
	require.NoError(t, c.watch(ctx, again.CampaignId, l.event))
	l.complete(1)
}

// A node whose disk is full ends the run for all nodes, and the run's message says why.
func TestFullDiskEndsTheRun(t *testing.T) {
	c := serve(t)
	hold := make(chan struct{})
	players := cast(t, c, func(p *player) { p.hold = hold })
	started := c.start(t, fmt.Sprintf(testPlan, "1 KiB"))
	require.Empty(t, started.Problems)
	run := started.RunIds[0]
	require.Eventually(t, func() bool {
		res, err := c.operator.GetRun(t.Context(), connect.NewRequest(&linktrialv1.GetRunRequest{RunId: run[:5]}))
		return err == nil && res.Msg.Run.TrialsEnded == 2
	}, 30*time.Second, 10*time.Millisecond)
	for _, p := range players {
		if p.role == "server" {
			p.mu.Lock()
			x := p.parts[run]
			x.j.Finish(journal.RunStopped, "disk full")
			x.over = true
			require.NoError(t, p.deliver(t.Context(), x))
			p.mu.Unlock()
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	l := newLedger(t)
	require.NoError(t, c.watch(ctx, started.CampaignId, l.event))
	require.Equal(t, linktrialv1.RunState_RUN_STATE_STOPPED, l.runs[run].State)
	require.Equal(t, "node server stopped: disk full", l.runs[run].Message)
}

// A node that was away when its run was aborted is told when it comes back,
// but one that lost its memory does not begin the run to end it.
func TestNodeThatWasAwayDuringAnAbort(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := startOn(t, url)
	c := connectTo(t, s.Addr())
	ctx := t.Context()
	register := func(incarnation string) {
		for _, role := range storetest.Roles {
			p := newPlayer(c, role)
			p.incarnation = incarnation
			require.NoError(t, p.register(ctx))
		}
	}
	assignments := func(incarnation string) []given {
		res, err := c.agent.Poll(ctx, connect.NewRequest(&linktrialv1.PollRequest{Protocol: agentprotocol.Number, Name: "relay", Incarnation: incarnation}))
		require.NoError(t, err)
		return givenBy(res.Msg)
	}
	register("first")
	started := c.start(t, fmt.Sprintf(testPlan, "1 KiB"))
	require.Empty(t, started.Problems)
	require.Eventually(t, func() bool { return len(assignments("first")) == 1 }, 20*time.Second, 10*time.Millisecond)

	// The orchestrator is started again, so that nobody is connected, and the campaign aborted.
	stop(t, s)
	s = startOn(t, url)
	t.Cleanup(func() { stop(t, s) })
	c = connectTo(t, s.Addr())
	_, err := c.operator.AbortCampaign(ctx, connect.NewRequest(&linktrialv1.AbortCampaignRequest{CampaignId: started.CampaignId}))
	require.NoError(t, err)
	l := newLedger(t)
	require.NoError(t, c.watch(ctx, started.CampaignId, l.event))
	require.Equal(t, linktrialv1.RunState_RUN_STATE_ABORTED, l.runs[started.RunIds[0]].State)

	as := assignments("first")
	require.Len(t, as, 1)
	require.Equal(t, linktrialv1.Assignment_DESIRED_STATE_ABORT, as[0].DesiredState)
	again := newPlayer(c, "relay")
	again.incarnation = "second"
	require.Eventually(t, func() bool { return again.register(ctx) == nil }, 20*time.Second, 50*time.Millisecond, "the first relay counts as connected for a moment")
	require.Eventually(t, func() bool { return len(assignments("second")) == 0 }, 20*time.Second, 10*time.Millisecond)
	_, err = c.agent.Poll(ctx, connect.NewRequest(&linktrialv1.PollRequest{Protocol: agentprotocol.Number, Name: "relay", Incarnation: "first"}))
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(err), "the first relay is to register again")
}

func TestRefusedPlans(t *testing.T) {
	c := serve(t)
	res := c.start(t, fmt.Sprintf(testPlan, "1 KiB"))
	require.Empty(t, res.CampaignId)
	require.Len(t, res.Problems, 3)
	for i, role := range []string{"server", "relay", "client"} { // as the topology lists them
		require.Contains(t, res.Problems[i].Message, "no "+role+" node is connected: start one with")
	}

	broken := strings.NewReplacer("prc-117g-anw2c", "prc-117", "protocol: beta", "protocol: betta", "iterations: 4", "iterations: four").Replace(fmt.Sprintf(testPlan, "1 KiB"))
	check, err := c.operator.CheckPlan(t.Context(), connect.NewRequest(&linktrialv1.CheckPlanRequest{File: "x.yaml", Text: []byte(broken)}))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(check.Msg.Problems), 2)
	for _, p := range check.Msg.Problems {
		require.Equal(t, "x.yaml", p.File)
		require.Positive(t, p.Line)
		require.Positive(t, p.Column)
	}
	good, err := c.operator.CheckPlan(t.Context(), connect.NewRequest(&linktrialv1.CheckPlanRequest{File: "x.yaml", Text: fmt.Appendf(nil, testPlan, "1 KiB")}))
	require.NoError(t, err)
	require.Empty(t, good.Msg.Problems)
	require.Contains(t, good.Msg.Summary, "test: 1 run")
	explained, err := c.operator.ExplainPlan(t.Context(), connect.NewRequest(&linktrialv1.ExplainPlanRequest{File: "x.yaml", Text: fmt.Appendf(nil, testPlan, "[1 KiB, 2 KiB]")}))
	require.NoError(t, err)
	require.Len(t, explained.Msg.Sheets, 2)
	require.Len(t, explained.Msg.Sheets[0].TrialSeconds, trials)
	require.Positive(t, explained.Msg.EstimatedSeconds)

	// A plan of which the nodes can run nothing.
	cast(t, c)
	vegas := strings.NewReplacer("congestion: cubic", "congestion: vegas", "protocol: beta", "protocol: beta, options: {congestion: reno}").Replace(fmt.Sprintf(testPlan, "1 KiB"))
	res = c.start(t, vegas)
	require.Empty(t, res.CampaignId)
	require.Len(t, res.Problems, 2)
	require.Equal(t, "treatment one: the kernel of client and server has no congestion control vegas", res.Problems[0].Message)
	require.Equal(t, "treatment two: the kernel of client and server has no congestion control reno", res.Problems[1].Message)

	for _, bad := range []*linktrialv1.RegisterRequest{
		{Name: "../x", Role: "client", Emulated: true, Incarnation: "1"}, {Name: "x", Role: "drone", Emulated: true, Incarnation: "1"},
		{Name: "x", Role: "client", Emulated: true}, {Name: "x", Role: "client", Incarnation: "1", Emulated: true, Virtual: true}} {
		bad.Protocol = agentprotocol.Number
		_, err := c.agent.Register(t.Context(), connect.NewRequest(bad))
		require.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err), bad)
	}
	twin := newPlayer(c, "client")
	twin.incarnation = "second"
	err = twin.register(t.Context())
	require.Equal(t, connect.CodeAlreadyExists, connect.CodeOf(err))
	require.ErrorContains(t, err, "another agent of that name is connected")

	for name, f := range map[string]func() error{
		"run": func() error {
			_, err := c.operator.GetRun(t.Context(), connect.NewRequest(&linktrialv1.GetRunRequest{RunId: "nope"}))
			return err
		},
		"no runs yet": func() error {
			_, err := c.operator.GetRun(t.Context(), connect.NewRequest(&linktrialv1.GetRunRequest{}))
			return err
		},
		"results": func() error {
			_, err := c.results(t.Context(), &linktrialv1.ResultsRequest{RunId: "nope"})
			return err
		},
		"watch": func() error { return c.watch(t.Context(), "nope", func(*linktrialv1.WatchResponse) {}) },
		"deliver": func() error {
			_, err := c.agent.Deliver(t.Context(), connect.NewRequest(&linktrialv1.DeliverRequest{Name: "client", RunId: "nope-1"}))
			return err
		},
		"poll": func() error {
			_, err := c.agent.Poll(t.Context(), connect.NewRequest(&linktrialv1.PollRequest{Protocol: agentprotocol.Number, Name: "ghost", Incarnation: "1"}))
			return err
		},
	} {
		require.Equal(t, connect.CodeNotFound, connect.CodeOf(f()), name)
	}
}

func TestRefusedStarts(t *testing.T) {
	url := storetest.URL(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	for listen, want := range map[string]string{
		l.Addr().String():  "port " + port + " on 127.0.0.1 is in use",
		"0.0.0.0:0":        "reachable from other machines",
		":0":               "reachable from other machines",
		"192.0.2.1:0":      "reachable from other machines",
		"127.0.0.1":        "expected HOST:PORT",
		"127.0.0.1:999999": "listen on",
	} {
		_, err := server.Start(t.Context(), server.Config{Listen: listen, DatabaseURL: url, Catalog: testCatalog(t)})
		require.ErrorContains(t, err, want, listen)
		require.NotContains(t, err.Error(), "\n", "one sentence")
	}
	_, err = server.Start(t.Context(), server.Config{Listen: "127.0.0.1:0", DatabaseURL: "postgres:///x?host=/nonexistent&user=x", Catalog: testCatalog(t)})
	require.ErrorContains(t, err, "the database does not answer")
	_, err = server.Start(t.Context(), server.Config{Listen: "0.0.0.0:0", DatabaseURL: url, Catalog: testCatalog(t), Open: true, Login: true})
	require.EqualError(t, err, "--login with --open would send passwords to 0.0.0.0:0 without encryption: leave --open out, and the orchestrator speaks TLS and requires people to log in")
	s, err := server.Start(t.Context(), server.Config{Listen: "0.0.0.0:0", DatabaseURL: url, Catalog: testCatalog(t), Open: true})
	require.NoError(t, err)
	stop(t, s)
	stop(t, s)
}

// A database has one orchestrator; the next one begins when that has stopped.
func TestOneOrchestratorADatabase(t *testing.T) {
	cfg := server.Config{Listen: "127.0.0.1:0", DatabaseURL: storetest.URL(t), Catalog: testCatalog(t)}
	first, err := server.Start(t.Context(), cfg)
	require.NoError(t, err)
	_, err = server.Start(t.Context(), cfg)
	require.ErrorIs(t, err, postgres.ErrInUse)
	require.ErrorContains(t, err, fmt.Sprintf("the database is in use by another program (linktrial orchestrator, process %d on ", os.Getpid()))
	require.ErrorContains(t, err, "stop that one, or name another database with --database")
	require.NotContains(t, err.Error(), "\n", "one sentence")
	stop(t, first)
	next, err := server.Start(t.Context(), cfg)
	require.NoError(t, err)
	stop(t, next)
}

// A stopping orchestrator ends polls and streams instead of waiting for them.
func TestStopEndsStreams(t *testing.T) {
	s := startOn(t, storetest.URL(t))
	c := connectTo(t, s.Addr())
	for _, role := range storetest.Roles {
		require.NoError(t, newPlayer(c, role).register(t.Context()))
	}
	started := c.start(t, fmt.Sprintf(testPlan, "1 KiB"))
	require.Empty(t, started.Problems)
	seen := make(chan struct{}, 100)
	ended := make(chan error, 2)
	go func() {
		ended <- c.watch(context.Background(), started.CampaignId, func(*linktrialv1.WatchResponse) { seen <- struct{}{} })
	}()
	go func() {
		var revision int64
		for {
			res, err := c.agent.Poll(context.Background(), connect.NewRequest(&linktrialv1.PollRequest{Protocol: agentprotocol.Number, Name: "relay", Incarnation: "first", Revision: revision, WaitMs: 60_000}))
			if err != nil {
				ended <- err
				return
			}
			revision = res.Msg.Revision
		}
	}()
	<-seen
	stop(t, s)
	for range 2 {
		require.Equal(t, connect.CodeUnavailable, connect.CodeOf(<-ended))
	}
}
