package join

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"linktrial/emulator/tun"
	"linktrial/internal/namespace"
	"linktrial/internal/process"
	"linktrial/internal/radio"
)

// A node is a process of its own: this test's program, started again.
func TestMain(m *testing.M) {
	if socket := os.Getenv("LINKTRIAL_TEST_JOIN"); socket != "" {
		err := Node(context.Background(), socket, radio.Role(os.Args[1]), func() { fmt.Println("up") }, slog.New(slog.DiscardHandler))
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

const hang = 30 * time.Second

type node struct {
	cmd  *exec.Cmd
	said *bufio.Reader
}

func start(t *testing.T, socket, ns, role string) *node {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", role)
	cmd.Env = append(os.Environ(), "LINKTRIAL_TEST_JOIN="+socket)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.StartIn(cmd, namespace.Path(ns)); err != nil {
		t.Fatal(err)
	}
	n := &node{cmd: cmd, said: bufio.NewReader(out)}
	t.Cleanup(n.end)
	return n
}

func (n *node) end() {
	_ = n.cmd.Process.Kill() // it may have ended
	_ = n.cmd.Wait()
}

// line is the next one that the node says, and "" where it says nothing for long.
func (n *node) line() string {
	said := make(chan string, 1)
	go func() {
		s, _ := n.said.ReadString('\n')
		said <- strings.TrimSpace(s)
	}()
	select {
	case s := <-said:
		return s
	case <-time.After(hang):
		return ""
	}
}

func makeNamespace(t *testing.T, name string) string {
	t.Helper()
	name = fmt.Sprintf("ltj-%d-%s", os.Getpid(), name)
	t.Cleanup(func() {
		if err := namespace.Remove(name); err != nil {
			t.Error(err)
		}
	})
	if err := namespace.Make(name); err != nil {
		t.Fatal(err)
	}
	return name
}

// hasRadio reports whether radio0 is in a namespace.
func hasRadio(t *testing.T, ns string) bool {
	t.Helper()
	f, err := netns.GetFromPath(namespace.Path(ns))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, err := netlink.NewHandleAt(f)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	_, err = h.LinkByName("radio0")
	return err == nil
}

func network() *radio.Network {
	n := &radio.Network{MTUBytes: 1400, Medium: radio.MediumFullDuplex, Queue: radio.Queue{Bytes: 256 << 10}}
	n.Nodes = []radio.Node{{Role: radio.RoleClient, Address: "10.77.0.1"}, {Role: radio.RoleServer, Address: "10.77.0.3"}}
	n.Links = []radio.Link{{A: radio.RoleClient, B: radio.RoleServer, RateBitsPerSecond: 1e6, Delay: time.Millisecond, Channel: radio.Channel{Model: radio.ChannelPerfect}}}
	return n
}

func serve(t *testing.T) (socket string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("making network namespaces needs root")
	}
	socket = filepath.Join(t.TempDir(), "join.sock")
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		served <- Serve(ctx, Config{Socket: socket, Radios: tun.Config{Network: network()}, Logger: slog.New(slog.DiscardHandler)})
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-served:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(hang):
			t.Error("the emulator does not end")
		}
	})
	return socket
}

func TestNodesJoinAndLeave(t *testing.T) {
	socket := serve(t)
	a, b := makeNamespace(t, "a"), makeNamespace(t, "b")
	client := start(t, socket, a, "client")
	if hasRadio(t, a) {
		t.Error("a radio is there before every node has joined")
	}
	server := start(t, socket, b, "server")
	for _, n := range []*node{client, server} {
		if said := n.line(); said != "up" {
			t.Fatalf("a node says %q", said)
		}
	}
	if !hasRadio(t, a) || !hasRadio(t, b) {
		t.Error("a node has no radio")
	}
	server.end()
	for deadline := time.Now().Add(hang); hasRadio(t, a); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the radio stays though the other node has left")
		}
	}
	server = start(t, socket, b, "server")
	if said := server.line(); said != "up" {
		t.Fatalf("the node that came again says %q", said)
	}
	if !hasRadio(t, a) || !hasRadio(t, b) {
		t.Error("a node has no radio after the other came again")
	}
}

// Radios that cannot be made end the emulator, and nodes come to the next one.
func TestRadiosThatFail(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("making network namespaces needs root")
	}
	ns := makeNamespace(t, "f")
	socket := filepath.Join(t.TempDir(), "join.sock")
	bad := network()
	bad.Nodes = bad.Nodes[:1]
	bad.Nodes[0].Address = "nowhere"
	served := make(chan error, 1)
	run := func(n *radio.Network) {
		served <- Serve(t.Context(), Config{Socket: socket, Radios: tun.Config{Network: n}, Logger: slog.New(slog.DiscardHandler)})
	}
	go run(bad)
	first := start(t, socket, ns, "client")
	select {
	case err := <-served:
		if err == nil || !strings.Contains(err.Error(), "nowhere") {
			t.Fatalf("radios with a bad address: %v", err)
		}
	case <-time.After(hang):
		t.Fatal("radios with a bad address: the emulator does not end")
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		served <- Serve(ctx, Config{Socket: socket, Radios: tun.Config{Network: network()}, Logger: slog.New(slog.DiscardHandler)})
	}()
	other := start(t, socket, makeNamespace(t, "g"), "server")
	for _, n := range []*node{first, other} {
		if said := n.line(); said != "up" {
			t.Errorf("a node says %q", said)
		}
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// Nodes wait for an emulator that is not there yet.
func TestNodeWaitsForTheEmulator(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("making network namespaces needs root")
	}
	ns := makeNamespace(t, "w")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Node(ctx, filepath.Join(t.TempDir(), "none"), radio.RoleClient, func() { t.Error("up without an emulator") }, slog.New(slog.DiscardHandler))
	}()
	time.Sleep(10 * time.Millisecond)
	cancel()
	if err := <-ended; err != nil || hasRadio(t, ns) {
		t.Errorf("a node that was told to end: %v", err)
	}
}

func TestRefusedNodes(t *testing.T) {
	socket := serve(t)
	ns := makeNamespace(t, "r")
	if said := start(t, socket, ns, "relay").line(); !strings.Contains(said, `no node "relay"`) {
		t.Errorf("a node of another network hears %q", said)
	}
	null, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, c := range []struct {
		greeting string
		fds      []int
		want     string
	}{
		{`{"role": "client"}`, nil, "0 descriptors"},
		{`{"role": "client"}`, []int{int(null.Fd())}, "not one of a namespace"},
		{`{"role": "client"}`, []int{int(null.Fd()), int(null.Fd())}, "2 descriptors"},
		{`nonsense`, nil, "nonsense"},
	} {
		conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := conn.WriteMsgUnix([]byte(c.greeting), syscall.UnixRights(c.fds...), nil); err != nil {
			t.Fatal(err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(hang)); err != nil {
			t.Fatal(err)
		}
		answer, err := bufio.NewReader(conn).ReadString('\n')
		if err != nil || !strings.Contains(answer, c.want) {
			t.Errorf("%s with %d descriptors is answered %q, %v; expected %q", c.greeting, len(c.fds), answer, err, c.want)
		}
		conn.Close()
	}
}
