package server_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/agentprotocol"
	"linktrial/internal/radio"
	"linktrial/internal/signature"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/store/storetest"
)

const manifest = `
name: %s
title: %s
summary: a test's driver
version: 1.0.0
contract: 2
command: [./%s]
network: tcp
options:
  congestion: {type: string, from_node: true, help: whatever the node has}
`

// testCatalog is the built-in one with two drivers.
func testCatalog(t testing.TB) *catalog.Catalog {
	t.Helper()
	dir := t.TempDir()
	writeDrivers(t, dir)
	cat, err := catalog.Load(catalog.Config{DriversDir: dir})
	require.NoError(t, err)
	return cat
}

func writeDrivers(t testing.TB, dir string) {
	for _, name := range []string{"alpha", "beta"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name, "driver.yaml"), fmt.Appendf(nil, manifest, name, name, name), 0o644))
	}
}

const testPlan = `
name: test
radio: prc-117g-anw2c
topology: vip-lot
size: %s
treatments:
  - {name: one, protocol: alpha, options: {congestion: cubic}}
  - {name: two, protocol: beta}
iterations: 4
order: fixed
seed: 1
limits: {connect: 10s, transfer: 60s, attempts: 2}
`

// clients of one orchestrator.
type clients struct {
	agent    linktrialv1connect.AgentServiceClient
	operator linktrialv1connect.OperatorServiceClient
	http     *http.Client
	base     string
}

func connectTo(t testing.TB, addr string) *clients {
	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	h := &http.Client{Transport: &http.Transport{Protocols: &p}}
	t.Cleanup(h.CloseIdleConnections)
	base := "http://" + addr
	return &clients{linktrialv1connect.NewAgentServiceClient(h, base, connect.WithGRPC()), linktrialv1connect.NewOperatorServiceClient(h, base, connect.WithGRPC()), h, base}
}

func (c *clients) start(t testing.TB, plan string) *linktrialv1.StartPlanResponse {
	t.Helper()
	res, err := c.operator.StartPlan(t.Context(), connect.NewRequest(&linktrialv1.StartPlanRequest{File: "test.yaml", Text: []byte(plan)}))
	require.NoError(t, err)
	return res.Msg
}

// results is a whole file of results, in one message.
func (c *clients) results(ctx context.Context, q *linktrialv1.ResultsRequest) (*linktrialv1.ResultsResponse, error) {
	stream, err := c.operator.Results(ctx, connect.NewRequest(q))
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	out := &linktrialv1.ResultsResponse{}
	for stream.Receive() {
		proto.Merge(out, &linktrialv1.ResultsResponse{CampaignId: stream.Msg().CampaignId, RunIds: stream.Msg().RunIds, FileName: stream.Msg().FileName, MediaType: stream.Msg().MediaType})
		out.Content, out.Done = append(out.Content, stream.Msg().Content...), stream.Msg().Done
	}
	return out, stream.Err()
}

// watch reads a campaign's stream to its end.
func (c *clients) watch(ctx context.Context, campaign string, event func(*linktrialv1.WatchResponse)) error {
	stream, err := c.operator.Watch(ctx, connect.NewRequest(&linktrialv1.WatchRequest{CampaignId: campaign}))
	if err != nil {
		return err
	}
	defer stream.Close()
	for stream.Receive() {
		event(stream.Msg())
	}
	return stream.Err()
}

// player is an agent that simulates a run without any driver: it writes the
// journal that a real agent would, and makes the calls of one.
type player struct {
	c           *clients
	role        radio.Role
	incarnation string
	emulated    bool
	pace        time.Duration // before each trial
	hold        chan struct{} // when set, the client waits here after its second trial
	silent      chan struct{} // when set, nothing is recorded or delivered before it is closed

	mu    sync.Mutex
	parts map[string]*acted
	order []string
}

