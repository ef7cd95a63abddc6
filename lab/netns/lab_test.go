package netns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"linktrial/emulator/tun"
	"linktrial/internal/process"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol/client"
)

// TestMain doubles as the emulator and as the holder that is killed.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) == 2 && os.Args[1] == "emulate":
		var cfg tun.Config
		if err := json.NewDecoder(os.Stdin).Decode(&cfg); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		cfg.Ready = func() { fmt.Println("ready") }
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		if err := tun.Run(ctx, cfg); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case len(os.Args) == 3 && os.Args[1] == "hold":
		var cfg Config
		if err := json.Unmarshal([]byte(os.Args[2]), &cfg); err != nil {
			os.Exit(1)
		}
		cfg.Log = slog.New(slog.DiscardHandler)
		if _, err := Up(context.Background(), cfg); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println("up")
		select {}
	default:
		os.Exit(m.Run())
	}
}

// fastNetwork is three radios on a channel that is in nobody's way.
func fastNetwork() *radio.Network {
	n := &radio.Network{MTUBytes: 1500, Medium: radio.MediumShared, Queue: radio.Queue{Packets: 100}}
	for _, r := range []radio.Role{radio.RoleClient, radio.RoleRelay, radio.RoleServer} {
		n.Nodes = append(n.Nodes, radio.Node{Role: r, Address: radio.Addresses[r]})
	}
	perfect := radio.Channel{Model: radio.ChannelPerfect}
	n.Links = []radio.Link{
		{A: radio.RoleClient, B: radio.RoleRelay, RateBitsPerSecond: 20e6, Delay: time.Millisecond, Channel: perfect},
		{A: radio.RoleRelay, B: radio.RoleServer, RateBitsPerSecond: 20e6, Delay: time.Millisecond, Channel: perfect},
	}
	return n
}

func testConfig(t *testing.T, name, forward string) Config {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: the lab makes network namespaces")
	}
	dir := t.TempDir()
	t.Cleanup(func() {
		if _, _, err := Sweep(context.Background(), dir); err != nil {
			t.Error(err)
		}
		if left, _ := filepath.Glob(NamespacePath(prefix + name + "-*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
	return Config{Name: name, StateDir: dir, Network: fastNetwork(), Forward: forward,
		Emulator: []string{os.Args[0], "emulate"}, Log: slog.New(slog.DiscardHandler)}
}

func labName() string { return fmt.Sprintf("t%d", os.Getpid()) }

func inside(t *testing.T, l *State, role radio.Role, args ...string) string {
	t.Helper()
	out, err := exec.Command("ip", append([]string{"netns", "exec", prefix + l.Name + "-" + string(role)}, args...)...).CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v: %v\n%s", role, args, err, out)
	}
	return string(out)
}

func TestLabCarriesPacketsAndControl(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "orchestrator") }))
	defer srv.Close()
	cfg := testConfig(t, labName(), strings.TrimPrefix(srv.URL, "http://"))
	ctx := context.Background()
	l, err := Up(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Down(ctx); err != nil {
			t.Error(err)
		}
		if _, err := Load(cfg.StateDir, cfg.Name); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the lab's state is still there: %v", err)
		}
	}()

	// Over the radio, through the relay.
	p, err := exec.LookPath("ping")
	if err == nil {
		inside(t, &l.State, radio.RoleClient, p, "-c", "2", "-i", "0.1", "-W", "5", radio.Addresses[radio.RoleServer])
	}
	c, err := client.Dial(l.State.ControlSocket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	st, err := c.Status(ctx)
	if err != nil || st.PID != l.State.Emulator || len(st.Network.Nodes) != 3 {
		t.Errorf("status %+v, %v", st, err)
	}

	// The orchestrator, over the control network, from every node.
	get := func(role radio.Role) (string, error) {
		var body string
		err := process.InNamespace(NamespacePath(prefix+cfg.Name+"-"+string(role)), func() error {
			conn, err := net.DialTimeout("tcp", strings.TrimPrefix(l.State.Orchestrator, "http://"), 2*time.Second)
			if err != nil {
				return err
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(5 * time.Second))
			fmt.Fprintf(conn, "GET / HTTP/1.0\r\n\r\n")
			b, err := io.ReadAll(conn)
			body = string(b)
			return err
		})
		return body, err
	}
	for _, n := range l.State.Nodes {
		if body, err := get(n.Role); err != nil || !strings.HasSuffix(body, "orchestrator") {
			t.Errorf("%s: %q, %v", n.Role, body, err)
		}
	}
	if err := l.SetControlLink(radio.RoleClient, false); err != nil {
		t.Fatal(err)
	}
	if _, err := get(radio.RoleClient); err == nil {
		t.Error("the orchestrator answers over a cut control link")
	}
	if _, err := get(radio.RoleServer); err != nil {
		t.Errorf("cutting the client's link cut the server's: %v", err)
	}
	if err := l.SetControlLink(radio.RoleClient, true); err != nil {
		t.Fatal(err)
	}
	// The kernel takes up to a second to see that a carrier is back, and fails a
	// neighbour's earlier resolution after three more.
	_, err = get(radio.RoleClient)
	for deadline := time.Now().Add(10 * time.Second); err != nil && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		_, err = get(radio.RoleClient)
	}
	if err != nil {
		t.Errorf("10 s after the link is back: %v", err)
	}

	if _, err := Up(ctx, cfg); !errors.Is(err, ErrRunning) {
		t.Errorf("a second lab of the same name: %v", err)
	}
}

