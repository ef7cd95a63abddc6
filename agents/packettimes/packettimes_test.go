package packettimes_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"linktrial/agents/packettimes"
	"linktrial/executor"
	"linktrial/internal/namespace"
	"linktrial/internal/namespace/namespacetest"
	"linktrial/internal/process"
)

// far is another node, behind radio0.
type far struct {
	t    *testing.T
	path string
}

// newFar makes radio0, with the addresses .1 and ::1 of its networks, and the other node
// with .2 and ::2.
func newFar(t *testing.T) *far {
	ns, err := namespace.Unnamed()
	require.NoError(t, err)
	t.Cleanup(func() { _ = ns.Close() })
	f := &far{t, fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), ns.Fd())}
	namespacetest.IP(t, "link set lo up")
	f.radio()
	return f
}

func (f *far) radio() {
	namespacetest.IP(f.t, "link add radio0 type veth peer name radio0 netns %s", f.path)
	namespacetest.IP(f.t, "addr add 10.91.1.1/24 dev radio0")
	namespacetest.IP(f.t, "addr add fd91::1/64 dev radio0 nodad")
	namespacetest.IP(f.t, "link set radio0 up")
	f.do(func() error {
		for _, a := range []string{"addr add 10.91.1.2/24 dev radio0", "addr add fd91::2/64 dev radio0 nodad", "link set radio0 up"} {
			if out, err := exec.CommandContext(f.t.Context(), "ip", strings.Fields(a)...).CombinedOutput(); err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
		}
		return nil
	})
	f.settle()
}

