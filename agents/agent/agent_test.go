package agent

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"linktrial/agents/trust"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/agentprotocol"
	"linktrial/internal/driverdigest"
	"linktrial/internal/namespace/namespacetest"
	"linktrial/internal/notify"
	"linktrial/internal/radio"
	"linktrial/internal/signature"
)

// drivers is a folder with the test driver, built once.
var drivers string

// childEnv makes the test binary a client's agent of its own process.
const childEnv = "AGENT_TEST_CHILD"

func TestMain(m *testing.M) {
	if spec := os.Getenv(childEnv); spec != "" {
		child(spec)
		return
	}
	dir, err := os.MkdirTemp("", "drivers")
	if err != nil {
		panic(err)
	}
	drivers = dir
	plain := filepath.Join(dir, "plain")
	if out, err := exec.Command("go", "build", "-o", filepath.Join(plain, "plain"), "../testdata/driver").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build test driver: %v\n%s", err, out)
		os.Exit(1)
	}
	manifest, err := os.ReadFile("../testdata/driver/driver.yaml")
	if err == nil {
		err = os.WriteFile(filepath.Join(plain, "driver.yaml"), manifest, 0o644)
	}
	if err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(dir)
	// The thread that starts drivers lives as long as the process.
	if err := goleak.Find(goleak.IgnoreAnyFunction("linktrial/internal/process.init.func1.1"), goleak.IgnoreAnyFunction("linktrial/internal/process.glob..func1.1")); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func child(spec string) {
	var c Config
	if err := json.Unmarshal([]byte(spec), &c); err != nil {
		panic(err)
	}
	if err := RunSheet(context.Background(), c, "run1", filepath.Join(c.StateDir, "the-sheet.json"), nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// orchestrator drives one run through its desired states, as the real one does.
type orchestrator struct {
	linktrialv1connect.UnimplementedAgentServiceHandler
	mu       sync.Mutex
	desired  map[string]linktrialv1.Assignment_DesiredState // by node
	commands []*linktrialv1.RunCommand
	sheet    []byte
	sign     func(sheet []byte) signature.Signature
	spoil    func(*linktrialv1.Assignment)       // before it is signed
	spoilt   func(*linktrialv1.SignedAssignment) // afterwards
	key      ed25519.PrivateKey                  // that signs assignments
	keys     []*linktrialv1.SigningKey
	rev      int64
	changed  notify.Notifier
	stored   map[string][]journal.Record
	nodes    map[string]*linktrialv1.RegisterRequest
	faults   map[string][]*linktrialv1.NodeFault // by node, of its last poll
	// during has when calls arrived while a trial of the client's journal ran.
	running atomic.Pointer[func() bool]
	during  []time.Time
	delay   atomic.Int64 // of every answer, ns
	server  *httptest.Server
}

func newOrchestrator(t *testing.T, sheet []byte) *orchestrator {
	t.Helper()
	o := &orchestrator{desired: map[string]linktrialv1.Assignment_DesiredState{}, sheet: sheet, sign: signed, key: signingKey, rev: 1,
		stored: map[string][]journal.Record{}, nodes: map[string]*linktrialv1.RegisterRequest{},
		faults: map[string][]*linktrialv1.NodeFault{}}
	mux := http.NewServeMux()
	mux.Handle(linktrialv1connect.NewAgentServiceHandler(o))
	o.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f := o.running.Load(); f != nil && (*f)() {
			arrived := time.Now()
			select {
			case <-r.Context().Done(): // sent before the trial, and taken back for it
			case <-time.After(time.Second):
				o.mu.Lock()
				o.during = append(o.during, arrived)
				o.mu.Unlock()
			}
		}
		if d := o.delay.Load(); d > 0 {
			time.Sleep(time.Duration(d))
		}
		mux.ServeHTTP(w, r)
	}))
	o.server.Config.Protocols = new(http.Protocols)
	o.server.Config.Protocols.SetUnencryptedHTTP2(true)
	o.server.Start()
	t.Cleanup(o.server.Close)
	return o
}

func (o *orchestrator) bump() {
	o.rev++
	o.changed.Notify()
}

func (o *orchestrator) want(w linktrialv1.Assignment_DesiredState, nodes ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, n := range nodes {
		o.desired[n] = w
	}
	o.bump()
}

func (o *orchestrator) Register(_ context.Context, r *connect.Request[linktrialv1.RegisterRequest]) (*connect.Response[linktrialv1.RegisterResponse], error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.nodes[r.Msg.Name] = r.Msg
	return connect.NewResponse(&linktrialv1.RegisterResponse{SigningKeys: o.keys, Protocol: agentprotocol.Number}), nil
}

