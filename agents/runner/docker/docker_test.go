package docker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"

	"linktrial/agents/runner/docker"
	"linktrial/executor"
	"linktrial/internal/enginetest"
	"linktrial/internal/payload"
	"linktrial/protocols/contract"
)

// One engine and the programs of the tests; nil where none can run, with the reason.
var (
	engine   *enginetest.Engine
	reason   string
	holder   string
	confined []byte
	plain    []byte
	plainMF  []byte
)

func TestMain(m *testing.M) {
	if order := os.Getenv(nodeEnvironment); order != "" {
		os.Exit(actAsNode(order))
	}
	os.Exit(func() int {
		if reason = enginetest.Reason(); reason != "" {
			return m.Run()
		}
		dir, err := os.MkdirTemp("", "lt-docker")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		if err := build(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		e, stop, err := enginetest.Run(context.Background())
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		engine = e
		code := m.Run()
		if err := stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return code
	}())
}

func build(dir string) error {
	for name, pkg := range map[string]string{"holder": "./testdata/holder", "confined": "./testdata/confined", "plain": "../../testdata/driver"} {
		cmd := exec.Command("go", "build", "-o", filepath.Join(dir, name), pkg)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", pkg, err, out)
		}
	}
	holder = filepath.Join(dir, "holder")
	var err1, err2, err3 error
	confined, err1 = os.ReadFile(filepath.Join(dir, "confined"))
	plain, err2 = os.ReadFile(filepath.Join(dir, "plain"))
	plainMF, err3 = os.ReadFile("../../testdata/driver/driver.yaml")
	return errors.Join(err1, err2, err3)
}

func newRunner(t *testing.T, agent string) *docker.Runner {
	t.Helper()
	if engine == nil {
		t.Skip(reason)
	}
	r, err := docker.New(t.Context(), docker.Config{Agent: agent, Host: engine.Host, Holder: []string{holder}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if left := containers(t, agent); len(left) > 0 {
			t.Errorf("containers left of %s: %v", agent, left)
		}
	})
	return r
}

// containers of an agent, as "role state".
func containers(t *testing.T, agent string) (out []string) {
	t.Helper()
	list, err := engine.Client.ContainerList(context.Background(), client.ContainerListOptions{All: true, Filters: client.Filters{}.Add("label", docker.LabelAgent+"="+agent)})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list.Items {
		out = append(out, c.Labels[docker.LabelRole]+" "+string(c.State))
	}
	slices.Sort(out)
	return out
}

func importImage(t *testing.T, ref, protocol string, files ...enginetest.File) {
	t.Helper()
	if engine == nil {
		t.Skip(reason)
	}
	if err := engine.Import(t.Context(), ref, []string{"LABEL " + docker.LabelProtocol + "=" + protocol}, files...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, err := engine.Client.ImageRemove(context.Background(), ref, client.ImageRemoveOptions{Force: true})
		if err != nil {
			t.Error(err)
		}
	})
}

func manifest(name, more string) enginetest.File {
	return enginetest.File{Path: "driver.yaml", Mode: 0o644, Data: []byte("name: " + name + "\ntitle: T\nsummary: s\nversion: \"1\"\ncontract: 2\ncommand: [./program]\nnetwork: tcp\noptions: {do: {type: string, help: h}}\n" + more)}
}

func program(b []byte) enginetest.File {
	return enginetest.File{Path: "program", Mode: 0o755, Data: b}
}

func importPlain(t *testing.T) {
	importImage(t, "plain:latest", "plain", enginetest.File{Path: "driver.yaml", Mode: 0o644, Data: plainMF}, enginetest.File{Path: "plain", Mode: 0o755, Data: plain})
}

