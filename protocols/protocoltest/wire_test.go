package protocoltest

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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

// testLane is a lane between two sockets: send is what a sender's device does,
// receive reads what has come out, in order.
func testLane(t *testing.T) (d *lane, send func([]byte), receive func() []int) {
	t.Helper()
	var in, out [2]int
	for _, pair := range []*[2]int{&in, &out} {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		*pair = fds
		// What waits in a socket must hold what a test sends.
		if err := unix.SetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_SNDBUF, 1<<22); err != nil {
			t.Fatal(err)
		}
	}
	d, err := newLane(in[1], out[0], 1)
	if err != nil {
		t.Fatal(err)
	}
	go d.carry()
	t.Cleanup(func() {
		d.close()
		for _, fd := range []int{in[0], in[1], out[0], out[1]} {
			_ = unix.Close(fd)
		}
	})
	send = func(b []byte) {
		t.Helper()
		for {
			_, err := unix.Write(in[0], b)
			if err == nil {
				return
			}
			if err != unix.EAGAIN {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
	}
	receive = func() []int {
		var got []int
		b := make([]byte, maxPacket)
		for {
			n, err := unix.Read(out[1], b)
			if err != nil || n < 102 {
				return got
			}
			got = append(got, int(binary.BigEndian.Uint16(b[100:])))
		}
	}
	return d, send, receive
}

// settle waits until everything that was sent has been read, and delivered
// where nothing delays it.
func settle(t *testing.T, d *lane) {
	t.Helper()
	if err := d.drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := d.drain(t.Context()); err != nil { // it delivers before it reads
		t.Fatal(err)
	}
}

func TestLaneCutsAndCounts(t *testing.T) {
	t.Parallel()
	d, send, receive := testLane(t)
	for i := range 3 {
		send(udpPacket(clientAddress, 1, i))
	}
	settle(t, d)
	d.change(conditions{Cut: true})
	send(udpPacket(clientAddress2, 2, 3))
	send(make([]byte, 100)) // not IP: not counted
	settle(t, d)
	d.change(conditions{})
	send(udpPacket(clientAddress, 1, 4))
	settle(t, d)
	if got := receive(); len(got) != 4 || got[3] != 4 {
		t.Errorf("got %v, expected 0, 1, 2, 4", got)
	}
	far := d.far()
	if far.Packets != 5 || far.Bytes != 5000 || far.Flows != 2 || far.Delivered != 4 || far.Sources[netip.MustParseAddr(clientAddress2)] != 1 {
		t.Errorf("counted %+v", far)
	}
}

func TestLaneHoldsAndReleases(t *testing.T) {
	t.Parallel()
	d, send, receive := testLane(t)
	d.change(conditions{Hold: func(flow, packet int) bool { return packet > flow }})
	for i := range 3 {
		send(udpPacket(clientAddress, 1, i))
		send(udpPacket(clientAddress, 2, 10+i))
	}
	settle(t, d)
	if got := receive(); len(got) != 3 || got[0] != 0 || got[1] != 10 || got[2] != 11 {
		t.Errorf("before the release: %v, expected 0, 10, 11", got)
	}
	d.release()
	settle(t, d)
	if got := receive(); len(got) != 3 || got[0] != 1 || got[1] != 2 || got[2] != 12 {
		t.Errorf("after it: %v, expected 1, 2, 12", got)
	}
}

func TestLaneLosesOften(t *testing.T) {
	t.Parallel()
	d, send, receive := testLane(t)
	d.change(conditions{Loss: 1e-9})
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
	d, send, receive := testLane(t)
	d.change(conditions{BitsPerSecond: 80_000, Backlog: 5000}) // 10 packets a second
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
	d.change(conditions{})
	for time.Since(begin) < time.Minute && d.far().Delivered < int64(len(got)) {
		time.Sleep(time.Millisecond)
	}
	d.mu.Lock()
	waiting := len(d.queue)
	d.mu.Unlock()
	if n := len(got) + waiting; n > 10 {
		t.Errorf("%d packets were kept of 20, with a backlog of 5", n)
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	six := make([]byte, 60)
	six[0], six[6] = 0x60, unix.IPPROTO_TCP
	copy(six[8:], netip.MustParseAddr(clientAddress6).AsSlice())
	copy(six[24:], netip.MustParseAddr(serverAddress6).AsSlice())
	group := append([]byte(nil), six...)
	copy(group[24:], netip.MustParseAddr("ff02::16").AsSlice())
	for name, c := range map[string]struct {
		packet []byte
		src    string
	}{
		"IPv4": {udpPacket(clientAddress, 7, 0), clientAddress}, "IPv6": {six, clientAddress6},
		"a group": {group, ""}, "short": {six[:30], ""}, "nothing": {nil, ""}, "other": {make([]byte, 60), ""},
	} {
		src, _, ok := headers(c.packet)
		if ok != (c.src != "") || ok && src.String() != c.src {
			t.Errorf("%s: %s %t, expected %q", name, src, ok, c.src)
		}
	}
}

// FuzzHeaders: what is taken for an IP packet has a source address, and the rest of
// a packet does not change what flow it is of.
func FuzzHeaders(f *testing.F) {
	f.Add([]byte{0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 77, 0, 1, 10, 77, 0, 3, 1, 2, 3, 4, 0, 8, 0, 0})
	f.Add([]byte{0x4f, 0, 0, 20, 0, 0, 0, 0, 64, 6, 0, 0, 10, 77, 0, 1, 10, 77, 0, 3})
	f.Add(append([]byte{0x60, 0, 0, 0, 0, 4, 6, 64}, make([]byte, 36)...))
	f.Add([]byte{0x60})
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		src, flow, ok := headers(b)
		if !ok {
			return
		}
		if !src.IsValid() {
			t.Fatal("no source")
		}
		if again, same, ok := headers(append(b[:len(b):len(b)], 1, 2, 3, 4)); len(b) >= 64 && (!ok || again != src || same != flow) {
			t.Fatalf("flow %x became %x", flow, same)
		}
	})
}