func (o *orchestrator) Poll(ctx context.Context, r *connect.Request[linktrialv1.PollRequest]) (*connect.Response[linktrialv1.PollResponse], error) {
	until := time.After(time.Duration(r.Msg.WaitMs) * time.Millisecond)
	o.mu.Lock()
	o.faults[r.Msg.Name] = r.Msg.Faults
	o.mu.Unlock()
	for waited := false; ; {
		o.mu.Lock()
		resp := &linktrialv1.PollResponse{Revision: o.rev, SigningKeys: o.keys}
		as := assignmentOf(r.Msg)
		if w, ok := o.desired[r.Msg.Name]; ok {
			sig := o.sign(o.sheet)
			as.RunId, as.SheetHash, as.DesiredState, as.Commands, as.Role = "run1", runsheet.Hash(o.sheet), w, o.commands, r.Msg.Name
			if s, err := runsheet.Decode(o.sheet); err == nil {
				as.TelemetryAddresses = s.Radio.TelemetryAddresses(o.nodes[r.Msg.Name].Emulated, radio.Role(r.Msg.Name))
			}
			as.Signature = &linktrialv1.SheetSignature{KeyId: sig.KeyID, Signature: sig.Bytes}
			if o.spoil != nil {
				o.spoil(as)
			}
		}
		s := seal(o.key, as)
		s.Sheet = o.sheet
		if as.RunId != "" && o.spoilt != nil {
			o.spoilt(s)
		}
		resp.Assignments = []*linktrialv1.SignedAssignment{s}
		changed := o.changed.Changed()
		o.mu.Unlock()
		if waited || resp.Revision != r.Msg.Revision {
			return connect.NewResponse(resp), nil
		}
		select {
		case <-changed:
		case <-until:
			waited = true
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// assignmentOf is one that answers a poll, of no run.
func assignmentOf(r *linktrialv1.PollRequest) *linktrialv1.Assignment {
	return &linktrialv1.Assignment{Node: r.Name, Challenge: r.Challenge, Total: 1, IssuedUnixMs: time.Now().UnixMilli(), ExpiresUnixMs: time.Now().Add(time.Hour).UnixMilli()}
}

// seal signs an assignment.
func seal(key ed25519.PrivateKey, as *linktrialv1.Assignment) *linktrialv1.SignedAssignment {
	b, err := proto.Marshal(as)
	if err != nil {
		panic(err)
	}
	sig := signature.SignAssignment(key, b)
	return &linktrialv1.SignedAssignment{Assignment: b, KeyId: sig.KeyID, Signature: sig.Bytes, RefusedRunId: as.RunId}
}

func (o *orchestrator) Deliver(_ context.Context, r *connect.Request[linktrialv1.DeliverRequest]) (*connect.Response[linktrialv1.DeliverResponse], error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, rec := range r.Msg.Records {
		var j journal.Record
		if err := json.Unmarshal(rec.Json, &j); err != nil {
			return nil, connect.NewError(connect.CodeInvalidArgument, err)
		}
		if j.Seq == int64(len(o.stored[r.Msg.Name]))+1 {
			o.stored[r.Msg.Name] = append(o.stored[r.Msg.Name], j)
		}
	}
	return connect.NewResponse(&linktrialv1.DeliverResponse{CommittedSeq: int64(len(o.stored[r.Msg.Name]))}), nil
}

func (o *orchestrator) Clock(context.Context, *connect.Request[linktrialv1.ClockRequest]) (*connect.Response[linktrialv1.ClockResponse], error) {
	now := time.Now().UnixNano()
	return connect.NewResponse(&linktrialv1.ClockResponse{ReceivedUnixNs: now, SentUnixNs: now}), nil
}

// has reports whether a node's record of a type has arrived.
func (o *orchestrator) has(node string, typ journal.Type, n int) func() bool {
	return func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return count(o.stored[node], typ) >= n
	}
}

func count(rs []journal.Record, typ journal.Type) int {
	n := 0
	for _, r := range rs {
		if r.Type == typ {
			n++
		}
	}
	return n
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	within(t, 2*time.Minute, what, f) // only to notice what hangs: a busy machine may take its time
}

func within(t *testing.T, limit time.Duration, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", limit, what)
		}
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port
}

func sheetOf(t *testing.T, trials int, control runsheet.Control, paceMS float64) []byte {
	t.Helper()
	s := &runsheet.Sheet{Format: runsheet.Format, Plan: "test", Control: control, SampleInterval: 100 * time.Millisecond,
		Limits: runsheet.Limits{Connect: 300 * time.Millisecond, Transfer: 20 * time.Second, Attempts: 1}}
	if control == runsheet.ControlInBand {
		s.ControlShare = 1 // trials are shorter than anybody's
	}
	s.Treatments = []runsheet.Treatment{{Name: "a", Protocol: "plain", Digests: digests(t), Options: map[string]any{"pace": paceMS}, Port: freePort(t)}}
	for i := range trials {
		s.Trials = append(s.Trials, runsheet.Trial{Index: i, Iteration: i + 1, Treatment: "a", Flows: []runsheet.Flow{
			{Treatment: "a", From: radio.RoleClient, To: radio.RoleServer, SizeBytes: 40960, PayloadSeed: uint64(i)}}})
	}
	b, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func config(t *testing.T, role radio.Role, url string) Config {
	return Config{Name: string(role), Role: role, Orchestrator: url, StateDir: t.TempDir(), DriversDir: drivers, Device: "lo",
		Peers: map[radio.Role]string{radio.RoleClient: "127.0.0.1", radio.RoleServer: "127.0.0.1", radio.RoleRelay: "127.0.0.1"},
		Trust: trust.Config{Keys: []signature.PublicKey{signature.PublicOf(signingKey)}}, Version: "test", FloorBytes: -1,
		JudgementWait: 300 * time.Millisecond, // this orchestrator never repeats a trial by itself
		Logger:        slog.New(slog.DiscardHandler)}
}

// signingKey is the orchestrator's in these tests.
var signingKey = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))