func TestList(t *testing.T) {
	r := newRunner(t, "list")
	importPlain(t)
	importImage(t, "bare:latest", "bare", program(plain))
	importImage(t, "other:latest", "other", manifest("another", ""), program(plain))
	importImage(t, "broken:latest", "broken", enginetest.File{Path: "driver.yaml", Mode: 0o644, Data: []byte("name: broken\n")})
	importImage(t, "nothing:latest", "nothing", manifest("nothing", ""))
	importImage(t, "two:a", "two", manifest("two", ""), program(plain))
	importImage(t, "two:b", "two", manifest("two", "kernel: b\n"), program(plain))
	states, err := r.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []struct{ name, why string }{
		{"bare", "/driver.yaml"}, {"broken", "title"}, {"nothing", "exec /program failed"}, {"other", `"another"`}, {"plain", ""}, {"two", "two:a, two:b"},
	}
	if len(states) != len(want) {
		t.Fatalf("%d drivers, expected %d: %+v", len(states), len(want), states)
	}
	for i, w := range want {
		s := states[i]
		if s.Driver.Name != w.name || s.Runs() != (w.why == "") || !strings.Contains(s.Driver.Unsupported, w.why) {
			t.Errorf("driver %+v, expected %s with %q", s.Driver, w.name, w.why)
		}
		if s.Runs() {
			if d, err := r.Digest(t.Context(), w.name); err != nil || s.Driver.Digest != string(d) || !strings.HasPrefix(string(d), "image:sha256:") || s.Driver.Implementation != "test over tcp" {
				t.Errorf("driver %+v, digest %s, %v", s.Driver, d, err)
			}
		}
	}
	if _, err := r.Start(t.Context(), "absent", &contract.Parameters{}, nil); !errors.Is(err, executor.ErrNoDriver) {
		t.Errorf("a driver that no image carries: %v", err)
	}
}

// What is read of a process's output, up to its end.
func events(t *testing.T, p executor.Process, each func(*contract.Event)) {
	t.Helper()
	defer p.Output().Close()
	for o := contract.NewOutput(p.Output()); ; {
		e, _, _, err := o.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Error(err)
			}
			return
		}
		each(e)
	}
}

// given is the payload of a client with these parameters.
func given(p *contract.Parameters) io.Reader {
	return payload.NewSource(payload.NewKey(nil, 1), p.Transfer.SizeBytes)
}

func await(t *testing.T, p executor.Process) executor.Exit {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(time.Minute):
		t.Fatal("the driver does not end")
	}
	return p.Exit()
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func parameters(role contract.Role, port int) *contract.Parameters {
	p := &contract.Parameters{Contract: contract.Version, Role: role, Options: map[string]any{}, SampleIntervalMS: 100,
		Limits: contract.Limits{ConnectMS: 10000, TransferMS: 30000}}
	switch role {
	case contract.RoleServer:
		p.Local = contract.Endpoint{Address: "127.0.0.1", Port: port}
	case contract.RoleClient:
		p.Local.Address = "127.0.0.1"
		p.Remote = contract.Endpoint{Address: "127.0.0.1", Port: port}
		p.Transfer = contract.Transfer{ID: strings.Repeat("0a", 16), SizeBytes: 64 << 10, Seed: 7}
	}
	return p
}

// A folder of the node is none of the container's: a driver hears of none.
func TestNoFolderForLogs(t *testing.T) {
	r := newRunner(t, "logs")
	importPlain(t)
	q := parameters(contract.RoleClient, freePort(t))
	q.LogFolder, q.Options["fault"] = t.TempDir(), "log"
	p, err := r.Start(t.Context(), "plain", q, nil)
	if err != nil {
		t.Fatal(err)
	}
	var code contract.Code
	events(t, p, func(e *contract.Event) { code = e.Code })
	if exit := await(t, p); exit.Code != contract.ExitUnsupported || code != contract.CodeUnsupported || q.LogFolder == "" {
		t.Errorf("exit %+v with code %s, and the caller's folder is %q", exit, code, q.LogFolder)
	}
}

// The engine is in another network namespace than this process: the transfer,
// and this process's own connection, reach the server only in this one's.
func TestTransferInTheAgentsNetwork(t *testing.T) {
	r := newRunner(t, "transfer")
	importPlain(t)
	port := freePort(t)
	server, err := r.Start(t.Context(), "plain", parameters(contract.RoleServer, port), nil)
	if err != nil {
		t.Fatal(err)
	}
	ready := make(chan struct{})
	served := make(chan int, 1)
	go func() {
		n := 0
		events(t, server, func(e *contract.Event) {
			switch e.Event {
			case contract.KindReady:
				close(ready)
			case contract.KindResult:
				n++
			}
		})
		served <- n
	}()
	select {
	case <-ready:
	case <-time.After(time.Minute):
		t.Fatal("the server is not ready")
	}
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatalf("the server is not in this network: %v", err)
	}
	c.Close()
	for _, prepared := range []bool{false, true} {
		q := parameters(contract.RoleClient, port)
		release := func() {}
		if prepared {
			release = r.Prepare(t.Context(), "plain", q.Transfer.ID)
			if have := containers(t, "transfer"); !slices.Equal(have, []string{"client running", "network running", "server running"}) {
				t.Errorf("containers %q", have)
			}
		}
		p, err := r.Start(t.Context(), "plain", q, given(q))
		if err != nil {
			t.Fatal(err)
		}
		release()
		var result *contract.Result
		events(t, p, func(e *contract.Event) {
			if e.Event == contract.KindResult {
				result = e.Result
			}
		})
		if exit := await(t, p); exit != (executor.Exit{}) || result == nil || result.SizeBytes != 64<<10 {
			t.Errorf("prepared %t: exit %+v, result %+v, log %s", prepared, exit, result, p.Log())
		}
	}
	if have := containers(t, "transfer"); !slices.Equal(have, []string{"network running", "server running"}) {
		t.Errorf("after the clients: %q", have)
	}
	server.Terminate()
	if exit := await(t, server); exit != (executor.Exit{}) {
		t.Errorf("server's exit %+v", exit)
	}
	if n := <-served; n != 2 {
		t.Errorf("the server tells of %d transfers, expected 2", n)
	}
}

