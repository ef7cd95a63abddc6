package bpf

import (
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"runtime"
	"strings"
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
	has := true
	c := across(t, l, func(_, _ string, c syscall.RawConn) (err error) {
		cerr := c.Control(func(fd uintptr) {
			if err = control(int(fd)); errors.Is(err, unix.ENOENT) {
				has, err = false, nil
			}
		})
		return errors.Join(cerr, err)
	})
	if !has {
		return nil
	}
	raw, err := c.sender.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan []uint32)
	go func() { stopped <- thresholds(raw, stop) }()
	began := time.Now()
	carry(t, c.sender, c.receiver, size)
	out := course{elapsed: time.Since(began)}
	close(stop)
	out.thresholds = <-stopped
	return &out
}

// across is a connection over the link, whose client's end is set up by the function.
func across(t *testing.T, l *link.Link, control func(_, _ string, c syscall.RawConn) error) connection {
	t.Helper()
	var listener net.Listener
	var err error
	in(t, l.Server, func() {
		lc := net.ListenConfig{}
		lc.SetMultipathTCP(false)
		listener, err = lc.Listen(t.Context(), "tcp", "10.9.0.2:7001")
	})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var c net.Conn
	in(t, l.Client, func() {
		d := net.Dialer{Control: control}
		d.SetMultipathTCP(false)
		c, err = d.DialContext(t.Context(), "tcp", "10.9.0.2:7001")
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	far, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = far.Close() })
	return connection{c.(*net.TCPConn), far.(*net.TCPConn)}
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

// TestTimeouts: while nothing passes, TCP-radio's timeout doubles and newRTO's stays.
// The way takes so long that the timeout is above the second that the kernel wants of
// a bound.
func TestTimeouts(t *testing.T) {
	needRoot(t)
	for _, name := range supported(t) {
		if !strings.HasPrefix(name, "radio") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, after := timeouts(t, name)
			t.Logf("%s, after two timeouts %s", before, after)
			low, high := 4*before, 4*before
			if name == "radio_newrto" {
				low = before
				high = before + before/8 // of a kernel that passed the program over
			}
			const tick = 20 * time.Millisecond // of two roundings at 100 Hz
			if after < low-tick || after > high+tick {
				t.Errorf("the timeout was %s, and after two of them it is %s, expected %s to %s", before, after, low, high)
			}
		})
	}
	t.Cleanup(func() { released(t) })
}

// timeouts returns the timeout of a connection, and that after two of them.
func timeouts(t *testing.T, name string) (before, after time.Duration) {
	t.Helper()
	l, err := link.New([]string{"10.9.0.1"}, []string{"10.9.0.2"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.Both(link.Conditions{Delay: 400 * time.Millisecond})
	c := across(t, l, with(name, 100_000))
	raw, err := c.sender.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	info := func() (i *unix.TCPInfo) {
		_ = raw.Control(func(fd uintptr) { i, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) })
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	for range 2 { // round-trip times
		if _, err := c.sender.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := c.receiver.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		for info().Unacked > 0 {
			time.Sleep(10 * time.Millisecond)
		}
	}
	l.Both(link.Conditions{Cut: true})
	before = time.Duration(info().Rto) * time.Microsecond
	if _, err := c.sender.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	for info().Retransmits < 2 {
		time.Sleep(10 * time.Millisecond)
	}
	return before, time.Duration(info().Rto) * time.Microsecond
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