// settle waits until packets pass: what is sent before the kernel has noticed that the link
// is up is dropped, the question for the other end's address too, which is asked again only
// after a second.
func (f *far) settle() {
	f.t.Helper()
	var there net.PacketConn
	f.do(func() (err error) {
		there, err = net.ListenPacket("udp", "10.91.1.2:4999")
		return err
	})
	defer func() { _ = there.Close() }() // nothing is lost
	here, err := net.Dial("udp", "10.91.1.2:4999")
	require.NoError(f.t, err)
	defer func() { _ = here.Close() }()
	for end := time.Now().Add(time.Minute); ; {
		_, err := here.Write([]byte{1})
		require.NoError(f.t, err)
		require.NoError(f.t, there.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
		if _, _, err = there.ReadFrom(make([]byte, 1)); err == nil {
			return
		}
		require.True(f.t, time.Now().Before(end), "no packet passes: %v", err)
	}
}

func (f *far) do(what func() error) {
	f.t.Helper()
	require.NoError(f.t, process.InNamespace(f.path, what))
}

// takes listens there, and takes what one connection sends.
func (f *far) takes(address string) (wait func()) {
	var l net.Listener
	f.do(func() (err error) {
		l, err = net.Listen("tcp", address)
		return err
	})
	var taking sync.WaitGroup
	taking.Go(func() {
		defer func() { _ = l.Close() }() // nothing was written
		if c, err := l.Accept(); err == nil {
			_, _ = io.Copy(io.Discard, c) // until its end
			_ = c.Close()                 // nothing was written
		}
	})
	return taking.Wait
}

// send sends so many bytes in steps over a time at the least, and returns how long that took.
func send(t *testing.T, c net.Conn, size int, over time.Duration) time.Duration {
	t.Helper()
	const steps = 10
	began := time.Now()
	for i := range steps {
		if i > 0 {
			time.Sleep(over / (steps - 1))
		}
		for left := size / steps; left > 0; {
			n, err := c.Write(make([]byte, min(left, 1000)))
			require.NoError(t, err)
			left -= n
		}
	}
	return time.Since(began)
}

// What is noted of a connection is never more than the time in which its payload was
// sent, and little less; packets before the listener's first one, of connections to other
// ports and over other interfaces are not noted, and each attempt begins anew.
func TestSent(t *testing.T) {
	if !namespacetest.Alone(t) {
		return
	}
	f := newFar(t)
	c, err := packettimes.StartSent("radio0")
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	const size, over = 200_000, 500 * time.Millisecond
	one := executor.Payloads{Least: size, Sum: size}
	payloads := map[int]executor.Payloads{5001: one, 5002: one, 5003: one, 5004: one}
	tcp := func(address string) time.Duration {
		t.Helper()
		require.NoError(t, c.Begin(payloads))
		wait := f.takes(address)
		began := time.Now()
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		send(t, conn, size, over)
		require.NoError(t, conn.Close())
		wait() // what was written may leave later
		return time.Since(began)
	}
	sent := func(port int, took time.Duration) executor.PacketsTook {
		t.Helper()
		all, whole, err := c.Took()
		require.NoError(t, err)
		require.Len(t, all, 1)
		require.Equal(t, port, all[0].Port)
		require.InDelta(t, all[0].Took, whole[port], float64(time.Millisecond))
		require.Positive(t, all[0].Connecting)
		require.GreaterOrEqual(t, all[0].Bytes, int64(size))
		require.LessOrEqual(t, all[0].Took, took)
		// The first step of ten has more than 16 KiB.
		require.Greater(t, all[0].Took, over*8/10)
		return all[0]
	}
	for _, address := range []string{"10.91.1.2:5001", "[fd91::2]:5002"} {
		port := 5001
		if strings.HasPrefix(address, "[") {
			port = 5002
		}
		took := tcp(address)
		sent(port, took)
	}

	tcp("10.91.1.2:4999") // no listener's port
	all, _, err := c.Took()
	require.NoError(t, err)
	require.Empty(t, all)

	// Datagrams: the payload has not begun until the other end has sent one.
	require.NoError(t, c.Begin(payloads))
	var server net.PacketConn
	f.do(func() (err error) {
		server, err = net.ListenPacket("udp", "10.91.1.2:5003")
		return err
	})
	defer func() { _ = server.Close() }() // nothing is lost
	conn, err := net.Dial("udp", "10.91.1.2:5003")
	require.NoError(t, err)
	defer func() { _ = conn.Close() }() // nothing is lost
	send(t, conn, size, 0)
	all, _, err = c.Took()
	require.NoError(t, err)
	require.Equal(t, []executor.PacketsTook{{Port: 5003, Bytes: size}}, all, "the listener has sent nothing")
	_, client, err := server.ReadFrom(make([]byte, 2000))
	require.NoError(t, err)
	_, err = server.WriteTo([]byte{1}, client)
	require.NoError(t, err)
	_, err = conn.Read(make([]byte, 10))
	require.NoError(t, err)
	send(t, conn, size, 0)
	all, _, err = c.Took() // as many bytes as the payload has had left before it began
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, int64(2*size), all[0].Bytes)
	require.Zero(t, all[0].Took)
	require.NoError(t, c.Begin(payloads))
	_, err = server.WriteTo([]byte{1}, client)
	require.NoError(t, err)
	_, err = conn.Read(make([]byte, 10))
	require.NoError(t, err)
	took := send(t, conn, size, over)
	all, whole, err := c.Took()
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, int64(size), all[0].Bytes)
	require.LessOrEqual(t, all[0].Took, took)
	require.Greater(t, all[0].Took, over*8/10)
	require.Zero(t, all[0].Connecting, "the listener began")
	require.InDelta(t, all[0].Took, whole[5003], float64(time.Millisecond), "it may be left from before, and sent most")

	// An interface that has come anew is found again.
	namespacetest.IP(t, "link del radio0")
	f.radio()
	took = tcp("10.91.1.2:5004")
	sent(5004, took)
	require.NoError(t, c.Begin(payloads))
	all, _, err = c.Took()
	require.NoError(t, err)
	require.Empty(t, all)

	// A listener of which no size is known.
	require.NoError(t, c.Begin(map[int]executor.Payloads{5001: one}))
	wait := f.takes("10.91.1.2:5004")
	conn, err = net.Dial("tcp", "10.91.1.2:5004")
	require.NoError(t, err)
	send(t, conn, size, 0)
	require.NoError(t, conn.Close())
	wait()
	all, _, err = c.Took()
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Zero(t, all[0].Took)
	require.ErrorContains(t, c.Begin(map[int]executor.Payloads{80: one}), "port 80, expected 5001 to 5999")

	namespacetest.IP(t, "link del radio0")
	require.ErrorContains(t, c.Begin(payloads), "radio0")
	_, err = packettimes.StartSent("radio0")
	require.ErrorContains(t, err, "radio0")
}