func signed(sheet []byte) signature.Signature { return signature.SignSheet(signingKey, "run1", sheet) }

// digests are those of the test driver.
func digests(t *testing.T) []string {
	t.Helper()
	f, err := driverdigest.OfFolder(filepath.Join(drivers, "plain"))
	if err != nil {
		t.Fatal(err)
	}
	return []string{string(f.Digest)}
}

// runAgent starts an agent; stop ends it and waits.
func runAgent(t *testing.T, c Config) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, c) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("agent %s: %v", c.Name, err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func TestRunOfThreeNodes(t *testing.T) {
	if !namespacetest.Alone(t) {
		return
	}
	namespacetest.IP(t, "link set lo up")
	for _, c := range []struct {
		control  runsheet.Control
		forwards bool // whether the kernel forwards packets, as it does once a container engine has run
	}{{runsheet.ControlOutOfBand, false}, {runsheet.ControlOutOfBand, true}, {runsheet.ControlInBand, false}, {runsheet.ControlInBand, true}} {
		t.Run(fmt.Sprintf("%s/forwards=%t", c.control, c.forwards), func(t *testing.T) {
			control := c.control
			forward(t, c.forwards)
			const trials = 3
			o := newOrchestrator(t, sheetOf(t, trials, control, 20))
			stops := map[string]func(){}
			var clientState string
			for _, role := range []radio.Role{radio.RoleClient, radio.RoleRelay, radio.RoleServer} {
				c := config(t, role, o.server.URL)
				if role == radio.RoleClient {
					clientState = c.StateDir
				}
				stops[string(role)] = runAgent(t, c)
			}
			o.want(linktrialv1.Assignment_DESIRED_STATE_PREPARE, "client", "relay", "server")
			for _, n := range []string{"client", "relay", "server"} {
				eventually(t, "provenance of "+n, o.has(n, journal.TypeProvenance, 1))
				eventually(t, "clock of "+n, o.has(n, journal.TypeClockOffset, 1))
			}
			eventually(t, "listener", o.has("server", journal.TypeListenerReady, 1))
			if control == runsheet.ControlInBand {
				// The others suspend their calls once all that they have is stored, which
				// they check every 50 ms.
				if !c.forwards { // a relay that forwards has a part to the end
					eventually(t, "end of the relay's part", o.has("relay", journal.TypeRunEnded, 1))
				}
				time.Sleep(300 * time.Millisecond)
				runs := func() bool { return trialRuns(clientState) }
				o.running.Store(&runs)
			}
			o.want(linktrialv1.Assignment_DESIRED_STATE_RUN, "client", "relay", "server")
			eventually(t, "end of the client's part", o.has("client", journal.TypeRunEnded, 1))
			o.want(linktrialv1.Assignment_DESIRED_STATE_FINISH, "client", "relay", "server")
			for _, n := range []string{"relay", "server"} {
				eventually(t, "end of "+n, o.has(n, journal.TypeRunEnded, 1))
			}
			for n, want := range map[string]map[journal.Type]int{
				"client": {journal.TypeAttemptEnded: trials, journal.TypeTrialEnded: trials, journal.TypeClockOffset: 2, journal.TypeRunEnded: 1},
				"server": {journal.TypeReceived: trials, journal.TypeClockOffset: 2, journal.TypeRunEnded: 1},
				"relay":  {journal.TypeProvenance: 1, journal.TypeClockOffset: 2, journal.TypeRunEnded: 1},
			} {
				o.mu.Lock()
				for typ, k := range want {
					if got := count(o.stored[n], typ); got != k {
						t.Errorf("%s has %d records %s, expected %d", n, got, typ, k)
					}
				}
				o.mu.Unlock()
			}
			o.mu.Lock()
			if d := o.nodes["client"].Drivers; len(d) != 1 || d[0].Name != "plain" || d[0].Unsupported != "" || len(d[0].Sha256) != 64 {
				t.Errorf("drivers of the client: %v", d)
			}
			if len(o.during) > 0 {
				t.Errorf("calls arrived while a trial ran: %s", o.during)
			}
			o.mu.Unlock()
			eventually(t, "the client's note says that the run is stored", func() bool {
				n, _, err := readNotes(filepath.Join(clientState, "runs"))
				return err == nil && len(n) == 1 && !n[0].Stored.IsZero()
			})
			for _, stop := range stops {
				stop()
			}
			if _, err := os.Stat(filepath.Join(clientState, "runs", "run1", LogsFolder)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a run without logs of drivers has a folder for them: %v", err)
			}
		})
	}
}

// forward sets whether the kernel forwards packets in the test's namespace.
func forward(t *testing.T, on bool) {
	t.Helper()
	value := map[bool]string{false: "0", true: "1"}[on]
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte(value), 0); err != nil {
		t.Fatal(err)
	}
}

