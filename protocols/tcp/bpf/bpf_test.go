package bpf

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"linktrial/internal/process"
)

// prefixVariable gives a process that a test starts the test's prefix.
const prefixVariable = "LINKTRIAL_TEST_PREFIX"

// TestMain gives the names in the kernel a prefix of this process: other programs of
// the machine may use the ordinary ones meanwhile. It also is the process that
// tests start: it registers what its argument names, and waits.
func TestMain(m *testing.M) {
	if p := os.Getenv(prefixVariable); p != "" {
		prefix = p
		os.Exit(hold(os.Args[1], os.Args[2] == "link"))
	}
	n := strconv.FormatInt(int64(os.Getpid()), 36)
	prefix = n[max(0, len(n)-3):] + "_"
	if err := loopbackUp(); err != nil {
		fmt.Println("loopback:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// loopbackUp makes connections possible in a machine that has just booted.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, r); err != nil {
		return err
	}
	if r.Uint16()&unix.IFF_UP != 0 {
		return nil
	}
	r.SetUint16(r.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r)
}

// supported are the congestion controls that this kernel can take.
func supported(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(Names(), func(name string) bool {
		return errors.Is(find(name).unmet(), errTooOld)
	})
}

// waysToRegister are those that this kernel knows.
func waysToRegister(t *testing.T) []string {
	t.Helper()
	r, err := find("veno").register(true)
	if noLinks(err) {
		t.Log("this kernel has no links of struct_ops (before Linux 6.4)")
		return []string{"map"}
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return []string{"link", "map"}
}

// hold registers a congestion control, tells that, and ends with its input.
func hold(name string, link bool) int {
	r, err := find(name).register(link)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	if r.Close() != nil {
		return 1
	}
	return 0
}

// holder starts a process that has registered the congestion control.
func holder(t *testing.T, name, how string) (cmd *exec.Cmd, input io.Closer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(self, name, how)
	cmd.Env = append(os.Environ(), prefixVariable+"="+prefix)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the process says %q, %v", line, err)
	}
	return cmd, in
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root: it registers congestion controls in the kernel")
	}
}

// released ends what the test has registered, and finds nothing left.
func released(t *testing.T) {
	t.Helper()
	if err := Release(); err != nil {
		t.Error(err)
	}
	for _, name := range Names() {
		awaitRegistered(t, name, false)
	}
}

func registered(t *testing.T, name string) bool {
	t.Helper()
	b, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	if err != nil {
		t.Fatal(err)
	}
	return slices.Contains(strings.Fields(string(b)), KernelName(name))
}

// awaitRegistered waits for the kernel, which ends a link when its last file is
// closed, and that may be after its process has ended.
func awaitRegistered(t *testing.T, name string, want bool) {
	t.Helper()
	for range 10_000 {
		if registered(t, name) == want {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%s is registered: %t, expected %t", name, !want, want)
}

// TestNames: the kernel's names fit into its 15 characters and are all different.
func TestNames(t *testing.T) {
	ours := prefix
	defer func() { prefix = ours }()
	prefix = ordinaryPrefix
	seen := map[string]bool{}
	for _, n := range Names() {
		k := KernelName(n)
		if len(k) > 15 || seen[k] || !IsKernelName(k) || !Has(n) {
			t.Errorf("%s is %q in the kernel", n, k)
		}
		seen[k] = true
	}
	if Has("cubic") || KernelName("cubic") != "" || IsKernelName("cubic") {
		t.Error("cubic is brought along")
	}
	if err := Probe("cubic", nil); err == nil {
		t.Error("cubic is brought along")
	}
}

// connection is one over loopback whose sending end has a congestion control.
type connection struct {
	sender, receiver *net.TCPConn
}

func with(name string, mark int) func(_, _ string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) (err error) {
		cerr := c.Control(func(fd uintptr) {
			if err = Set(int(fd), name); err == nil && mark != 0 {
				err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, mark)
			}
		})
		return errors.Join(cerr, err)
	}
}

func listenWith(t *testing.T, control func(_, _ string, c syscall.RawConn) error) net.Listener {
	t.Helper()
	lc := net.ListenConfig{Control: control}
	lc.SetMultipathTCP(false)
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func connect(t *testing.T, l net.Listener, control func(_, _ string, c syscall.RawConn) error) connection {
	t.Helper()
	d := net.Dialer{Control: control}
	d.SetMultipathTCP(false)
	c, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return connection{c.(*net.TCPConn), s.(*net.TCPConn)}
}

// carry sends size random bytes and compares what arrives.
func carry(t *testing.T, from, to *net.TCPConn, size int) {
	t.Helper()
	sent := make([]byte, size)
	_, _ = rand.Read(sent)
	failed := make(chan error, 1)
	go func() {
		_, err := from.Write(sent)
		failed <- errors.Join(err, from.CloseWrite())
	}()
	got, err := io.ReadAll(to)
	if err = errors.Join(err, <-failed); err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("%d bytes arrived of %d, or others: %v", len(got), len(sent), err)
	}
}