// acted is what a player has done in one run.
type acted struct {
	j         *storetest.Journal
	sheet     *runsheet.Sheet
	delivered int
	next      int // trial
	over      bool
}

func newPlayer(c *clients, role radio.Role) *player {
	return &player{c: c, role: role, incarnation: "first", emulated: true, parts: map[string]*acted{}}
}

func (p *player) register(ctx context.Context) error {
	var proof signature.LabProof
	if p.emulated {
		proof = signature.SignLab(storetest.LabKey, signature.LabStatement{Kind: signature.LabNode, Subject: string(p.role), Detail: p.incarnation, Role: string(p.role)})
	}
	_, err := p.c.agent.Register(ctx, connect.NewRequest(&linktrialv1.RegisterRequest{Protocol: agentprotocol.Number, Name: string(p.role), Role: string(p.role), Version: "test", Emulated: p.emulated,
		LabKey: proof.Key, LabSignature: proof.Signature,
		Incarnation: p.incarnation, DiskFreeBytes: 1 << 30, Drivers: []*linktrialv1.DriverState{
			{Name: "alpha", Version: "1.0.0", Implementation: "test", Choices: map[string]string{"congestion": "cubic,reno"}},
			{Name: "beta", Version: "1.0.0", Implementation: "test", Choices: map[string]string{"congestion": "cubic"}}}}))
	return err
}

// play runs until ctx ends, also while the orchestrator is down.
func (p *player) play(ctx context.Context) {
	var revision int64
	var assignments []given
	retry := func() {
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
	for ctx.Err() == nil {
		res, err := p.c.agent.Poll(ctx, connect.NewRequest(&linktrialv1.PollRequest{Protocol: agentprotocol.Number, Name: string(p.role), Incarnation: p.incarnation, Revision: revision, WaitMs: 200}))
		switch {
		case connect.CodeOf(err) == connect.CodeNotFound:
			if p.register(ctx) != nil {
				retry()
			}
			continue
		case err != nil:
			retry()
			continue
		}
		revision, assignments = res.Msg.Revision, givenBy(res.Msg)
		for _, a := range assignments {
			if err := p.act(ctx, a); err != nil {
				revision = 0 // look again
				retry()
			}
		}
	}
}

// given is a run's assignment with the sheet beside it.
type given struct {
	*linktrialv1.Assignment
	Sheet []byte
}

// givenBy are those that a poll brought.
func givenBy(r *linktrialv1.PollResponse) (out []given) {
	for _, s := range r.Assignments {
		a := new(linktrialv1.Assignment)
		if err := proto.Unmarshal(s.Assignment, a); err != nil {
			panic(err)
		}
		if a.RunId != "" {
			out = append(out, given{a, s.Sheet})
		}
	}
	return out
}

func (p *player) act(ctx context.Context, a given) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent != nil {
		select {
		case <-p.silent:
		default:
			return errHeld
		}
	}
	x := p.parts[a.RunId]
	if x == nil {
		sheet, err := runsheet.Decode(a.Sheet)
		if err != nil {
			return err
		}
		x = &acted{j: storetest.NewJournal(a.RunId, p.role), sheet: sheet}
		p.parts[a.RunId] = x
		p.order = append(p.order, a.RunId)
		x.j.Begin(sheet)
		if p.role == radio.RoleServer {
			x.j.Listen(sheet)
		}
	}
	switch {
	case x.over:
	case a.DesiredState == linktrialv1.Assignment_DESIRED_STATE_ABORT:
		x.j.Finish(journal.RunAborted, a.Reason)
		x.over = true
	case a.DesiredState == linktrialv1.Assignment_DESIRED_STATE_FINISH && p.role != radio.RoleClient:
		if p.role == radio.RoleServer {
			for i, tr := range x.sheet.Trials {
				x.j.Received(tr.Treatment, i, attempts(i))
			}
		}
		x.j.Finish(journal.RunCompleted, "")
		x.over = true
	case a.DesiredState == linktrialv1.Assignment_DESIRED_STATE_RUN && p.role == radio.RoleClient:
		if x.next == 2 && p.hold != nil {
			select {
			case <-p.hold:
			default:
				if err := p.deliver(ctx, x); err != nil {
					return err
				}
				return errHeld
			}
		}
		p.trial(ctx, x)
		if x.next < len(x.sheet.Trials) {
			if err := p.deliver(ctx, x); err != nil {
				return err
			}
			return errHeld // there is more to do; look at the desired state first
		}
		x.j.Finish(journal.RunCompleted, "")
		x.over = true
	}
	return p.deliver(ctx, x)
}

