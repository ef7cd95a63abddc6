package whole

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"linktrial/agents/agent"
	"linktrial/agents/trust"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/executor/runsheet"
	"linktrial/internal/driverdigest"
	"linktrial/internal/process/processtest"
	"linktrial/internal/radio"
	"linktrial/internal/signature"
	"linktrial/orchestrator/campaign"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/security/signing"
	"linktrial/orchestrator/server"
	"linktrial/orchestrator/store/storetest"
)

// program is the path of the test driver, which is built once.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "whole")
	if err != nil {
		panic(err)
	}
	program = filepath.Join(dir, "plain")
	if out, err := exec.Command("go", "build", "-o", program, "../../agents/testdata/driver").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build test driver: %v\n%s", err, out)
		os.Exit(1)
	}
	storetest.Main(m)
}

// drivers returns a folder with the test driver.
func drivers(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "plain"), 0o755))
	manifest, err := os.ReadFile("../../agents/testdata/driver/driver.yaml")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "plain", "driver.yaml"), manifest, 0o644))
	b, err := os.ReadFile(program)
	require.NoError(t, err)
	processtest.WriteExecutable(t, filepath.Join(dir, "plain", "plain"), b)
	return dir
}

const plan = `
name: test
radio: prc-117g-anw2c
topology: vip-lot
size: 4 KiB
treatments:
  - {name: one, protocol: plain}
iterations: 2
order: fixed
seed: 1
limits: {connect: 10s, transfer: 60s, attempts: 1}
`

// judgementWait is how long a run stays open after its last trial: these have no rules of
// validity by which one could be repeated.
const judgementWait = time.Second

// bench is an orchestrator with a proxy between it and its agents.
type bench struct {
	t        *testing.T
	data     string
	drivers  string // the orchestrator's
	operator linktrialv1connect.OperatorServiceClient
	trust    linktrialv1connect.TrustServiceClient
	between  *between
	url      string // of the one between
	base     string // of the orchestrator
	radio    map[radio.Role]string
}

// loopbackAddresses are one of 127.0.0.0/8 for each role, of this test alone: agents answer
// questions about the path at one port, and tests run side by side.
func loopbackAddresses() map[radio.Role]string {
	out := map[radio.Role]string{}
	n := rand.Uint32()
	for _, role := range radio.Roles {
		n++
		out[role] = netip.AddrFrom4([4]byte{127, byte(1 + n>>16%254), byte(n >> 8), byte(n)}).String()
	}
	return out
}

// between forwards every call, and can change the answers of Poll.
type between struct {
	linktrialv1connect.AgentServiceClient
	spoil atomic.Pointer[func(node string, r *linktrialv1.PollResponse)]
}

func (b *between) Poll(ctx context.Context, r *connect.Request[linktrialv1.PollRequest]) (*connect.Response[linktrialv1.PollResponse], error) {
	res, err := b.AgentServiceClient.Poll(ctx, connect.NewRequest(r.Msg))
	if err != nil {
		return nil, err
	}
	if f := b.spoil.Load(); f != nil {
		(*f)(r.Msg.Name, res.Msg)
	}
	return connect.NewResponse(res.Msg), nil
}

func (b *between) Register(ctx context.Context, r *connect.Request[linktrialv1.RegisterRequest]) (*connect.Response[linktrialv1.RegisterResponse], error) {
	return again(b.AgentServiceClient.Register, ctx, r)
}

func (b *between) Deliver(ctx context.Context, r *connect.Request[linktrialv1.DeliverRequest]) (*connect.Response[linktrialv1.DeliverResponse], error) {
	return again(b.AgentServiceClient.Deliver, ctx, r)
}

func (b *between) Clock(ctx context.Context, r *connect.Request[linktrialv1.ClockRequest]) (*connect.Response[linktrialv1.ClockResponse], error) {
	return again(b.AgentServiceClient.Clock, ctx, r)
}

func (b *between) ReportPreflight(ctx context.Context, r *connect.Request[linktrialv1.ReportPreflightRequest]) (*connect.Response[linktrialv1.ReportPreflightResponse], error) {
	return again(b.AgentServiceClient.ReportPreflight, ctx, r)
}

