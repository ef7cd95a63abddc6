package fleet_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/campaign"
	"linktrial/orchestrator/campaign/nodes"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/fleet"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// rig is a fleet over the real engine and store.
type rig struct {
	*fleet.Fleet
	t      *testing.T
	store  *store.Store
	engine *campaign.Engine

	mu   sync.Mutex
	seen []string // requests, as "node id pairs peers mtu"
	busy int      // nodes that check their peers now
	most int      // of busy
}

func newRig(t *testing.T, cfg fleet.Config) *rig {
	t.Helper()
	r := &rig{t: t, store: storetest.Open(t)}
	var err error
	r.engine, err = campaign.Start(t.Context(), campaign.Config{Store: r.store})
	require.NoError(t, err)
	t.Cleanup(r.engine.Stop)
	cat, err := catalog.Load(catalog.Config{})
	require.NoError(t, err)
	cfg.Store, cfg.Nodes, cfg.Catalog, cfg.Version = r.store, r.engine.Nodes, cat, "1.2"
	r.Fleet, err = fleet.Start(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(r.Stop)
	return r
}

func (r *rig) register(name string, change ...func(*nodes.Registration)) nodes.Registration {
	r.t.Helper()
	x := nodes.Registration{Name: name, Role: name, Version: "1.2", Emulated: true, RadioAddress: "10.77.0." + map[string]string{"client": "1", "relay": "2", "server": "3"}[name],
		Incarnation: "1", Drivers: []nodes.Driver{{Name: "tcp", Version: "1"}}}
	for _, f := range change {
		f(&x)
	}
	require.NoError(r.t, r.engine.Nodes.Register(r.t.Context(), x))
	return x
}

// agent polls and reports until the test ends. agents that are mute do not report.
func (r *rig) agent(name string, mute bool, change ...func(*nodes.Registration)) (stop func()) {
	r.t.Helper()
	x := r.register(name, change...)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		revision, done := int64(0), ""
		for ctx.Err() == nil {
			var err error
			r.Polls(name)
			revision, _, err = r.engine.Nodes.Poll(ctx, name, x.Incarnation, revision, 1, 10*time.Second)
			if err != nil {
				return
			}
			w := r.Requested(name)
			if w == nil || w.Id == done {
				continue
			}
			done = w.Id
			if mute {
				r.mu.Lock()
				r.seen = append(r.seen, fmt.Sprint(name, " does not report, pairs ", w.PairsOnly))
				r.mu.Unlock()
				continue
			}
			if err := r.report(ctx, name, w); err != nil && ctx.Err() == nil {
				r.t.Errorf("report of %s: %v", name, err)
			}
		}
	})
	stop = func() { cancel(); wg.Wait() }
	r.t.Cleanup(stop)
	require.Eventually(r.t, func() bool {
		return slices.ContainsFunc(r.engine.Nodes.List(), func(n nodes.Node) bool { return n.Name == name && n.Connected })
	}, 10*time.Second, time.Millisecond)
	return stop
}

func (r *rig) report(ctx context.Context, name string, w *linktrialv1.PreflightRequest) error {
	r.mu.Lock()
	line := name + " self"
	if w.PairsOnly {
		line = name + " pairs"
		for _, p := range w.Peers {
			line += " " + p.Name + "=" + p.RadioAddress
		}
		r.busy++
		r.most = max(r.most, r.busy)
	}
	r.seen = append(r.seen, line)
	r.mu.Unlock()
	checks := []*linktrialv1.Check{{Kind: "clock", State: linktrialv1.CheckState_CHECK_STATE_OK, Found: "0 s \x00" + strings.Repeat("é", 3000)}}
	var links []*linktrialv1.Link
	if w.PairsOnly {
		time.Sleep(5 * time.Millisecond)
		checks = nil
		for _, p := range w.Peers {
			checks = append(checks, &linktrialv1.Check{Node: "somebody else", Peer: p.Name, Kind: "reach", State: linktrialv1.CheckState_CHECK_STATE_OK, Found: "x"})
			links = append(links, &linktrialv1.Link{From: "somebody else", To: p.Name, Reachable: true, RttSeconds: 0.05, Loss: 0.1, Probes: 10, Network: "radio"})
		}
		r.mu.Lock()
		r.busy--
		r.mu.Unlock()
	}
	if err := r.Report(ctx, &linktrialv1.ReportPreflightRequest{Name: name, Id: w.Id, Checks: checks, Links: links}); err != nil {
		return err
	}
	// A repeated report changes nothing.
	if err := r.Report(ctx, &linktrialv1.ReportPreflightRequest{Name: name, Id: w.Id, Checks: checks, Links: links}); err != nil && !strings.Contains(err.Error(), "not found") {
		return err
	}
	return nil
}

func (r *rig) ended(id string) *linktrialv1.GetPreflightResponse {
	r.t.Helper()
	var p *linktrialv1.GetPreflightResponse
	require.Eventually(r.t, func() bool {
		var err error
		p, err = r.Preflight(r.t.Context(), id)
		require.NoError(r.t, err)
		return p.Ended != nil
	}, 30*time.Second, 5*time.Millisecond)
	return p
}