// The emulator is killed: the lab starts it again over the same interfaces, and neither
// an earlier connection nor an earlier listener notices more than silence.
func TestEmulatorIsStartedAgain(t *testing.T) {
	cfg := testConfig(t, labName()+"e", "127.0.0.1:9")
	ctx := context.Background()
	l, err := Up(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Down(ctx)
	var listener net.Listener
	if err := process.InNamespace(NamespacePath(l.State.Nodes[2].Namespace), func() (err error) {
		listener, err = net.Listen("tcp", radio.Addresses[radio.RoleServer]+":7000")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var conn net.Conn
	dial := func() error {
		return process.InNamespace(NamespacePath(l.State.Nodes[0].Namespace), func() (err error) {
			conn, err = net.DialTimeout("tcp", radio.Addresses[radio.RoleServer]+":7000", 20*time.Second)
			return err
		})
	}
	if err := dial(); err != nil {
		t.Fatal(err)
	}
	early := conn
	defer early.Close()
	far, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	linkOf := func() string {
		return strings.Fields(inside(t, &l.State, radio.RoleClient, "ip", "-o", "link", "show", device))[0]
	}
	index, killed := linkOf(), pidOf(t, cfg)

	for range 2 {
		if err := syscall.Kill(killed, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		before := killed
		for deadline := time.Now().Add(20 * time.Second); killed == before; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the emulator was not started again")
			}
			if st, err := Load(cfg.StateDir, cfg.Name); err == nil && st.EmulatorDown == nil {
				killed = st.Emulator
			}
		}
	}
	if now := linkOf(); now != index {
		t.Errorf("the radio's interface was %s and is %s", index, now)
	}
	c, err := client.Dial(l.State.ControlSocket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if st, err := c.Status(ctx); err != nil || st.PID != killed {
		t.Errorf("status %+v, %v, expected process %d", st, err, killed)
	}
	early.SetDeadline(time.Now().Add(20 * time.Second))
	far.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := early.Write([]byte("still")); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadFull(far, make([]byte, 5)); err != nil {
		t.Errorf("an earlier connection: %v", err)
	}
	if err := dial(); err != nil {
		t.Errorf("an earlier listener: %v", err)
	} else {
		conn.Close()
	}
}

func pidOf(t *testing.T, cfg Config) int {
	t.Helper()
	st, err := Load(cfg.StateDir, cfg.Name)
	if err != nil {
		t.Fatal(err)
	}
	return st.Emulator
}

// An emulator that cannot run any more is not started for ever: nodes stay, and why is
// known.
func TestEmulatorThatAlwaysEnds(t *testing.T) {
	cfg := testConfig(t, labName()+"f", "127.0.0.1:9")
	broken := filepath.Join(t.TempDir(), "broken")
	cfg.Emulator = []string{"sh", "-c", "if [ -e " + broken + " ]; then echo no such radio >&2; exit 1; fi; exec " + os.Args[0] + " emulate"}
	ctx := context.Background()
	l, err := up(ctx, cfg, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Down(ctx)
	if err := os.WriteFile(broken, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pidOf(t, cfg), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-l.Ended():
	case <-time.After(30 * time.Second):
		t.Fatal("it is started for ever")
	}
	st, err := Load(cfg.StateDir, cfg.Name)
	if err != nil {
		t.Fatal(err)
	}
	const want = "it ended 3 times within a minute and is not started again; the last time: the emulator did not start: no such radio"
	if d := st.EmulatorDown; d == nil || !d.Final || d.Reason != want || !strings.Contains(l.Failure().Error(), want) {
		t.Errorf("%+v", d)
	}
	if _, err := os.Stat(NamespacePath(st.Nodes[0].Namespace)); err != nil {
		t.Error(err)
	}
}

func TestSweepRemovesAKilledLab(t *testing.T) {
	cfg := testConfig(t, labName()+"k", "127.0.0.1:9")
	cfg.Log = nil
	doc, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	holder := exec.Command(os.Args[0], "hold", string(doc))
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	holder.Stderr = os.Stderr
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	var word string
	if _, err := fmt.Fscanln(out, &word); err != nil || word != "up" {
		t.Fatalf("the lab did not start: %q, %v", word, err)
	}
	st, err := Load(cfg.StateDir, cfg.Name)
	if err != nil || !st.Running() {
		t.Fatalf("state %+v, %v", st, err)
	}
	// Somebody works inside a node.
	worker := exec.Command("ip", "netns", "exec", st.Nodes[0].Namespace, "sleep", "300")
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- worker.Wait() }()

	if removed, _, err := Sweep(context.Background(), cfg.StateDir); err != nil || len(removed) != 0 {
		t.Fatalf("sweep of a running lab removed %v (%v)", removed, err)
	}
	holder.Process.Kill()
	holder.Wait()
	removed, _, err := Sweep(context.Background(), cfg.StateDir)
	if err != nil || len(removed) != 1 {
		t.Fatalf("sweep removed %v (%v)", removed, err)
	}
	for _, n := range st.Nodes {
		if _, err := os.Stat(NamespacePath(n.Namespace)); err == nil {
			t.Errorf("namespace %s is still there", n.Namespace)
		}
	}
	for _, c := range st.Children {
		if c.Alive() {
			t.Errorf("process %d still runs", c.PID)
		}
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		worker.Process.Kill()
		t.Error("a process inside a node outlived the lab")
	}
}

func TestNames(t *testing.T) {
	for _, name := range []string{"", "../etc", "A", "a/b", strings.Repeat("x", 22)} {
		_, err := Up(context.Background(), Config{Name: name, StateDir: t.TempDir(), Network: fastNetwork(), Log: slog.New(slog.DiscardHandler)})
		if err == nil {
			t.Errorf("name %q is taken", name)
		}
	}
}