// What several connections to one listener took is told apart, and what they took together
// where the payload is divided over them: also one after the other.
func TestSentOverSeveralConnections(t *testing.T) {
	if !namespacetest.Alone(t) {
		return
	}
	f := newFar(t)
	c, err := packettimes.StartSent("radio0")
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	var server net.PacketConn
	f.do(func() (err error) {
		server, err = net.ListenPacket("udp", "10.91.1.2:5001")
		return err
	})
	defer func() { _ = server.Close() }() // nothing is lost
	const size, wait = 100_000, 100 * time.Millisecond
	// open is answered after the wait.
	open := func(port int) net.Conn {
		t.Helper()
		conn, err := net.DialUDP("udp", &net.UDPAddr{IP: net.IPv4(10, 91, 1, 1), Port: port}, &net.UDPAddr{IP: net.IPv4(10, 91, 1, 2), Port: 5001})
		require.NoError(t, err)
		_, err = conn.Write([]byte{1})
		require.NoError(t, err)
		time.Sleep(wait)
		_, err = server.WriteTo([]byte{1}, conn.LocalAddr())
		require.NoError(t, err)
		_, err = conn.Read(make([]byte, 10))
		require.NoError(t, err)
		return conn
	}
	begin := func(p executor.Payloads) { require.NoError(t, c.Begin(map[int]executor.Payloads{5001: p})) }

	begin(executor.Payloads{Least: size, Sum: 3 * size})
	for i, over := range []time.Duration{4 * wait, 2 * wait} {
		conn := open(40001 + i)
		send(t, conn, size*(2-i), over)
		require.NoError(t, conn.Close())
	}
	all, whole, err := c.Took()
	require.NoError(t, err)
	require.Len(t, all, 2)
	if all[0].Took < all[1].Took {
		all[0], all[1] = all[1], all[0]
	}
	for i, least := range []time.Duration{wait, wait} { // the longer one has as many bytes as the least payload after half of its time
		require.Greater(t, all[i].Took, least)
		require.Greater(t, all[i].Connecting, wait*9/10)
		require.Less(t, all[i].Connecting, 3*time.Second)
	}
	require.Greater(t, whole[5001], 6*wait)

	// Divided, one part after the other: the second part alone would be half of the time.
	divided := func(first, second int) (took, ofSecond time.Duration) {
		t.Helper()
		begin(executor.Payloads{Least: size, Sum: size})
		a, b := open(first), open(second)
		send(t, a, size*2/5, 3*wait)
		ofSecond = send(t, b, size*3/5, 3*wait)
		require.NoError(t, errors.Join(a.Close(), b.Close()))
		all, whole, err := c.Took()
		require.NoError(t, err)
		require.Len(t, all, 2)
		require.Zero(t, all[0].Took+all[1].Took)
		return whole[5001], ofSecond
	}
	const begun = 4 * wait // 16 KiB are gone after four of nine steps
	took, _ := divided(40003, 40004)
	require.Greater(t, took, begun)
	// What an attempt before may have left began nothing, where it has not sent most.
	took, second := divided(40003, 40005)
	require.Greater(t, took, 2*wait*9/10)
	require.LessOrEqual(t, took, second)
	took, _ = divided(40006, 40003)
	require.Greater(t, took, begun)
}

// At the node that listens, what arrives is noted of each transfer, whatever those before
// have left.
func TestArrived(t *testing.T) {
	if !namespacetest.Alone(t) {
		return
	}
	f := newFar(t)
	c, err := packettimes.StartArrived("radio0")
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	const size, over = 200_000, 500 * time.Millisecond
	require.NoError(t, c.Listen(5001, size))
	l, err := net.Listen("tcp", "10.91.1.1:5001")
	require.NoError(t, err)
	defer func() { _ = l.Close() }() // nothing was written
	transfer := func(bytes int, from int) time.Duration {
		t.Helper()
		began, read := time.Now(), make(chan struct{})
		var sending sync.WaitGroup
		sending.Go(func() {
			f.do(func() error {
				d := net.Dialer{}
				if from > 0 {
					d.LocalAddr = &net.TCPAddr{IP: net.IPv4(10, 91, 1, 2), Port: from}
				}
				conn, err := d.Dial("tcp", "10.91.1.1:5001")
				if err != nil {
					return err
				}
				// Without waiting for the other end: its port can be had again.
				if err := conn.(*net.TCPConn).SetLinger(0); err != nil {
					return err
				}
				send(t, conn, bytes, over)
				<-read
				return conn.Close()
			})
		})
		conn, err := l.Accept()
		require.NoError(t, err)
		_, err = io.CopyN(io.Discard, conn, int64(bytes))
		require.NoError(t, err)
		close(read)
		_, _ = io.Copy(io.Discard, conn) // until it is reset
		require.NoError(t, conn.Close())
		sending.Wait()
		return time.Since(began)
	}
	ended := func() time.Duration {
		t.Helper()
		took, err := c.Ended(5001)
		require.NoError(t, err)
		return took
	}
	for range 2 {
		took := transfer(size, 0)
		got := ended()
		require.LessOrEqual(t, got, took)
		require.Greater(t, got, over*8/10)
	}
	require.Zero(t, ended(), "nothing has arrived since")

	// One that ended too early, and the next one has its port.
	transfer(size/2, 40001)
	require.Zero(t, ended())
	transfer(size, 40001)
	require.Zero(t, ended(), "its payload cannot be told from that of the one before")
	took := transfer(size, 40001)
	got := ended()
	require.LessOrEqual(t, got, took)
	require.Greater(t, got, over*8/10)

	require.NoError(t, c.Listen(5001, 0))
	transfer(size, 0)
	require.Zero(t, ended(), "how many bytes it has is not known")

	// An interface that has come anew is found at the next end.
	require.NoError(t, c.Listen(5001, size))
	namespacetest.IP(t, "link del radio0")
	_, err = c.Ended(5001)
	require.ErrorContains(t, err, "radio0")
	f.radio()
	require.Zero(t, ended())
	took = transfer(size, 0)
	got = ended()
	require.LessOrEqual(t, got, took)
	require.Greater(t, got, over*8/10)
}