func find(p *linktrialv1.GetPreflightResponse, node, kind string) *linktrialv1.Check {
	for _, c := range p.Checks {
		if c.Node == node && c.Kind == kind {
			return c
		}
	}
	return nil
}

func TestPreflight(t *testing.T) {
	r := newRig(t, fleet.Config{})
	_, err := r.StartPreflight(t.Context(), fleet.Request{})
	require.ErrorIs(t, err, fleet.ErrNotFound)
	none, err := r.Preflight(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, none.Id, "there was none yet")

	for _, name := range []string{"client", "relay", "server"} {
		r.agent(name, false)
	}
	id, err := r.StartPreflight(t.Context(), fleet.Request{Topology: "vip-lot", Radio: "prc-117g-anw2c"})
	require.NoError(t, err)
	p := r.ended(id)
	require.Equal(t, []string{"client", "relay", "server"}, p.Nodes)
	require.Empty(t, p.WaitingFor)
	require.Equal(t, "vip-lot", p.Topology)
	require.Len(t, p.Checks, 3*(2+1+2))
	for i, c := range p.Checks {
		require.Equal(t, linktrialv1.CheckState_CHECK_STATE_OK, c.State, "%v", c)
		require.NotEqual(t, "somebody else", c.Node)
		require.NotContains(t, c.Found, "\x00")
		if i > 0 {
			require.LessOrEqual(t, p.Checks[i-1].Node, c.Node)
		}
	}
	// All nodes check themselves first, then one after the other their peers.
	require.Equal(t, 1, r.most)
	slices.Sort(r.seen[:3])
	require.Equal(t, []string{"client self", "relay self", "server self", "client pairs relay=10.77.0.2 server=10.77.0.3",
		"relay pairs client=10.77.0.1 server=10.77.0.3", "server pairs client=10.77.0.1 relay=10.77.0.2"}, r.seen)
	links, err := r.Links(t.Context())
	require.NoError(t, err)
	require.Len(t, links, 6)
	require.Equal(t, "client", links[0].From)
	require.InDelta(t, 0.05, links[0].RttSeconds, 1e-9)

	newest, err := r.Preflight(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, id, newest.Id)
	require.Nil(t, r.Requested("client"))
}

func TestChecksOfTheOrchestrator(t *testing.T) {
	r := newRig(t, fleet.Config{Self: 2 * time.Second, Pair: time.Second})
	r.agent("client", false, func(x *nodes.Registration) { x.Version = "1.1"; x.Drivers[0].Version = "2" })
	r.agent("server", true) // does not report
	stop := r.agent("relay", false)
	stop() // is no longer connected
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(r.engine.Nodes.List(), func(n nodes.Node) bool { return n.Name == "relay" && !n.Connected })
	}, 10*time.Second, time.Millisecond)

	id, err := r.StartPreflight(t.Context(), fleet.Request{})
	require.NoError(t, err)
	_, err = r.StartPreflight(t.Context(), fleet.Request{})
	require.ErrorIs(t, err, fleet.ErrBusy)
	p := r.ended(id)
	for _, c := range []struct {
		node, kind string
		state      linktrialv1.CheckState
		found      string
	}{
		{"client", "contact", linktrialv1.CheckState_CHECK_STATE_OK, "connected"},
		{"client", "version", linktrialv1.CheckState_CHECK_STATE_WARNING, "1.1"},
		{"client", "drivers", linktrialv1.CheckState_CHECK_STATE_FAILED, "tcp has different versions: 1 on relay, server; 2 on client"},
		{"client", "clock", linktrialv1.CheckState_CHECK_STATE_OK, ""},
		{"client", "reach", linktrialv1.CheckState_CHECK_STATE_OK, ""},
		{"relay", "contact", linktrialv1.CheckState_CHECK_STATE_FAILED, "no contact for"},
		{"server", "contact", linktrialv1.CheckState_CHECK_STATE_FAILED, "did not report"},
	} {
		got := find(p, c.node, c.kind)
		require.NotNil(t, got, "%v", c)
		require.Equal(t, c.state, got.State, "%v", got)
		require.Contains(t, got.Found, c.found)
		if got.State == linktrialv1.CheckState_CHECK_STATE_FAILED {
			require.NotEmpty(t, got.Remedy)
			require.NotEmpty(t, got.Meaning)
			require.NotEmpty(t, got.Expected)
		}
	}
	r.mu.Lock()
	require.Contains(t, r.seen, "server does not report, pairs false")
	require.NotContains(t, r.seen, "server does not report, pairs true", "a node that does not answer was asked again")
	r.mu.Unlock()

	// No node has the role, and another radio is attached.
	r.engine.Stop()
	r = newRig(t, fleet.Config{})
	r.agent("client", false, func(x *nodes.Registration) { x.Emulated, x.Radio = false, "mpu4" })
	id, err = r.StartPreflight(t.Context(), fleet.Request{Topology: "vip-lot", Radio: "prc-117g-anw2c"})
	require.NoError(t, err)
	p = r.ended(id)
	require.Equal(t, linktrialv1.CheckState_CHECK_STATE_FAILED, find(p, "server", "contact").State)
	require.Contains(t, find(p, "server", "contact").Remedy, "--role server")
	require.Equal(t, linktrialv1.CheckState_CHECK_STATE_FAILED, find(p, "client", "radio").State)
}

