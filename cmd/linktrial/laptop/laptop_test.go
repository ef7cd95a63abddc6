package laptop

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/installation"
	"linktrial/internal/testkind"
	"linktrial/plans"
)

var _ = testkind.OfPackage(testkind.RealTime, "starts an orchestrator and an agent as processes")

// bench is a laptop in a folder, on which a package seems to have installed Linktrial.
type bench struct {
	*laptop
	t    *testing.T
	root string
	port int
	text *bytes.Buffer // of all commands since it was read
}

func newBench(t *testing.T) *bench {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: it starts services as root does")
	}
	bin := os.Getenv("LINKTRIAL_BIN")
	if bin == "" {
		bin = "../../../bin"
	}
	program, err := filepath.Abs(filepath.Join(bin, "linktrial"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v: run make build first", err)
	}
	// Unlike t.TempDir, the database's user can reach it.
	root, err := os.MkdirTemp("/var/tmp", "linktrial-laptop-")
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, root: root, text: &bytes.Buffer{}}
	for _, dir := range []string{"", "run/systemd/system", "var/lib/linktrial-orchestrator", "var/lib/linktrial", "usr/bin", "etc/linktrial"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	b.port = freePort(t)
	b.file("etc/passwd", "linktrial:x:0:0::/:/bin/false\nlinktrial-agent:x:0:0::/:/bin/false\nlinktrial-driver:x:0:0::/:/bin/false\n")
	b.file("usr/bin/linktrial", "")
	b.file("etc/linktrial/orchestrator.env", fmt.Sprintf("# by hand\nLINKTRIAL_LISTEN=0.0.0.0:%d\n", b.port))
	t.Setenv("LAPTOP_ROOT", root)
	t.Setenv("LAPTOP_PROGRAM", program)
	t.Setenv("LINKTRIAL_DRIVERS", filepath.Join(filepath.Dir(program), "drivers"))
	t.Setenv("XDG_CONFIG_HOME", root)
	t.Setenv(client.TokenEnv, "")
	systemctl, err := filepath.Abs("testdata/systemctl")
	if err != nil {
		t.Fatal(err)
	}
	before := client.Trusted
	t.Cleanup(func() { client.Trusted = before })
	client.Trusted = client.Trust{}
	b.laptop = own()
	b.machine, b.out = &installation.Machine{Root: root, Manager: &installation.Systemd{Program: systemctl}}, b.text
	t.Cleanup(func() {
		if err := b.machine.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			for _, name := range []string{"orchestrator", "agent"} {
				log, _ := os.ReadFile(filepath.Join(root, "units", name+".log")) // it may not have been started
				t.Logf("%s:\n%s", name, log)
			}
		}
		os.RemoveAll(root)
	})
	return b
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func (b *bench) file(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.root, name), []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// said is what was printed since it was asked last.
func (b *bench) said() string {
	defer b.text.Reset()
	return b.text.String()
}

// up starts the laptop, and fails where that fails.
func (b *bench) up(w wanted) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	if err := b.start(ctx, w, &setting.Settings{}); err != nil {
		b.t.Fatalf("start: %v\n%s", err, b.said())
	}
	return b.said()
}

func (b *bench) expect(text string, words ...string) {
	b.t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			b.t.Errorf("%q is not in what was printed:\n%s", w, text)
		}
	}
}