// on calls with the descriptor of a connection's socket.
func on(t *testing.T, c *net.TCPConn, do func(fd int) error) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	cerr := raw.Control(func(fd uintptr) { err = do(int(fd)) })
	if err = errors.Join(cerr, err); err != nil {
		t.Fatal(err)
	}
}

func expectControl(t *testing.T, c *net.TCPConn, name string) {
	t.Helper()
	on(t, c, func(fd int) error {
		used, err := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
		if used != KernelName(name) {
			t.Errorf("the connection has %q, expected %q", used, KernelName(name))
		}
		return err
	})
}

// TestTransfer: every one of them carries a transfer.
func TestTransfer(t *testing.T) {
	needRoot(t)
	defer released(t)
	for _, name := range supported(t) {
		t.Run(name, func(t *testing.T) {
			c := connect(t, listenWith(t, nil), with(name, 300_000))
			carry(t, c.sender, c.receiver, 4<<20)
			expectControl(t, c.sender, name)
		})
	}
}

// TestWindow: the window of the two radio variants is the mark's in whole
// segments, or the kernel's initial one, before and after a transfer; and there is no
// slow start threshold.
func TestWindow(t *testing.T) {
	needRoot(t)
	defer released(t)
	for _, name := range supported(t) {
		if !strings.HasPrefix(name, "radio") {
			continue
		}
		for _, mark := range []int{0, 1, 300_000} {
			t.Run(fmt.Sprintf("%s %d", name, mark), func(t *testing.T) {
				c := connect(t, listenWith(t, nil), with(name, mark))
				window := func(when string) {
					on(t, c.sender, func(fd int) error {
						i, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
						if err != nil {
							return err
						}
						packet := i.Snd_mss + headers
						want := max(1, (uint32(mark)+packet-1)/packet)
						if mark == 0 {
							want = 10 // RFC 6928
						}
						if i.Snd_cwnd != want || i.Snd_ssthresh != 0x7fffffff {
							t.Errorf("%s: %d segments of %d bytes, expected %d; threshold %d", when, i.Snd_cwnd, i.Snd_mss, want, i.Snd_ssthresh)
						}
						return nil
					})
				}
				window("at first")
				carry(t, c.sender, c.receiver, 1<<20)
				window("at last")
			})
		}
	}
}

// headers is HEADERS of radio.h.
const headers = 40

// TestNewRTO: over loopback, whose timeout is 200 ms, the bound is the least that the
// kernel takes, whatever the socket's owner wanted; and the connection is given up
// after 500 times 12 s, or when the owner wants it. e2e has long timeouts.
func TestNewRTO(t *testing.T) {
	needRoot(t)
	if !slices.Contains(supported(t), "radio_newrto") {
		if err := Probe("radio_newrto", nil); err == nil || !strings.Contains(err.Error(), "6.15") {
			t.Errorf("%v, expected the oldest kernel that has what it takes", err)
		}
		return
	}
	defer released(t)
	for name, tt := range map[string]struct{ max, giveUp, wantGiveUp int }{
		"of its own":     {0, 0, 6_000_000},
		"of the owner":   {1_000, 70_000, 70_000},
		"more than 12 s": {60_000, 0, 6_000_000},
	} {
		t.Run(name, func(t *testing.T) {
			set := with("radio_newrto", 100_000)
			c := connect(t, listenWith(t, nil), func(network, address string, c syscall.RawConn) (err error) {
				cerr := c.Control(func(fd uintptr) {
					if tt.max != 0 {
						err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_RTO_MAX_MS, tt.max)
					}
					if tt.giveUp != 0 {
						err = errors.Join(err, unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, tt.giveUp))
					}
				})
				return errors.Join(cerr, err, set(network, address, c))
			})
			on(t, c.sender, func(fd int) error {
				most, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_RTO_MAX_MS)
				giveUp, err2 := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
				if most != 1000 || giveUp != tt.wantGiveUp {
					t.Errorf("at most %d ms, given up after %d ms, expected 1000 and %d", most, giveUp, tt.wantGiveUp)
				}
				return errors.Join(err, err2)
			})
		})
	}
}