func TestRefusals(t *testing.T) {
	r := newRig(t, fleet.Config{})
	r.agent("client", false)
	for _, c := range []struct {
		r  fleet.Request
		is error
	}{
		{fleet.Request{Nodes: []string{"client", "nobody"}}, fleet.ErrNotFound},
		{fleet.Request{Topology: "moon"}, fleet.ErrBad},
		{fleet.Request{Radio: "walkie-talkie"}, fleet.ErrBad},
	} {
		_, err := r.StartPreflight(t.Context(), c.r)
		require.ErrorIs(t, err, c.is, "%v", c.r)
	}
	require.ErrorIs(t, r.Report(t.Context(), &linktrialv1.ReportPreflightRequest{Name: "client", Id: "none"}), fleet.ErrNotFound)

	// In a run.
	r.agent("relay", false)
	r.agent("server", false)
	sheet := storetest.Sheet(2)
	storetest.AddRun(t, r.store, "abcd", sheet)
	r.engine.Nodes.Delivered("client", "", "abcd-1") // makes it review the runs
	require.Eventually(t, func() bool { return len(r.engine.Nodes.RunsUnderWay()) > 0 }, 20*time.Second, 10*time.Millisecond)
	_, err := r.StartPreflight(t.Context(), fleet.Request{})
	require.ErrorIs(t, err, fleet.ErrBusy)
	require.ErrorContains(t, err, "abcd-1")
}

func TestBadReports(t *testing.T) {
	r := newRig(t, fleet.Config{Self: 20 * time.Second})
	r.agent("client", true)
	r.agent("server", true)
	_, err := r.StartPreflight(t.Context(), fleet.Request{})
	require.NoError(t, err)
	var w *linktrialv1.PreflightRequest
	require.Eventually(t, func() bool { w = r.Requested("client"); return w != nil }, 10*time.Second, time.Millisecond)
	require.False(t, w.PairsOnly)
	link := func(to string, loss, rtt float64) []*linktrialv1.Link {
		return []*linktrialv1.Link{{To: to, Loss: loss, RttSeconds: rtt}}
	}
	check := func(kind string, state int32) []*linktrialv1.Check {
		return []*linktrialv1.Check{{Kind: kind, State: linktrialv1.CheckState(state)}}
	}
	for i, c := range []struct {
		checks []*linktrialv1.Check
		links  []*linktrialv1.Link
	}{
		{check("clock", 9), nil}, {check("", 1), nil}, {check("contact", 1), nil}, {check("treatment", 1), nil}, {make([]*linktrialv1.Check, 501), nil},
		{nil, link("server", 0, 0)}, // nobody asked for it
		{nil, link("server", math.NaN(), 0)}, {nil, link("server", 2, 0)}, {nil, link("server", 0, math.Inf(1))}, {nil, link("nobody", 0, 0)},
	} {
		require.ErrorIs(t, r.Report(t.Context(), &linktrialv1.ReportPreflightRequest{Name: "client", Id: w.Id, Checks: c.checks, Links: c.links}), fleet.ErrBad, "case %d", i)
	}
	p, err := r.Preflight(t.Context(), "")
	require.NoError(t, err)
	require.Nil(t, p.Ended)
	require.Equal(t, []string{"client", "server"}, p.WaitingFor)
	require.NoError(t, r.Report(t.Context(), &linktrialv1.ReportPreflightRequest{Name: "client", Id: w.Id, Checks: check("clock", 1)}))
	p, err = r.Preflight(t.Context(), p.Id)
	require.NoError(t, err)
	require.Equal(t, []string{"server"}, p.WaitingFor)
	// Stop does not wait for the other nodes, and the next start ends the preflight.
	r.Stop()
	_, err = r.StartPreflight(t.Context(), fleet.Request{})
	require.ErrorIs(t, err, nodes.ErrStopping)
	next, err := fleet.Start(t.Context(), fleet.Config{Store: r.store, Nodes: r.engine.Nodes})
	require.NoError(t, err)
	defer next.Stop()
	p, err = next.Preflight(t.Context(), "")
	require.NoError(t, err)
	require.NotNil(t, p.Ended)
	require.Equal(t, linktrialv1.CheckState_CHECK_STATE_UNKNOWN, find(p, "client", "contact").State)
}

func TestHealth(t *testing.T) {
	r := newRig(t, fleet.Config{})
	require.Equal(t, fleet.Health{}, r.Health("client"))
	charge := 0.5
	h := fleet.Health{Battery: &charge, Discharging: true, ClockOffset: time.Second, ClockError: time.Millisecond, ClockKnown: true}
	r.SetHealth("client", h)
	require.Equal(t, h, r.Health("client"))
}
