package link

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	clientAddress  = "192.0.2.1"
	clientAddress2 = "192.0.2.2"
	serverAddress  = "198.51.100.1"
)

// udpPacket is an IPv4 packet with a number in it.
func udpPacket(src string, port uint16, number int) []byte {
	b := make([]byte, 1000)
	b[0], b[9] = 0x45, unix.IPPROTO_UDP
	copy(b[12:], netip.MustParseAddr(src).AsSlice())
	copy(b[16:], netip.MustParseAddr(serverAddress).AsSlice())
	binary.BigEndian.PutUint16(b[20:], port)
	binary.BigEndian.PutUint16(b[100:], uint16(number))
	return b
}

// testLink is a link between two pairs of sockets, which stand for the devices:
// send is what the client does, receive reads what has come to the server, in order.
func testLink(t *testing.T) (l *Link, send func([]byte), receive func() []int) {
	t.Helper()
	var client, server [2]int
	for _, pair := range []*[2]int{&client, &server} {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		*pair = fds
		// What waits in a socket must hold what a test sends.
		for _, fd := range fds {
			if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 1<<22); err != nil {
				t.Fatal(err)
			}
		}
	}
	l = &Link{ends: [2]int{client[1], server[1]}}
	if err := l.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.Close()
		_ = unix.Close(client[0])
		_ = unix.Close(server[0])
	})
	return l, func(b []byte) { t.Helper(); write(t, client[0], b) }, func() []int { return numbers(server[0]) }
}

// write sends a packet, as soon as the socket takes it.
func write(t *testing.T, fd int, b []byte) {
	t.Helper()
	for {
		_, err := unix.Write(fd, b)
		if err == nil {
			return
		}
		if err != unix.EAGAIN {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}

// numbers are those of the packets that have come to a socket.
func numbers(fd int) (got []int) {
	b := make([]byte, maxPacket)
	for {
		n, err := unix.Read(fd, b)
		if err != nil || n < 102 {
			return got
		}
		got = append(got, int(binary.BigEndian.Uint16(b[100:])))
	}
}

// settle waits until everything that was sent has been read, and delivered
// where nothing delays it.
func settle(t *testing.T, d *Lane) {
	t.Helper()
	if err := d.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := d.Drain(t.Context()); err != nil { // it delivers before it reads
		t.Fatal(err)
	}
}

func TestLaneCutsAndCounts(t *testing.T) {
	t.Parallel()
	l, send, receive := testLink(t)
	d := l.Up
	for i := range 3 {
		send(udpPacket(clientAddress, 1, i))
	}
	settle(t, d)
	d.Change(Conditions{Cut: true})
	send(udpPacket(clientAddress2, 2, 3))
	send(make([]byte, 100)) // not IP: not counted
	settle(t, d)
	d.Change(Conditions{})
	send(udpPacket(clientAddress, 1, 4))
	settle(t, d)
	if got := receive(); len(got) != 4 || got[3] != 4 {
		t.Errorf("got %v, expected 0, 1, 2, 4", got)
	}
	far := d.Traffic()
	if far.Packets != 5 || far.Bytes != 5000 || far.Content != 5*(1000-28) || far.Passed != 4*(1000-28) || far.Flows != 2 || far.Delivered != 4 || far.Sources[netip.MustParseAddr(clientAddress2)] != 1 {
		t.Errorf("counted %+v", far)
	}
}

func TestLaneHoldsAndReleases(t *testing.T) {
	t.Parallel()
	l, send, receive := testLink(t)
	d := l.Up
	d.Change(Conditions{Hold: func(p Packet) bool { return p.Number > p.Flow }})
	for i := range 3 {
		send(udpPacket(clientAddress, 1, i))
		send(udpPacket(clientAddress, 2, 10+i))
	}
	settle(t, d)
	if got := receive(); len(got) != 3 || got[0] != 0 || got[1] != 10 || got[2] != 11 {
		t.Errorf("before the release: %v, expected 0, 10, 11", got)
	}
	d.Release()
	settle(t, d)
	if got := receive(); len(got) != 3 || got[0] != 1 || got[1] != 2 || got[2] != 12 {
		t.Errorf("after it: %v, expected 1, 2, 12", got)
	}
}

func TestLaneLosesOften(t *testing.T) {
	t.Parallel()
	l, send, receive := testLink(t)
	d := l.Up
	d.Change(Conditions{Loss: 1e-9})
	const n = 10 * lossRun
	arrived := 0
	for i := range n {
		send(udpPacket(clientAddress, 1, i))
		if i%50 == 49 { // the sockets hold no more
			settle(t, d)
			arrived += len(receive())
		}
	}
	if arrived != n-10 {
		t.Errorf("%d of %d packets arrived, expected one in %d to be lost", arrived, n, lossRun)
	}
}

// TestLaneRate: packets leave no faster than the rate, and what waits is bounded.
func TestLaneRate(t *testing.T) {
	t.Parallel()
	l, send, receive := testLink(t)
	d := l.Up
	d.Change(Conditions{BitsPerSecond: 80_000, Backlog: 5000}) // 10 packets a second
	begin := time.Now()
	for i := range 20 {
		send(udpPacket(clientAddress, 1, i))
	}
	settle(t, d)
	var got []int
	for len(got) < 5 {
		got = append(got, receive()...)
		time.Sleep(time.Millisecond)
	}
	if took := time.Since(begin); took < 500*time.Millisecond {
		t.Errorf("5 packets after %s, expected 500 ms at least", took)
	}
	d.Change(Conditions{})
	for time.Since(begin) < time.Minute && d.Traffic().Delivered < int64(len(got)) {
		time.Sleep(time.Millisecond)
	}
	d.link.mu.Lock()
	waiting := len(d.queue.waiting)
	d.link.mu.Unlock()
	if n := len(got) + waiting; n > 10 {
		t.Errorf("%d packets were kept of 20, with a backlog of 5", n)
	}
}