// A driver's log of each transfer is with the run on the node where it was written.
func TestLogsOfDrivers(t *testing.T) {
	sheet, err := runsheet.Decode(sheetOf(t, 1, runsheet.ControlOutOfBand, 0))
	if err != nil {
		t.Fatal(err)
	}
	sheet.Treatments[0].Options["fault"] = "log"
	b, err := sheet.Encode()
	if err != nil {
		t.Fatal(err)
	}
	o := newOrchestrator(t, b)
	states := map[radio.Role]string{}
	var stops []func()
	for _, role := range []radio.Role{radio.RoleClient, radio.RoleServer} {
		c := config(t, role, o.server.URL)
		states[role] = c.StateDir
		stops = append(stops, runAgent(t, c))
	}
	o.want(linktrialv1.Assignment_DESIRED_STATE_PREPARE, "client", "server")
	eventually(t, "listener", o.has("server", journal.TypeListenerReady, 1))
	o.want(linktrialv1.Assignment_DESIRED_STATE_RUN, "client", "server")
	eventually(t, "end of the client's part", o.has("client", journal.TypeRunEnded, 1))
	o.want(linktrialv1.Assignment_DESIRED_STATE_FINISH, "client", "server")
	eventually(t, "end of the server's part", o.has("server", journal.TypeRunEnded, 1))
	for _, stop := range stops {
		stop()
	}
	transfer := runsheet.TransferID("run1", 0, 1, 0)
	for role, state := range states {
		path := filepath.Join(state, "runs", "run1", LogsFolder, fmt.Sprintf("%s.%s.log", transfer, role))
		if b, err := os.ReadFile(path); err != nil || string(b) != string(role)+"\n" {
			t.Errorf("the log of the %s: %q, %v", role, b, err)
		}
	}
}

// trialRuns reports whether the client's journal file has an attempt that was
// begun and not ended.
func trialRuns(state string) bool {
	b, err := os.ReadFile(JournalPath(state, "run1"))
	if err != nil {
		return false
	}
	s := string(b)
	return strings.LastIndex(s, `"type":"attempt-started"`) > strings.LastIndex(s, `"type":"attempt-ended"`)
}

func TestSecondAgentIsRefused(t *testing.T) {
	c := config(t, radio.RoleClient, "http://127.0.0.1:1")
	stop := runAgent(t, c)
	eventually(t, "lock", func() bool { b, err := os.ReadFile(filepath.Join(c.StateDir, "lock")); return err == nil && len(b) > 0 })
	err := Run(context.Background(), c)
	if err == nil || !strings.Contains(err.Error(), "already works in") || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("a second agent: %v", err)
	}
	stop()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Run(ctx, c); err != nil {
		t.Errorf("after the first one has gone: %v", err)
	}
}

func TestBadConfig(t *testing.T) {
	err := Run(context.Background(), Config{Role: "boss"})
	if err == nil || !strings.Contains(err.Error(), "a name") || !strings.Contains(err.Error(), `"boss"`) || !strings.Contains(err.Error(), "state folder") {
		t.Errorf("error %v names not all that is wrong", err)
	}
}