// A laptop is started, started again, asked, and stopped, as a person does.
func TestLaptop(t *testing.T) {
	b := newBench(t)
	enough := b.leastFree
	b.leastFree = 1 << 60 // more than any disk has
	if err := b.start(t.Context(), wanted{name: "alpha"}, &setting.Settings{}); err == nil || !strings.Contains(err.Error(), " free, expected 1073741824 GiB: make room") || b.said() != "" {
		t.Fatalf("a first start on a disk with little room: %v", err)
	}
	b.leastFree = enough
	began := time.Now()
	text := b.up(wanted{name: "alpha"})
	t.Logf("from the start to a connected node: %s", time.Since(began).Round(10*time.Millisecond))
	base := fmt.Sprintf("https://127.0.0.1:%d", b.port)
	pages, err := addresses(base, "")
	if err != nil {
		t.Fatal(err)
	}
	b.expect(text, "pages        "+base, "node         alpha, client, no radio set up", pages[0]+"/welcome#lts_", "open the page Set up (or: sudo linktrial nodes --interfaces alpha)")
	if !regexp.MustCompile(`fingerprint  [0-9a-f]{64}\n`).MatchString(text) {
		t.Errorf("no fingerprint:\n%s", text)
	}
	if !regexp.MustCompile(`sudo linktrial join [0-9]{4}-[a-z]+-[a-z]+\n`).MatchString(text) {
		t.Errorf("no code to join by:\n%s", text)
	}
	if strings.Contains(text, "already") {
		t.Errorf("it did not run before:\n%s", text)
	}
	// The node enrolled with a token that nobody can use again.
	if _, err := os.Stat(filepath.Join(b.root, "etc/linktrial/token")); !os.IsNotExist(err) {
		t.Errorf("the used token is still there: %v", err)
	}
	if env, err := os.ReadFile(filepath.Join(b.root, "etc/linktrial/orchestrator.env")); err != nil || !strings.HasPrefix(string(env), "# by hand\n") {
		t.Errorf("%s, %v", env, err)
	}
	n, err := b.calls(base).node(t.Context(), "alpha")
	if err != nil || n == nil || !n.Connected || n.Role != "client" || n.RadioAddress != "" || n.Radio != "" {
		t.Fatalf("%v, %v", n, err)
	}

	b.expect(b.up(wanted{}), "Linktrial runs on this laptop already, since ", "node         alpha, client", pages[0]+"/welcome#lts_")
	b.leastFree = 1 << 60
	b.expect(b.up(wanted{}), "pages        "+base, "sudo linktrial join ", "\nWarning: ", " free, expected 1073741824 GiB. Make room")
	b.leastFree = enough
	if told := b.told(); strings.Count(told, "start") != 2 || strings.Contains(told, "stop") {
		t.Errorf("a second start changed something: %s", told)
	}
	if err := b.status(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.expect(b.said(), "orchestrator  running, since ", "agent         running, since ", "node          alpha, client, no radio set up, of "+base,
		"pages         "+base, "joined        alpha, connected", "run           none under way", "first admin   "+pages[0]+"/welcome#lts_")
	b.planNeedsRadio(base)
	b.makeAdmin(base, text)
	b.expect(b.up(wanted{}), "Next: open the pages in a browser and log in.")

	if err := b.stop(t.Context(), false, nil); err != nil {
		t.Fatal(err)
	}
	b.expect(b.said(), "Linktrial is stopped on this laptop, and its data is kept")
	if err := b.stop(t.Context(), false, nil); err != nil {
		t.Fatal(err)
	}
	b.expect(b.said(), "Nothing of Linktrial runs on this laptop.")
	if err := b.status(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.expect(b.said(), "orchestrator  stopped", "agent         stopped", "sudo linktrial start")
	if _, err := os.Stat(filepath.Join(b.machine.OrchestratorData(), "local-token")); !os.IsNotExist(err) {
		t.Errorf("the local token outlives its orchestrator: %v", err)
	}
	// The node has its certificate, and the machine starts as what it was.
	b.expect(b.up(wanted{role: "server"}), "node         alpha, server, no radio set up")
}

// planNeedsRadio holds that a plan which needs the node says that its radio is missing, and
// that root starts plans without a login.
func (b *bench) planNeedsRadio(base string) {
	b.t.Helper()
	text, err := plans.Files.ReadFile("quickstart.yaml")
	if err != nil {
		b.t.Fatal(err)
	}
	res, err := b.calls(base).operator.StartPlan(b.t.Context(), connect.NewRequest(&linktrialv1.StartPlanRequest{File: "quickstart.yaml", Text: text}))
	if err != nil {
		b.t.Fatal(err)
	}
	const want = "no client node with a radio is connected: node alpha has no radio yet"
	if !slices.ContainsFunc(res.Msg.Problems, func(p *linktrialv1.Problem) bool { return strings.HasPrefix(p.Message, want) }) {
		b.t.Errorf("%v, expected %s", res.Msg.Problems, want)
	}
}

// makeAdmin makes the first admin as the page of the printed link does.
func (b *bench) makeAdmin(base, text string) {
	b.t.Helper()
	_, token, _ := strings.Cut(text, "/welcome#")
	token, _, _ = strings.Cut(token, "\n")
	req := connect.NewRequest(&linktrialv1.AddUserRequest{Name: "anna", Role: linktrialv1.Role_ROLE_ADMIN, Password: "several words for anna"})
	req.Header().Set("Authorization", "Bearer "+token)
	if _, err := linktrialv1connect.NewAccessServiceClient(client.HTTP(), base, connect.WithGRPC()).AddUser(b.t.Context(), req); err != nil {
		b.t.Errorf("%q: %v", token, err)
	}
}

// told is what the service manager was told that changes something.
func (b *bench) told() string {
	b.t.Helper()
	all, err := os.ReadFile(filepath.Join(b.root, "units/told"))
	if err != nil {
		b.t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(all)) {
		if !strings.HasPrefix(line, "show") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return strings.Join(out, "; ")
}

// Where the orchestrator is for this laptop alone, nobody logs in or enrols; and a radio that
// is named later is taken.
func TestLaptopOnTheLoopback(t *testing.T) {
	b := newBench(t)
	b.file("etc/linktrial/orchestrator.env", fmt.Sprintf("LINKTRIAL_LISTEN=127.0.0.1:%d\n", b.port))
	base := fmt.Sprintf("http://127.0.0.1:%d", b.port)
	text := b.up(wanted{name: "gamma"})
	b.expect(text, "pages        "+base+"\n", "node         gamma, client, no radio set up", "Next: open the pages")
	if strings.Contains(text, "welcome") || strings.Contains(text, "fingerprint") {
		t.Errorf("a login, or an authority, that there is not:\n%s", text)
	}
	b.expect(b.up(wanted{device: "lo", address: "127.0.0.1", role: "server"}), "node         gamma, server, unnamed radio at lo with 127.0.0.1")
	n, err := b.calls(base).node(t.Context(), "gamma")
	if err != nil || n == nil || n.RadioAddress != "127.0.0.1" || n.Role != "server" {
		t.Fatalf("%v, %v", n, err)
	}
	// An agent that cannot be as the flags say is as it was.
	b.agentLimit = 300 * time.Millisecond
	t.Setenv("LAPTOP_PROGRAM", "/bin/false")
	before := b.settings()
	if err := b.start(t.Context(), wanted{role: "relay"}, &setting.Settings{}); err == nil || !strings.Contains(err.Error(), "The agent") || !strings.Contains(err.Error(), "what was begun is taken back") {
		t.Error(err)
	}
	if now := b.settings(); !maps.Equal(now, before) {
		t.Errorf("%q were %q", now, before)
	}
}

// What cannot be, is refused with one sentence that leads on, and nothing is left of it.
func TestRefusals(t *testing.T) {
	b := newBench(t)
	before := b.settings()
	self, err := os.ReadFile("/proc/self/comm") // the gate names test programs otherwise
	if err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	listen := func(address string) func() {
		return func() { b.file("etc/linktrial/orchestrator.env", "LINKTRIAL_LISTEN="+address+"\n") }
	}
	for name, c := range map[string]struct {
		harm func()
		w    wanted
		want string
	}{
		"no root":              {func() { b.euid = 1000 }, wanted{}, "sudo linktrial start"},
		"no systemd":           {func() { os.RemoveAll(filepath.Join(b.root, "run/systemd")) }, wanted{}, "was not started by systemd, which would keep the services running: run 'linktrial serve --listen 0.0.0.0:7700' by hand"},
		"a port that is taken": {listen(taken.Addr().String()), wanted{}, fmt.Sprintf("is taken by %s (process %d)", strings.TrimSpace(string(self)), os.Getpid())},
		"no port":              {listen("7700"), wanted{}, "LINKTRIAL_LISTEN=7700, expected HOST:PORT"},
		"a name":               {func() {}, wanted{name: "a b"}, `--name: name "a b" of a node, expected`},
		"a role":               {func() {}, wanted{role: "captain"}, `--role "captain", expected client`},
		"an interface":         {func() {}, wanted{device: "none0", address: "10.0.0.1"}, `--radio "none0", expected an interface of this laptop: lo`},
		"an address":           {func() {}, wanted{device: "lo", address: "ten"}, `--radio-address "ten", expected an IP address`},
		"a profile":            {func() {}, wanted{profile: "none"}, `--profile "none", expected one of`},
		"a profile alone":      {func() {}, wanted{profile: "prc-117g-anw2c"}, "--profile names a radio, and none is set up"},
		"a program that ends": {func() { t.Setenv("LAPTOP_PROGRAM", "/bin/false") }, wanted{},
			"The orchestrator does not start, and what was begun is taken back: 'journalctl -u linktrial-orchestrator' says why"},
	} {
		t.Run(name, func(t *testing.T) {
			b.t, b.euid = t, 0
			b.file("etc/linktrial/orchestrator.env", before["orchestrator.env"])
			if err := os.MkdirAll(filepath.Join(b.root, "run/systemd/system"), 0o755); err != nil {
				t.Fatal(err)
			}
			c.harm()
			were := b.settings()
			err := b.start(t.Context(), c.w, &setting.Settings{})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, expected one sentence with %q", err, c.want)
			}
			if now := b.settings(); !maps.Equal(now, were) {
				t.Errorf("%q were %q", now, were)
			}
			for _, file := range []string{"orchestrator.enabled", "agent.enabled", "orchestrator.pid", "agent.pid"} {
				if _, err := os.Stat(filepath.Join(b.root, "units", file)); err == nil {
					t.Errorf("%s is left", file)
				}
			}
		})
	}
	b.t, b.euid = t, 0
	if err := (&laptop{machine: b.machine, euid: 1000}).stop(t.Context(), false, nil); err == nil || !strings.Contains(err.Error(), "sudo linktrial stop") {
		t.Error(err)
	}
}

// settings are the files of /etc/linktrial, by name.
func (b *bench) settings() map[string]string {
	b.t.Helper()
	all, err := filepath.Glob(filepath.Join(b.root, "etc/linktrial/*"))
	if err != nil {
		b.t.Fatal(err)
	}
	out := map[string]string{}
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err != nil {
			b.t.Fatal(err)
		}
		out[filepath.Base(path)] = string(text)
	}
	return out
}

// Wherever the power is lost in a start, the next one completes it.
func TestStartAfterPowerWasLost(t *testing.T) {
	b := newBench(t)
	// Lost while the agent was to enrol: its settings are there, with a token of a database
	// that did not reach the disk, and neither service runs.
	b.file("etc/linktrial/agent.env", fmt.Sprintf("LINKTRIAL_ORCHESTRATOR=https://127.0.0.1:%d\nLINKTRIAL_NODE=beta\nLINKTRIAL_ROLE=relay\nLINKTRIAL_OPTIONS=\"--verbose --token-file=/etc/linktrial/token\"\n", b.port))
	b.file("etc/linktrial/token", "half a tok")
	b.file("etc/linktrial/.new-1234", "LINKTR")
	if err := os.MkdirAll(filepath.Join(b.root, "units"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.file("units/orchestrator.enabled", "")
	b.expect(b.up(wanted{}), "node         beta, relay, no radio set up")
	if env := b.settings()["agent.env"]; !strings.HasSuffix(env, "LINKTRIAL_OPTIONS=--verbose\n") {
		t.Errorf("a person's flag is gone, or the token's stays: %s", env)
	}
	// Lost again, now with both services: what a boot starts is not there, and start does it.
	for _, name := range []string{"agent", "orchestrator"} {
		pid, err := os.ReadFile(filepath.Join(b.root, "units", name+".pid"))
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(pid)))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(-n, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	waitGone(t, b.root)
	b.expect(b.up(wanted{}), "node         beta, relay")
}

// waitGone waits until no service of the laptop runs.
func waitGone(t *testing.T, root string) {
	t.Helper()
	systemctl := &installation.Systemd{Program: "testdata/systemctl"}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		a, err := systemctl.Unit(t.Context(), installation.AgentUnit)
		if err != nil {
			t.Fatal(err)
		}
		o, err := systemctl.Unit(t.Context(), installation.OrchestratorUnit)
		if err != nil {
			t.Fatal(err)
		}
		if !a.Running() && !o.Running() {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("services of %s still run", root)
		}
	}
}

// working is an orchestrator with a run under way.
type working struct {
	linktrialv1connect.UnimplementedOperatorServiceHandler
}

func (working) ListRuns(context.Context, *connect.Request[linktrialv1.ListRunsRequest]) (*connect.Response[linktrialv1.ListRunsResponse], error) {
	return connect.NewResponse(&linktrialv1.ListRunsResponse{Runs: []*linktrialv1.Run{
		{Id: "c1-2", State: linktrialv1.RunState_RUN_STATE_RUNNING, Trials: 20, TrialsEnded: 3}, {Id: "c1-1", State: linktrialv1.RunState_RUN_STATE_COMPLETED}}}), nil
}

// A run under way is not stopped without a person's word.
func TestStopAsks(t *testing.T) {
	testkind.OfTest(t, testkind.Exact, "starts no service")
	mux := http.NewServeMux()
	mux.Handle(linktrialv1connect.NewOperatorServiceHandler(working{}))
	server := httptest.NewUnstartedServer(mux)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	defer server.Close()
	root := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", root)
	if err := os.MkdirAll(filepath.Join(root, "etc/linktrial"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "etc/linktrial/orchestrator.env"), []byte("LINKTRIAL_LISTEN="+server.Listener.Addr().String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	m := &services{}
	l := &laptop{machine: &installation.Machine{Root: root, Manager: m}, out: &out}
	before := client.Trusted
	defer func() { client.Trusted = before }()
	if err := l.stop(t.Context(), false, nil); err == nil || !strings.Contains(err.Error(), "run c1-2 is under way: wait for its end, abort it with 'linktrial run abort c1-2'") {
		t.Error(err)
	}
	for _, answer := range []string{"\n", "n\n", "", "yess\n"} {
		if err := l.stop(t.Context(), false, strings.NewReader(answer)); err == nil || err.Error() != "nothing was stopped" {
			t.Errorf("%q: %v", answer, err)
		}
	}
	if m.stopped != 0 || !strings.Contains(out.String(), "Run c1-2 is under way with 3 of 20 trials ended. Stop all the same? [y/N] ") {
		t.Errorf("%d stopped: %s", m.stopped, out.String())
	}
	if err := l.stop(t.Context(), false, strings.NewReader("Y\n")); err != nil || m.stopped != 2 {
		t.Errorf("%v, %d stopped", err, m.stopped)
	}
	if err := l.stop(t.Context(), true, nil); err != nil || m.stopped != 4 {
		t.Errorf("%v, %d stopped", err, m.stopped)
	}
}

// services are two that run, whatever they are told.
type services struct {
	installation.Manager
	stopped int
}

func (s *services) Stop(context.Context, string) error { s.stopped++; return nil }

func (s *services) Unit(context.Context, string) (installation.Unit, error) {
	return installation.Unit{Loaded: true, Active: "active"}, nil
}

func TestAddresses(t *testing.T) {
	testkind.OfTest(t, testkind.Exact, "starts nothing")
	for base, want := range map[string][]string{
		"https://10.0.0.1:7700": {"https://10.0.0.1:7700"},
		"http://127.0.0.1:7700": {"http://127.0.0.1:7700"},
	} {
		if got, err := addresses(base, ""); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v, expected %q", base, got, err, want)
		}
	}
	all, err := addresses("https://127.0.0.1:7701", "")
	if err != nil || all[len(all)-1] != "https://127.0.0.1:7701" || slices.ContainsFunc(all[:len(all)-1], func(s string) bool { return strings.Contains(s, "127.0.0.1") || strings.Contains(s, "[fe80") }) {
		t.Errorf("%q, %v", all, err)
	}
}