// Packets to a listener are counted, whatever they carry; those whose port is not known
// count for every listener, and where some may not have been seen, any number may have come.
func TestPassed(t *testing.T) {
	if !namespacetest.Alone(t) {
		return
	}
	f := newFar(t)
	c, err := packettimes.StartArrived("radio0")
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	sends := func(address string, packets, size int) {
		t.Helper()
		to := net.UDPAddrFromAddrPort(netip.MustParseAddrPort(address))
		network := "udp4"
		if to.IP.To4() == nil {
			network = "udp6"
		}
		f.do(func() error {
			conn, err := net.ListenUDP(network, nil) // one that is connected would be told that nobody listens
			if err != nil {
				return err
			}
			defer func() { _ = conn.Close() }() // nothing is buffered
			for range packets {
				if _, err := conn.WriteTo(make([]byte, size), to); err != nil {
					return err
				}
			}
			return nil
		})
	}
	count := func(port int) int64 {
		t.Helper()
		n, err := c.Passed(port)
		require.NoError(t, err)
		return n
	}
	atLeast := func(port int, want int64) {
		t.Helper()
		require.Eventually(t, func() bool { return count(port) >= want }, 10*time.Second, 5*time.Millisecond, "%d packets", want)
	}
	sends("10.91.1.1:5001", 7, 100)
	sends("10.91.1.1:443", 5, 100)
	sends("10.91.1.1:5001", 2, 4000) // in fragments, of which the first has the port
	atLeast(5001, 9)
	require.Equal(t, int64(9), count(5001))
	require.Zero(t, count(5002))
	sends("[fd91::1]:5002", 3, 0)
	atLeast(5002, 3) // answers of neighbour discovery are among them
	require.GreaterOrEqual(t, count(5001), int64(9))
	before := count(5002)
	sends("[fd91::1]:5002", 1, 4000) // in three fragments
	atLeast(5002, before+3)
	_, err = c.Passed(443)
	require.Error(t, err)

	namespacetest.IP(t, "link del radio0")
	_, err = c.Passed(5001)
	require.Error(t, err)
	f.radio()
	require.Greater(t, count(5001), int64(1e9))
}