// A driver has what its manifest asks for, and nothing else.
func TestConfinement(t *testing.T) {
	r := newRunner(t, "confined")
	importImage(t, "confined:latest", "confined", manifest("confined", ""), program(confined))
	importImage(t, "admin:latest", "admin", manifest("admin", "capabilities: [CAP_NET_ADMIN]\nresources: {memory: 48 MiB, cpus: 0.5, processes: 17}\n"), program(confined))
	importImage(t, "bpf:latest", "bpf", manifest("bpf", "capabilities: [CAP_NET_ADMIN, CAP_BPF, CAP_PERFMON]\n"), program(confined))
	for name, w := range map[string]struct{ capabilities, memory, cpu, processes string }{
		"confined": {"0000000000000000", "536870912", fmt.Sprint(min(2, runtime.NumCPU()) * 100000), "64"},
		"admin":    {"0000000000001000", "50331648", "50000", "17"},
		"bpf":      {"000000c000001000", "536870912", fmt.Sprint(min(2, runtime.NumCPU()) * 100000), "64"},
	} {
		p, err := r.Start(t.Context(), name, parameters(contract.RoleServer, 1), nil)
		if err != nil {
			t.Fatal(err)
		}
		events(t, p, func(*contract.Event) {})
		await(t, p)
		for _, want := range []string{"CapEff: " + w.capabilities, "CapPrm: " + w.capabilities, "CapBnd: " + w.capabilities, "CapAmb: 0000000000000000", "NoNewPrivs: 1", "write: open /mark: read-only file system",
			"limit memory: " + w.memory + "\n", "limit cpu: " + w.cpu + " 100000\n", "limit processes: " + w.processes + "\n"} {
			if !strings.Contains(p.Log(), want) {
				t.Errorf("%s: no %q in\n%s", name, want, p.Log())
			}
		}
		if err := interfacesAre(p.Log()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// interfacesAre holds what a driver saw against this process's own.
func interfacesAre(log string) error {
	own, err := net.Interfaces()
	if err != nil {
		return err
	}
	for _, i := range own {
		if !strings.Contains(log, "interface: "+i.Name+"\n") {
			return fmt.Errorf("no interface %s in\n%s", i.Name, log)
		}
	}
	return nil
}

func TestExits(t *testing.T) {
	r := newRunner(t, "ends")
	importPlain(t)
	importImage(t, "confined:latest", "confined", manifest("confined", "resources: {memory: 32 MiB}\n"), program(confined))
	for _, c := range []struct {
		name, protocol, option, value string
		then                          func(executor.Process)
		exit                          executor.Exit
		log                           string
	}{
		{"exits with a code", "plain", "fault", "exit", nil, executor.Exit{Code: 3}, "driver starts as client"},
		{"killed", "plain", "fault", "hang", executor.Process.Kill, executor.Exit{Code: -1, Signal: "killed"}, ""},
		{"told to stop and without a care for it", "confined", "do", "sleep", executor.Process.Terminate, executor.Exit{Code: 2}, ""},
		{"more memory than it may have", "confined", "do", "eat", nil, executor.Exit{Code: -1, Signal: "killed", OverMemory: true}, "more than its 33554432 bytes of memory"},
		{"floods its log", "plain", "fault", "log-flood", nil, executor.Exit{Code: -1, Signal: "killed", Flooded: true}, "log log"},
		{"writes for ever, and nobody reads", "plain", "fault", "flood", func(p executor.Process) { p.Output().Close(); p.Kill() }, executor.Exit{Code: -1, Signal: "killed"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := parameters(contract.RoleClient, 1)
			q.Options[c.option] = c.value
			p, err := r.Start(t.Context(), c.protocol, q, nil)
			if err != nil {
				t.Fatal(err)
			}
			first := make([]byte, 1)
			if c.value == "flood" || c.value == "sleep" {
				if _, err := io.ReadFull(p.Output(), first); err != nil {
					t.Fatal(err)
				}
			}
			if c.then != nil {
				c.then(p)
			}
			exit := await(t, p)
			p.Output().Close()
			if c.value == "sleep" && exit.Signal == "terminated" {
				exit = c.exit // by the signal itself, or by the runtime's own handler
			}
			if exit != c.exit || !strings.Contains(p.Log(), c.log) {
				t.Errorf("exit %+v, expected %+v; log ends with %q", exit, c.exit, p.Log()[max(0, len(p.Log())-200):])
			}
			p.Kill() // does nothing
		})
	}
	if left := containers(t, "ends"); !slices.Equal(left, []string{"network running"}) {
		t.Errorf("containers left: %v", left)
	}
}

// Nothing that a driver starts outlives its container, however it ends: the
// processes of a PID namespace are killed with its first one, before the end of
// that one is reported (pid_namespaces(7)). A container's breaches therefore never
// have processes that were left behind.
func TestNothingIsLeftBehind(t *testing.T) {
	r := newRunner(t, "leaves")
	importImage(t, "confined:latest", "confined", manifest("confined", ""), program(confined))
	for name, c := range map[string]struct {
		end  func(executor.Process)
		exit executor.Exit
	}{
		"ends by itself": {executor.Process.Terminate, executor.Exit{}},
		"killed":         {executor.Process.Kill, executor.Exit{Code: -1, Signal: "killed"}},
	} {
		t.Run(name, func(t *testing.T) {
			mark := fmt.Sprintf("%s-%d", strings.ReplaceAll(name, " ", "-"), os.Getpid())
			q := parameters(contract.RoleServer, 1)
			q.Options["do"] = "leave " + mark
			p, err := r.Start(t.Context(), "confined", q, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Output().Close()
			if _, err := io.ReadFull(p.Output(), make([]byte, 1)); err != nil { // ready
				t.Fatalf("%v: %s", err, p.Log())
			}
			left := processesWith(t, mark)
			if len(left) != 1 {
				t.Errorf("processes %v while the driver runs, expected the daemon", left)
			}
			c.end(p)
			if exit := await(t, p); exit != c.exit {
				t.Errorf("exit %+v, expected %+v; log %s", exit, c.exit, p.Log())
			}
			if left := processesWith(t, mark); len(left) > 0 {
				t.Errorf("processes %v still run after the container's end", left)
			}
		})
	}
}

// processesWith are the processes of this machine whose last argument is the mark.
func processesWith(t *testing.T, mark string) (pids []string) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		b, err := os.ReadFile(line)
		if err == nil && strings.HasSuffix(string(b), "\x00"+mark+"\x00") {
			pids = append(pids, filepath.Base(filepath.Dir(line)))
		}
	}
	return pids
}

// What an agent left that was killed, its next start removes, and no other's.
func TestSweep(t *testing.T) {
	importImage(t, "confined:latest", "confined", manifest("confined", ""), program(confined))
	sleep := parameters(contract.RoleServer, 1)
	sleep.Options["do"] = "sleep"
	other := newRunner(t, "neighbour")
	theirs, err := other.Start(t.Context(), "confined", sleep, nil)
	if err != nil {
		t.Fatal(err)
	}
	first, err := docker.New(t.Context(), docker.Config{Agent: "mine", Host: engine.Host, Holder: []string{holder}})
	if err != nil {
		t.Fatal(err)
	}
	left, err := first.Start(t.Context(), "confined", sleep, nil)
	if err != nil {
		t.Fatal(err)
	}
	first.Prepare(t.Context(), "confined", "00112233445566778899aabbccddeeff")
	if have := containers(t, "mine"); len(have) != 3 {
		t.Errorf("containers %q, expected a server, a client and the network's", have)
	}
	again := newRunner(t, "mine")
	if err := again.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if have := containers(t, "mine"); len(have) > 0 {
		t.Errorf("containers left: %q", have)
	}
	if exit := await(t, left); exit.Signal != "killed" {
		t.Errorf("what was left ended with %+v", exit)
	}
	select {
	case <-theirs.Done():
		t.Error("another agent's driver was ended")
	default:
	}
	theirs.Kill()
	await(t, theirs)
	theirs.Output().Close()
	left.Output().Close()
	if err := first.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// A protocol is run from the image that was found, whatever its name says later,
// until the images are looked at again; and a network's container that somebody
// removed is made anew.
func TestPinned(t *testing.T) {
	r := newRunner(t, "pinned")
	importImage(t, "moving:latest", "moving", manifest("moving", ""), program(confined))
	before, err := r.Digest(t.Context(), "moving")
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Import(t.Context(), "moving:latest", []string{"LABEL " + docker.LabelProtocol + "=moving"}, manifest("moving", "kernel: another\n")); err != nil {
		t.Fatal(err)
	}
	run := func() error {
		p, err := r.Start(t.Context(), "moving", parameters(contract.RoleServer, 1), nil)
		if err != nil {
			return err
		}
		events(t, p, func(*contract.Event) {})
		if exit := await(t, p); exit.Code != 0 {
			return fmt.Errorf("%s: %s", exit, p.Log())
		}
		return nil
	}
	if err := run(); err != nil {
		t.Errorf("the pinned image: %v", err)
	}
	list, err := engine.Client.ContainerList(t.Context(), client.ContainerListOptions{Filters: client.Filters{}.Add("label", docker.LabelAgent+"=pinned")})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("%d containers, %v", len(list.Items), err)
	}
	if _, err := engine.Client.ContainerRemove(t.Context(), list.Items[0].ID, client.ContainerRemoveOptions{Force: true}); err != nil {
		t.Fatal(err)
	}
	if err := run(); err != nil {
		t.Errorf("after the network's container has gone: %v", err)
	}
	if _, err := r.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after, err := r.Digest(t.Context(), "moving"); err != nil || after == before {
		t.Errorf("digest %s, %v: the images were looked at again", after, err)
	}
	if err := run(); err == nil {
		t.Error("an image without its program runs")
	}
}

func TestNoEngine(t *testing.T) {
	_, err := docker.New(t.Context(), docker.Config{Host: "unix://" + filepath.Join(t.TempDir(), "none.sock")})
	if err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("no engine: %v", err)
	}
}

// A driver that is stopped in its container, and one whose container is paused, are known
// to have been stopped, like a process of the agent's; both can be ended.
func TestStops(t *testing.T) {
	r := newRunner(t, "stops")
	importPlain(t)
	for _, c := range []struct {
		name     string
		stop, on func(t *testing.T, id string)
	}{
		{"paused", func(t *testing.T, id string) {
			_, err := engine.Client.ContainerPause(t.Context(), id, client.ContainerPauseOptions{})
			require.NoError(t, err)
		}, func(t *testing.T, id string) {
			_, err := engine.Client.ContainerUnpause(t.Context(), id, client.ContainerUnpauseOptions{})
			require.NoError(t, err)
		}},
		{"stopped", func(t *testing.T, id string) { signalDriver(t, id, syscall.SIGSTOP) }, func(t *testing.T, id string) { signalDriver(t, id, syscall.SIGCONT) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := parameters(contract.RoleClient, 1)
			q.Options["fault"] = "hang"
			p, err := r.Start(t.Context(), "plain", q, nil)
			require.NoError(t, err)
			defer p.Output().Close()
			defer p.Kill() // where the test fails
			list, err := engine.Client.ContainerList(t.Context(), client.ContainerListOptions{Filters: client.Filters{}.Add("label", docker.LabelAgent+"=stops").Add("label", docker.LabelRole+"=client")})
			require.NoError(t, err)
			require.Len(t, list.Items, 1)
			id := list.Items[0].ID
			// An engine that hears late from its runtime tells a pause that is over a second
			// time, and its end.
			is := func(count int, stopped bool) {
				t.Helper()
				require.Eventually(t, func() bool {
					n, now, _ := p.Stops().State()
					return (n == count || c.name == "paused" && n > count) && now == stopped
				}, 30*time.Second, 10*time.Millisecond, "%d times stopped, now %t", count, stopped)
			}
			is(0, false)
			c.stop(t, id)
			is(1, true)
			c.on(t, id)
			is(1, false)
			c.stop(t, id)
			is(2, true)
			p.Kill()
			require.Equal(t, executor.Exit{Code: -1, Signal: "killed"}, await(t, p))
		})
	}
}

// signalDriver signals the process that a container's first one has started.
func signalDriver(t *testing.T, id string, s syscall.Signal) {
	t.Helper()
	c, err := engine.Client.ContainerInspect(t.Context(), id, client.ContainerInspectOptions{})
	require.NoError(t, err)
	first := c.Container.State.Pid
	var child int
	require.Eventually(t, func() bool {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", first, first))
		if err == nil {
			_, err = fmt.Sscan(string(b), &child)
		}
		return err == nil
	}, 10*time.Second, 10*time.Millisecond)
	require.NoError(t, syscall.Kill(child, s))
}