// again forwards a call without its headers.
func again[Q, A any](call func(context.Context, *connect.Request[Q]) (*connect.Response[A], error), ctx context.Context, r *connect.Request[Q]) (*connect.Response[A], error) {
	res, err := call(ctx, connect.NewRequest(r.Msg))
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(res.Msg), nil
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, data: t.TempDir(), drivers: drivers(t), radio: loopbackAddresses()}
	cat, err := catalog.Load(catalog.Config{DriversDir: b.drivers})
	require.NoError(t, err)
	s, err := server.Start(t.Context(), server.Config{Listen: "127.0.0.1:0", DatabaseURL: storetest.URL(t), DataDir: b.data, Catalog: cat, Version: "test",
		Waits: campaign.Waits{Abort: time.Second, Collect: 20 * time.Second}})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		require.NoError(t, s.Stop(ctx))
	})
	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	h := &http.Client{Transport: &http.Transport{Protocols: &p}}
	t.Cleanup(h.CloseIdleConnections)
	base := "http://" + s.Addr()
	b.base = base
	b.operator = linktrialv1connect.NewOperatorServiceClient(h, base, connect.WithGRPC())
	b.trust = linktrialv1connect.NewTrustServiceClient(h, base, connect.WithGRPC())
	b.between = &between{AgentServiceClient: linktrialv1connect.NewAgentServiceClient(h, base, connect.WithGRPC())}
	mux := http.NewServeMux()
	mux.Handle(linktrialv1connect.NewAgentServiceHandler(b.between))
	front := httptest.NewUnstartedServer(mux)
	front.Config.Protocols = &p
	front.Start()
	t.Cleanup(front.Close)
	b.url = front.URL
	return b
}

// agents starts one of each role with a drivers folder, and waits for them.
func (b *bench) agents(driversDir string) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 3)
	for _, role := range []radio.Role{radio.RoleClient, radio.RoleRelay, radio.RoleServer} {
		cfg := agent.Config{Name: string(role), Role: role, Orchestrator: b.url, StateDir: b.t.TempDir(), DriversDir: driversDir, Device: "lo", RadioAddress: b.radio[role], Peers: b.radio,
			Trust: trust.Config{File: filepath.Join(signing.Dir(b.data), signing.PublicFile)}, FloorBytes: -1, JudgementWait: judgementWait, Version: "test", Logger: slog.New(slog.DiscardHandler)}
		go func() { done <- agent.Run(ctx, cfg) }()
	}
	b.t.Cleanup(func() {
		cancel()
		for range 3 {
			if err := <-done; err != nil {
				b.t.Errorf("agent: %v", err)
			}
		}
	})
	require.Eventually(b.t, func() bool {
		res, err := b.operator.ListNodes(b.t.Context(), connect.NewRequest(&linktrialv1.ListNodesRequest{}))
		n := 0
		if err == nil {
			for _, x := range res.Msg.Nodes {
				if x.Connected {
					n++
				}
			}
		}
		return n == 3
	}, time.Minute, 20*time.Millisecond, "three nodes connect")
}

func (b *bench) start() *linktrialv1.StartPlanResponse {
	b.t.Helper()
	res, err := b.operator.StartPlan(b.t.Context(), connect.NewRequest(&linktrialv1.StartPlanRequest{File: "test.yaml", Text: []byte(plan)}))
	require.NoError(b.t, err)
	return res.Msg
}

// end waits for the end of a plan's only run.
func (b *bench) end(res *linktrialv1.StartPlanResponse) *linktrialv1.Run {
	b.t.Helper()
	require.Empty(b.t, res.Problems)
	var run *linktrialv1.Run
	require.Eventually(b.t, func() bool {
		list, err := b.operator.ListRuns(b.t.Context(), connect.NewRequest(&linktrialv1.ListRunsRequest{CampaignId: res.CampaignId}))
		if err != nil || len(list.Msg.Runs) != 1 {
			return false
		}
		run = list.Msg.Runs[0]
		switch run.State {
		case linktrialv1.RunState_RUN_STATE_COMPLETED, linktrialv1.RunState_RUN_STATE_STOPPED, linktrialv1.RunState_RUN_STATE_ABORTED:
			return true
		}
		return false
	}, time.Minute, 20*time.Millisecond, "the run ends")
	return run
}

func (b *bench) attempts(run string) int {
	b.t.Helper()
	res, err := b.operator.GetRun(b.t.Context(), connect.NewRequest(&linktrialv1.GetRunRequest{RunId: run}))
	require.NoError(b.t, err)
	n := 0
	for _, t := range res.Msg.Trials {
		n += len(t.Attempts)
	}
	return n
}

