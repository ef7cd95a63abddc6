package bpf

import (
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/protocols/protocoltest/link"
)

// TestAgainstKernel holds Westwood+ and Veno to the kernel's own, where it has them:
// the same transfer over a link that loses the same packets. It needs a kernel with
// both modules, such as Debian's; make test-kernels has machines with such kernels.
func TestAgainstKernel(t *testing.T) {
	needRoot(t)
	defer released(t)
	for _, name := range []string{"westwood", "veno"} {
		t.Run(name, func(t *testing.T) {
			own := over(t, func(fd int) error { return unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name) })
			if own == nil {
				t.Logf("this kernel has no %s of its own to compare with", name)
				return
			}
			ours := over(t, func(fd int) error { return Set(fd, name) })
			t.Logf("the kernel's: %s; ours: %s", own, ours)
			// The rate hides much of what a window does to the time, not to the threshold that
			// a loss leaves.
			if !near(own.elapsed.Seconds(), ours.elapsed.Seconds()) {
				t.Errorf("%s, expected about %s", ours.elapsed, own.elapsed)
			}
			if len(own.thresholds) != len(ours.thresholds) {
				t.Fatalf("thresholds %d, expected about %d", ours.thresholds, own.thresholds)
			}
			for i := range own.thresholds {
				if !near(float64(own.thresholds[i]), float64(ours.thresholds[i])) {
					t.Errorf("threshold %d: %d segments, expected about %d", i, ours.thresholds[i], own.thresholds[i])
				}
			}
		})
	}
}

// near is a difference of a tenth, or of two segments: moments of packets differ from
// transfer to transfer, and round-trip times, and windows with them.
func near(want, got float64) bool { return math.Abs(got-want) <= max(0.1*want, 2) }

// course is what a transfer over the losing link did.
type course struct {
	elapsed    time.Duration
	thresholds []uint32 // one after another, in segments
}

func (c *course) String() string {
	return fmt.Sprintf("%s, thresholds %d", c.elapsed.Round(time.Millisecond), c.thresholds)
}

// over carries a transfer whose sender is set up by the function, over a link of
// 4 Mbit/s and 100 ms that loses two segments; nil where the kernel has no such
// congestion control.
func over(t *testing.T, control func(fd int) error) *course {
	t.Helper()
	l, err := link.New([]string{"10.9.0.1"}, []string{"10.9.0.2"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const size = 1536 << 10
	segments := 0
	l.Up.Change(link.Conditions{BitsPerSecond: 4e6, Backlog: 1 << 20, Delay: 50 * time.Millisecond, Lose: func(p link.Packet) bool {
		if p.Content > 1000 {
			segments++
		}
		return p.Content > 1000 && (segments == 300 || segments == 800)
	}})
	l.Down.Change(link.Conditions{Delay: 50 * time.Millisecond})
	var listener net.Listener
	in(t, l.Server, func() {
		lc := net.ListenConfig{}
		lc.SetMultipathTCP(false)
		listener, err = lc.Listen(t.Context(), "tcp", "10.9.0.2:7001")
	})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var conn net.Conn
	in(t, l.Client, func() {
		d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) (err error) {
			cerr := c.Control(func(fd uintptr) { err = control(int(fd)) })
			return errors.Join(cerr, err)
		}}
		d.SetMultipathTCP(false)
		conn, err = d.DialContext(t.Context(), "tcp", "10.9.0.2:7001")
	})
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	far, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan []uint32)
	go func() { stopped <- thresholds(raw, stop) }()
	began := time.Now()
	carry(t, conn.(*net.TCPConn), far.(*net.TCPConn), size)
	out := course{elapsed: time.Since(began)}
	close(stop)
	out.thresholds = <-stopped
	return &out
}

// thresholds are those of a connection that is in no recovery, as they change.
func thresholds(raw syscall.RawConn, stop <-chan struct{}) (out []uint32) {
	for {
		_ = raw.Control(func(fd uintptr) {
			i, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
			if n := len(out); err == nil && i.Ca_state == 0 && i.Snd_ssthresh < 0x7fffffff && (n == 0 || out[n-1] != i.Snd_ssthresh) {
				out = append(out, i.Snd_ssthresh)
			}
		})
		select {
		case <-stop:
			return out
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// in runs a function in a network namespace.
func in(t *testing.T, ns *os.File, do func()) {
	t.Helper()
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
		if err == nil {
			do()
		}
		failed <- err
	}()
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
}