// Packets from a listener at another node are counted as those to one are.
func TestAnswered(t *testing.T) {
	if !namespacetest.Alone(t) {
		return
	}
	f := newFar(t)
	c, err := packettimes.StartSent("radio0")
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	count := func(port int) int64 {
		t.Helper()
		n, err := c.Answered(port)
		require.NoError(t, err)
		return n
	}
	from := func(port, to, packets int) {
		t.Helper()
		f.do(func() error {
			conn, err := net.ListenUDP("udp4", &net.UDPAddr{Port: port})
			if err != nil {
				return err
			}
			defer func() { _ = conn.Close() }() // nothing is buffered
			for range packets {
				if _, err := conn.WriteTo(make([]byte, 100), &net.UDPAddr{IP: net.IPv4(10, 91, 1, 1), Port: to}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	from(5001, 40_001, 7)
	from(5001, 40_002, 2) // of another client
	from(5003, 40_001, 3)
	from(443, 40_001, 4)
	require.Eventually(t, func() bool { return count(5001) >= 9 && count(5003) >= 3 }, 10*time.Second, 5*time.Millisecond)
	require.Equal(t, int64(9), count(5001))
	require.Equal(t, int64(3), count(5003))
	require.Zero(t, count(5002))
	f.do(func() error { // in fragments, whose port nobody knows
		conn, err := net.ListenUDP("udp6", nil)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }() // nothing is buffered
		_, err = conn.WriteTo(make([]byte, 4000), &net.UDPAddr{IP: net.ParseIP("fd91::1"), Port: 40_001})
		return err
	})
	require.Eventually(t, func() bool { return count(5002) >= 3 }, 10*time.Second, 5*time.Millisecond)
	_, err = c.Answered(443)
	require.Error(t, err)

	namespacetest.IP(t, "link del radio0")
	_, err = c.Answered(5001)
	require.Error(t, err)
	f.radio()
	require.Greater(t, count(5001), int64(1e9))
}

// Bytes to and from listeners' ports are counted by port and direction, with both
// protocols of the Internet; what has listeners' ports at both ends is told apart.
func TestTraffic(t *testing.T) {
	if !namespacetest.Alone(t) {
		return
	}
	f := newFar(t)
	c, err := packettimes.StartTraffic("radio0")
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	const header = 20 + 8
	datagram := func(from, to string, size int) error {
		conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(from)))
		if err != nil {
			return err
		}
		_, err = conn.WriteTo(make([]byte, size), net.UDPAddrFromAddrPort(netip.MustParseAddrPort(to)))
		return errors.Join(err, conn.Close())
	}
	send := func(from, to string, size int) { require.NoError(t, datagram(from, to, size)) }
	sendBack := func(from, to string, size int) { f.do(func() error { return datagram(from, to, size) }) }
	counts := func() map[int]packettimes.Bytes {
		t.Helper()
		all := map[int]packettimes.Bytes{}
		require.NoError(t, c.Each(func(port int, b packettimes.Bytes) { all[port] = b }))
		return all
	}
	require.Empty(t, counts())
	send("10.91.1.1:0", "10.91.1.2:443", 100)
	send("10.91.1.1:0", "10.91.1.2:5001", 100)
	send("10.91.1.1:5002", "10.91.1.2:9", 200)
	send("[fd91::1]:0", "[fd91::2]:5999", 300)
	send("10.91.1.1:6000", "10.91.1.2:5000", 50)
	send("10.91.1.1:5004", "10.91.1.2:5001", 400)
	sendBack("10.91.1.2:0", "10.91.1.1:5002", 500)
	sendBack("10.91.1.2:5001", "10.91.1.1:40000", 600)
	want := map[int]packettimes.Bytes{
		5001: {Sent: header + 100, Received: header + 600, SentPayload: 100, ReceivedPayload: 600},
		5002: {Sent: header + 200, Received: header + 500, SentPayload: 200, ReceivedPayload: 500},
		5999: {Sent: header + 20 + 300, SentPayload: 300}, 0: {Sent: header + 400, SentPayload: 400},
	}
	require.Eventually(t, func() bool {
		return len(counts()) == len(want) && counts()[5001] == want[5001] && counts()[5002] == want[5002]
	}, 10*time.Second, 5*time.Millisecond)
	require.Equal(t, want, counts())

	// TCP's payload, in segments of any length, with its own headers left out; what a busy
	// machine has it send again counts again.
	wait := f.takes("10.91.1.2:5003")
	conn, err := net.Dial("tcp", "10.91.1.2:5003")
	require.NoError(t, err)
	_, err = conn.Write(make([]byte, 200_000))
	require.NoError(t, err)
	require.NoError(t, conn.(*net.TCPConn).CloseWrite())
	wait()
	require.Eventually(t, func() bool { return counts()[5003].SentPayload == 200_000+sentAgain(t, conn.(*net.TCPConn)) }, 10*time.Second, 5*time.Millisecond)
	require.NoError(t, conn.Close())
	require.Greater(t, counts()[5003].Sent, uint64(200_000))

	// An interface that has come anew is found again.
	namespacetest.IP(t, "link del radio0")
	require.Error(t, c.Attach())
	f.radio()
	require.NoError(t, c.Attach())
	send("10.91.1.1:0", "10.91.1.2:5001", 100)
	// It leaves when the other node's link-layer address is known.
	require.Eventually(t, func() bool { return counts()[5001].Sent == 2*(header+100) }, 10*time.Second, 5*time.Millisecond)
}

// sentAgain is how many bytes of payload TCP has sent again.
func sentAgain(t *testing.T, c *net.TCPConn) (bytes uint64) {
	t.Helper()
	raw, err := c.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		require.NoError(t, err)
		bytes = info.Bytes_retrans
	}))
	return bytes
}