// Agents do what the orchestrator has signed for them. Whatever is changed, unsigned,
// signed with another key, recorded or another node's ends the run with one sentence,
// before anything of it is used.
func TestAssignmentsAreVerified(t *testing.T) {
	stranger := ed25519.NewKeyFromSeed([]byte("a stranger between both of them!"))
	each := func(f func(*linktrialv1.SignedAssignment)) func(string, *linktrialv1.PollResponse) {
		return func(_ string, r *linktrialv1.PollResponse) {
			for _, a := range r.Assignments {
				if a.RefusedRunId != "" {
					f(a)
				}
			}
		}
	}
	altered := func(f func(*linktrialv1.Assignment)) func(string, *linktrialv1.PollResponse) {
		return each(func(s *linktrialv1.SignedAssignment) {
			a := new(linktrialv1.Assignment)
			require.NoError(t, proto.Unmarshal(s.Assignment, a))
			f(a)
			var err error
			s.Assignment, err = proto.Marshal(a)
			require.NoError(t, err)
		})
	}
	b := newBench(t)
	b.agents(b.drivers)
	// instead gives nodes what was recorded in place of what is for them.
	instead := func(of func(node string) string) func(string, *linktrialv1.PollResponse) {
		var mu sync.Mutex
		recorded := map[string]*linktrialv1.SignedAssignment{}
		return func(node string, r *linktrialv1.PollResponse) {
			mu.Lock()
			defer mu.Unlock()
			for i, a := range r.Assignments {
				if a.RefusedRunId == "" {
					continue
				}
				old := recorded[of(node)]
				if recorded[node] == nil {
					recorded[node] = a
				}
				if old == nil {
					r.Assignments = nil
					return
				}
				r.Assignments[i] = old
			}
		}
	}
	const changed = "it was changed on its way"
	for _, c := range []struct {
		name  string
		spoil func(string, *linktrialv1.PollResponse)
		want  string
	}{
		{"as it was signed", nil, ""},
		{"another sheet", each(func(a *linktrialv1.SignedAssignment) {
			a.Sheet = []byte(strings.Replace(string(a.Sheet), `"attempts":1`, `"attempts":3`, 1))
		}), changed},
		{"another sheet, and its hash", func(node string, r *linktrialv1.PollResponse) {
			each(func(a *linktrialv1.SignedAssignment) {
				a.Sheet = []byte(strings.Replace(string(a.Sheet), `"attempts":1`, `"attempts":3`, 1))
			})(node, r)
			altered(func(a *linktrialv1.Assignment) { a.SheetHash = runsheet.Hash(r.Assignments[0].Sheet) })(node, r)
		}, changed},
		{"other addresses", altered(func(a *linktrialv1.Assignment) { a.RadioAddresses = map[string]string{"server": "192.0.2.66"} }), changed},
		{"other telemetry", altered(func(a *linktrialv1.Assignment) { a.TelemetryAddresses = []string{"192.0.2.66:161"} }), changed},
		{"unsigned", each(func(a *linktrialv1.SignedAssignment) { a.KeyId, a.Signature = "", nil }), "the assignment is not signed"},
		{"signed by a stranger", func(node string, r *linktrialv1.PollResponse) {
			key := signature.PublicOf(stranger)
			r.SigningKeys = []*linktrialv1.SigningKey{{PublicKey: key[:]}}
			each(func(a *linktrialv1.SignedAssignment) {
				s := signature.SignAssignment(stranger, a.Assignment)
				a.KeyId, a.Signature = s.KeyID, s.Bytes
			})(node, r)
		}, "which this node does not trust"},
		{"recorded, of an earlier answer", instead(func(node string) string { return node }), "it was recorded and sent again"},
		{"recorded, of another node", instead(func(node string) string {
			return map[string]string{"client": "server", "server": "client", "relay": "client"}[node]
		}), "the assignment is for node"},
		{"as it was signed, after a rotation", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if strings.HasSuffix(c.name, "rotation") {
				_, err := b.trust.RotateSigningKey(t.Context(), connect.NewRequest(&linktrialv1.RotateSigningKeyRequest{}))
				require.NoError(t, err)
			}
			b.between.spoil.Store(nil)
			if c.spoil != nil {
				b.between.spoil.Store(&c.spoil)
			}
			run := b.end(b.start())
			if c.want == "" {
				require.Equal(t, linktrialv1.RunState_RUN_STATE_COMPLETED, run.State, run.Message)
				require.Equal(t, 2, b.attempts(run.Id))
				return
			}
			require.Equal(t, linktrialv1.RunState_RUN_STATE_STOPPED, run.State, run.Message)
			require.Contains(t, run.Message, "refused: ")
			require.Contains(t, run.Message, c.want)
			require.NotContains(t, run.Message, "\n")
			require.Zero(t, b.attempts(run.Id))
		})
	}
}