// TestProbe registers nothing.
func TestProbe(t *testing.T) {
	needRoot(t)
	for _, name := range supported(t) {
		if err := Probe(name, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if registered(t, name) {
			t.Errorf("%s is registered after a probe", name)
		}
	}
}

// TestShared: a process uses what another has registered. The other's end, by
// SIGKILL, leaves nothing in the kernel but takes nothing from a listener: its
// later connections have the congestion control too, and a new socket gets it anew.
func TestShared(t *testing.T) {
	needRoot(t)
	defer released(t)
	const name = "radio"
	for _, how := range waysToRegister(t) {
		t.Run(how, func(t *testing.T) {
			other, _ := holder(t, name, how)
			if _, err := Load(name); !errors.Is(err, os.ErrExist) {
				t.Fatalf("a second registration: %v", err)
			}
			l := listenWith(t, with(name, 50_000))
			before := connect(t, l, nil)
			if len(held.registrations) != 0 {
				t.Error("this process has registered what was there")
			}
			kill(t, other)
			// On a kernel without links what is left serves the next process.
			awaitRegistered(t, name, how == "map")
			if how == "map" {
				removeLeft(t, name)
				awaitRegistered(t, name, false)
			}
			after := connect(t, l, nil)
			for _, c := range []connection{before, after} {
				expectControl(t, c.receiver, name)
				carry(t, c.receiver, c.sender, 1<<20)
			}
			if registered(t, name) {
				t.Error("a listener's connections have registered it")
			}
			anew := connect(t, l, with(name, 0))
			expectControl(t, anew.sender, name)
			if !registered(t, name) {
				t.Error("a new socket has it, and it is not registered")
			}
			if err := Release(); err != nil {
				t.Error(err)
			}
			carry(t, anew.sender, anew.receiver, 1<<20) // ours is gone, the connection goes on
		})
	}
}

// removeLeft ends what a killed process has left on a kernel without links, as
// docs/tcp-variants.md has it with bpftool.
func removeLeft(t *testing.T, name string) {
	t.Helper()
	for id := ebpf.MapID(0); ; {
		next, err := ebpf.MapGetNextID(id)
		if err != nil {
			t.Fatalf("no map is named %s: %v", KernelName(name), err)
		}
		id = next
		m, err := ebpf.NewMapFromID(id)
		if errors.Is(err, os.ErrNotExist) {
			continue // it has gone since
		}
		if err != nil {
			t.Fatal(err)
		}
		i, err := m.Info()
		if err == nil && i.Name == KernelName(name) {
			if err := m.Delete(uint32(0)); err != nil {
				t.Error(err)
			}
			_ = m.Close()
			return
		}
		_ = m.Close()
	}
}

// TestOrderlyEnd: a process that ends in order leaves nothing, with links or without.
func TestOrderlyEnd(t *testing.T) {
	needRoot(t)
	for _, how := range waysToRegister(t) {
		cmd, in := holder(t, "veno", how)
		if !registered(t, "veno") {
			t.Fatalf("by %s: it is not registered", how)
		}
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("by %s: %v", how, err)
		}
		awaitRegistered(t, "veno", false)
	}
}

// TestCapabilities: CAP_BPF and CAP_PERFMON are enough, and without them the reason says so.
func TestCapabilities(t *testing.T) {
	needRoot(t)
	for _, tt := range []struct {
		name string
		have []int
		want string
	}{
		{"both", []int{unix.CAP_BPF, unix.CAP_PERFMON}, ""},
		{"only CAP_BPF", []int{unix.CAP_BPF}, "CAP_PERFMON"},
		{"only CAP_NET_ADMIN", []int{unix.CAP_NET_ADMIN}, "CAP_BPF"},
	} {
		done := make(chan error)
		go func() {
			// Capabilities are the thread's; it ends with the goroutine.
			runtime.LockOSThread()
			header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
			var data [2]unix.CapUserData
			for _, c := range tt.have {
				data[c/32].Effective |= 1 << (c % 32)
				data[c/32].Permitted |= 1 << (c % 32)
			}
			if err := unix.Capset(&header, &data[0]); err != nil {
				done <- err
				return
			}
			err := Probe("radio", nil)
			if err == nil {
				var r io.Closer
				if r, err = Load("radio"); err == nil {
					err = r.Close()
				}
			}
			done <- err
		}()
		err := <-done
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, expected %q", tt.name, err, tt.want)
		}
	}
}

// BenchmarkLoad is what a run pays once in each process that finds nothing registered.
func BenchmarkLoad(b *testing.B) {
	if os.Getuid() != 0 {
		b.Skip("needs root: it registers congestion controls in the kernel")
	}
	for _, name := range Names() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				r, err := Load(name)
				if err != nil {
					b.Fatal(err)
				}
				if err := r.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkShare is what it costs where another process has registered it.
func BenchmarkShare(b *testing.B) {
	if os.Getuid() != 0 {
		b.Skip("needs root: it registers congestion controls in the kernel")
	}
	r, err := Load("radio")
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	for b.Loop() {
		if err := Set(fd, "radio"); err != nil {
			b.Fatal(err)
		}
	}
}