var errHeld = fmt.Errorf("more to do")

// attempts is how many attempts a trial takes: the third fails at first.
func attempts(trial int) int {
	if trial == 2 {
		return 2
	}
	return 1
}

func (p *player) trial(ctx context.Context, x *acted) {
	i := x.next
	for n := 1; n <= attempts(i); n++ {
		x.j.Start(x.sheet, i, n)
		x.j.Samples(i, n, 5)
		_ = p.deliver(ctx, x) // as far as it goes; the rest comes later
		select {
		case <-ctx.Done():
		case <-time.After(p.pace):
		}
		if n < attempts(i) {
			x.j.End(x.sheet, i, n, journal.Failed)
		} else {
			x.j.End(x.sheet, i, n, journal.Succeeded)
		}
	}
	x.j.EndTrial(i, attempts(i), journal.Succeeded)
	x.next++
}

func (p *player) deliver(ctx context.Context, x *acted) error {
	for x.delivered < len(x.j.Records) {
		req := &linktrialv1.DeliverRequest{Name: string(p.role), RunId: x.j.Run}
		for k := x.delivered; k < min(len(x.j.Records), x.delivered+5); k++ {
			req.Records = append(req.Records, &linktrialv1.JournalRecord{Seq: int64(k + 1), Json: x.j.Records[k]})
		}
		res, err := p.c.agent.Deliver(ctx, connect.NewRequest(req))
		if err != nil {
			return err
		}
		x.delivered = int(res.Msg.CommittedSeq)
	}
	return nil
}

// cast starts a player for each role; they end with the test.
func cast(t testing.TB, c *clients, change ...func(*player)) []*player {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	t.Cleanup(func() { cancel(); wg.Wait() })
	var out []*player
	for _, role := range storetest.Roles {
		p := newPlayer(c, role)
		for _, f := range change {
			f(p)
		}
		require.NoError(t, p.register(ctx))
		wg.Go(func() { p.play(ctx) })
		out = append(out, p)
	}
	require.Eventually(t, func() bool {
		res, err := c.operator.ListNodes(ctx, connect.NewRequest(&linktrialv1.ListNodesRequest{}))
		n := 0
		if err == nil {
			for _, x := range res.Msg.Nodes {
				if x.Connected {
					n++
				}
			}
		}
		return n == len(storetest.Roles)
	}, 20*time.Second, 10*time.Millisecond)
	return out
}

// held starts a campaign of such sizes whose client waits for hold after the first two trials
// of the first run, and returns when these have ended.
func (c *clients) held(t testing.TB, sizes string, change ...func(*player)) (players []*player, started *linktrialv1.StartPlanResponse, hold chan struct{}) {
	t.Helper()
	hold = make(chan struct{})
	players = cast(t, c, append(change, func(p *player) { p.hold = hold })...)
	started = c.start(t, fmt.Sprintf(testPlan, sizes))
	require.Empty(t, started.Problems)
	require.Eventually(t, func() bool {
		res, err := c.operator.GetRun(t.Context(), connect.NewRequest(&linktrialv1.GetRunRequest{RunId: started.RunIds[0]}))
		return err == nil && res.Msg.Run.TrialsEnded == 2
	}, 30*time.Second, 10*time.Millisecond)
	return players, started, hold
}