// The start of a plan names a driver that is not the orchestrator's; the driver runs
// when it is approved, and not after the approval is withdrawn. The agent notices a
// driver that changes after its node has registered.
func TestDriversAreVerified(t *testing.T) {
	b := newBench(t)
	other := drivers(t)
	require.NoError(t, os.WriteFile(filepath.Join(other, "plain", "README"), []byte("another build\n"), 0o644))
	f, err := driverdigest.OfFolder(filepath.Join(other, "plain"))
	require.NoError(t, err)
	b.agents(other)

	refused := func() {
		t.Helper()
		res := b.start()
		require.NotEmpty(t, res.Problems)
		require.Contains(t, res.Problems[0].Message, "linktrial protocol approve plain@"+string(f.Digest))
		require.Empty(t, res.CampaignId)
	}
	refused()
	approve := &linktrialv1.ApproveDriverRequest{Protocol: "plain", Digest: string(f.Digest), Reason: "a test", By: "tester"}
	_, err = b.trust.ApproveDriver(t.Context(), connect.NewRequest(approve))
	require.NoError(t, err)
	run := b.end(b.start())
	require.Equal(t, linktrialv1.RunState_RUN_STATE_COMPLETED, run.State, run.Message)

	list, err := b.trust.ListApprovals(t.Context(), connect.NewRequest(&linktrialv1.ListApprovalsRequest{}))
	require.NoError(t, err)
	require.Len(t, list.Msg.Accepted, 2)
	require.True(t, list.Msg.Accepted[0].Own)
	require.Equal(t, []string{approve.Digest, "a test", "tester"}, []string{list.Msg.Accepted[1].Digest, list.Msg.Accepted[1].Reason, list.Msg.Accepted[1].By})
	require.Len(t, list.Msg.OnNodes, 3)
	require.True(t, list.Msg.OnNodes[0].Accepted)

	_, err = b.trust.UnapproveDriver(t.Context(), connect.NewRequest(&linktrialv1.UnapproveDriverRequest{Protocol: "plain", Digest: approve.Digest}))
	require.NoError(t, err)
	refused()

	// Approved again, and then changed while the agents run.
	_, err = b.trust.ApproveDriver(t.Context(), connect.NewRequest(approve))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(other, "plain", "README"), []byte("a third build\n"), 0o644))
	third, err := driverdigest.OfFolder(filepath.Join(other, "plain"))
	require.NoError(t, err)
	run = b.end(b.start())
	require.Equal(t, linktrialv1.RunState_RUN_STATE_STOPPED, run.State, run.Message)
	for _, want := range []string{"driver plain on this node is " + string(third.Digest), "names sha256:", " and " + approve.Digest, "approve plain@" + string(third.Digest)} {
		require.Contains(t, run.Message, want)
	}
	require.Zero(t, b.attempts(run.Id))
}

// The error of an impossible approval names the possible ones.
func TestApprovalsAreRefused(t *testing.T) {
	b := newBench(t)
	digest := "sha256:" + strings.Repeat("0a", 32)
	for _, c := range []struct{ protocol, digest, reason, want string }{
		{"plan", digest, "", "there are plain"},
		{"plain", "0a0a", "", "64 lower-case hexadecimal digits"},
		{"plain", digest, "two\nlines", "one line"},
	} {
		_, err := b.trust.ApproveDriver(t.Context(), connect.NewRequest(&linktrialv1.ApproveDriverRequest{Protocol: c.protocol, Digest: c.digest, Reason: c.reason}))
		require.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err))
		require.ErrorContains(t, err, c.want)
	}
	_, err := b.trust.UnapproveDriver(t.Context(), connect.NewRequest(&linktrialv1.UnapproveDriverRequest{Protocol: "plain", Digest: digest}))
	require.ErrorContains(t, err, "is not approved")
	own, err := driverdigest.OfFolder(filepath.Join(b.drivers, "plain"))
	require.NoError(t, err)
	_, err = b.trust.UnapproveDriver(t.Context(), connect.NewRequest(&linktrialv1.UnapproveDriverRequest{Protocol: "plain", Digest: string(own.Digest)}))
	require.ErrorContains(t, err, "the orchestrator's own")
	_, err = b.trust.GetSignedSheet(t.Context(), connect.NewRequest(&linktrialv1.GetSignedSheetRequest{RunId: "none"}))
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(err))
}
