package datagram

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("linktrial/internal/process.init.func1.1"))
}

var (
	loopback4 = netip.MustParseAddrPort("127.0.0.1:0")
	loopback6 = netip.MustParseAddrPort("[::1]:0")
)

func open(tb testing.TB, c Config) *Socket {
	tb.Helper()
	s, err := Open(c)
	if errors.Is(err, unix.EAFNOSUPPORT) && !hasIPv6() {
		tb.Skip("the kernel has no IPv6")
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.Close() })
	return s
}

// hasIPv6 reports whether the kernel has IPv6; that of the virtual-time lab has
// none.
func hasIPv6() bool {
	_, err := os.Stat("/proc/net/if_inet6")
	return err == nil
}

// pair are a server's socket, not connected, and a client's, connected to it.
func pair(tb testing.TB, local netip.AddrPort) (server, client *Socket) {
	tb.Helper()
	server = open(tb, Config{Local: local, ReadBuffer: 8 << 20})
	return server, open(tb, Config{Remote: server.Local(), WriteBuffer: 8 << 20})
}

// limit ends a test that waits for packets that do not come.
func limit(tb testing.TB, s *Socket) {
	tb.Helper()
	if err := s.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		tb.Fatal(err)
	}
}

// receive reads n packets into batches of the given size.
func receive(tb testing.TB, s *Socket, n, size, capacity int) []Packet {
	tb.Helper()
	limit(tb, s)
	var all []Packet
	for len(all) < n {
		batch := make([]Packet, size)
		for i := range batch {
			batch[i].Data = make([]byte, 0, capacity)
		}
		got, err := s.Read(batch)
		if err != nil {
			tb.Fatalf("after %d of %d packets: %v", len(all), n, err)
		}
		all = append(all, batch[:got]...)
	}
	return all
}

// content is different for each packet.
func content(number, size int) []byte {
	return bytes.Repeat([]byte{byte(number), byte(number >> 8), byte(size)}, size/3+1)[:size]
}

func offloads(t *testing.T, f func(t *testing.T, gso, gro bool)) {
	for _, gso := range []bool{true, false} {
		for _, gro := range []bool{true, false} {
			t.Run(fmt.Sprintf("GSO %v, GRO %v", gso, gro), func(t *testing.T) { f(t, gso, gro) })
		}
	}
}

// without turns off what the kernel can, as in a kernel that cannot.
func (s *Socket) without(tb testing.TB, gso, gro bool) {
	tb.Helper()
	if gso && !s.writer.gso || gro && !s.reader.gro {
		tb.Skip("the kernel has no UDP_SEGMENT or UDP_GRO")
	}
	s.writer.gso = gso
	if !gro {
		err := control(s.raw, func(fd int) error { return unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_GRO, 0) })
		if err != nil {
			tb.Fatal(err)
		}
		s.reader = reader{}
		s.reader.prepare(false)
	}
}

// Sizes, destinations and marks change within a batch: everything arrives, whole,
// once, in order and with its own mark.
func TestBatches(t *testing.T) {
	var sizes []int
	for _, run := range []struct{ n, size, last int }{
		{1, 1200, 0}, {64, 1200, 0}, {65, 1200, 3}, {10, 1200, 1199}, {3, 1, 0}, {1, 0, 0}, {2, 0, 0}, {200, 17, 16}, {44, 1472, 1471}, {60, 1452, 60}, {5, 9000, 1}, {7, 1400, 1401},
	} {
		for range run.n {
			sizes = append(sizes, run.size)
		}
		if run.last > 0 {
			sizes = append(sizes, run.last)
		}
	}
	for _, local := range []netip.AddrPort{loopback4, loopback6, {}} {
		offloads(t, func(t *testing.T, gso, gro bool) {
			server, client := pair(t, local)
			server.without(t, gso, gro)
			client.without(t, gso, gro)
			var batch []Packet
			for i, size := range sizes {
				batch = append(batch, Packet{Data: content(i, size), ECN: uint8(i / 20 % 4)})
			}
			n, err := client.Write(batch)
			if n != len(batch) || err != nil {
				t.Fatalf("wrote %d of %d packets: %v", n, len(batch), err)
			}
			if client.writer.gso != gso {
				t.Error("the kernel refused to send several packets in a message")
			}
			for i, p := range receive(t, server, len(batch), 50, 9000) {
				if !bytes.Equal(p.Data, batch[i].Data) {
					t.Fatalf("packet %d has %d bytes, expected the %d that were sent", i, len(p.Data), len(batch[i].Data))
				}
				if p.ECN != batch[i].ECN {
					t.Fatalf("packet %d has mark %d, expected %d", i, p.ECN, batch[i].ECN)
				}
				if p.Addr != client.Local() {
					t.Fatalf("packet %d is from %v, expected %v", i, p.Addr, client.Local())
				}
			}
		})
	}
}

// One socket sends to several others.
func TestDestinations(t *testing.T) {
	offloads(t, func(t *testing.T, gso, gro bool) {
		from := open(t, Config{}) // IPv6 and IPv4
		from.without(t, gso, gro)
		var to []*Socket
		for _, local := range []netip.AddrPort{loopback4, loopback4, loopback6} {
			to = append(to, open(t, Config{Local: local}))
		}
		var batch []Packet
		for i := range 90 {
			batch = append(batch, Packet{Data: content(i, 100), Addr: to[i/5%3].Local(), ECN: 2})
		}
		if n, err := from.Write(batch); n != 90 || err != nil {
			t.Fatal(n, err)
		}
		for j, s := range to {
			i := 5 * j
			for k, p := range receive(t, s, 30, 7, 100) {
				if !bytes.Equal(p.Data, content(i, 100)) || p.ECN != 2 || p.Addr.Port() != from.Local().Port() {
					t.Fatalf("packet %d of socket %d: mark %d, from %v", k, j, p.ECN, p.Addr)
				}
				if i++; i%5 == 0 {
					i += 10
				}
			}
		}
		if n, err := from.Write([]Packet{{Data: []byte("a"), Addr: to[0].Local()}, {Data: []byte("b")}}); n != 1 || err == nil {
			t.Errorf("a packet without an address: %d, %v", n, err)
		}
		if p := receive(t, to[0], 1, 4, 100); string(p[0].Data) != "a" {
			t.Errorf("the packet before one without an address arrived as %q", p[0].Data)
		}
	})
}

// What is larger than the memory for it is dropped, and nothing else.
func TestTooLargeToReceive(t *testing.T) {
	offloads(t, func(t *testing.T, gso, gro bool) {
		server, client := pair(t, loopback4)
		server.without(t, gso, gro)
		client.without(t, gso, gro)
		var batch []Packet
		for _, size := range []int{101, 101, 100, 50, 3000, 100, 101, 99} {
			batch = append(batch, Packet{Data: content(len(batch), size)})
		}
		if n, err := client.Write(batch); n != len(batch) || err != nil {
			t.Fatal(n, err)
		}
		got := receive(t, server, 4, 8, 100)
		for i, place := range []int{2, 3, 5, 7} {
			if !bytes.Equal(got[i].Data, batch[place].Data) {
				t.Errorf("packet %d has %d bytes, expected %d", i, len(got[i].Data), len(batch[place].Data))
			}
		}
	})
}

func TestRefused(t *testing.T) {
	for _, local := range []netip.AddrPort{loopback4, loopback6} {
		server, client := pair(t, local)
		server.Close()
		limit(t, client)
		batch := []Packet{{Data: make([]byte, 100)}}
		if _, err := client.Write(batch); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Read(batch); !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("read after a refused packet: %v", err)
		}
		if _, err := client.Write(batch); err != nil {
			t.Fatal(err)
		}
		if n, err := client.Write(batch); n != 0 || !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("write after a refused packet: %d, %v", n, err)
		}
		again := open(t, Config{Local: server.Local()})
		if n, err := client.Write(batch); n != 1 || err != nil {
			t.Errorf("write after the refusal was reported: %d, %v", n, err)
		}
		receive(t, again, 1, 1, 100)
	}
}

func TestClose(t *testing.T) {
	server, _ := pair(t, loopback4)
	done := make(chan error)
	go func() {
		_, err := server.Read([]Packet{{Data: make([]byte, 100)}})
		done <- err
	}()
	waiting(t, server)
	server.Close()
	if err := <-done; !errors.Is(err, net.ErrClosed) {
		t.Errorf("read of a socket that was closed: %v", err)
	}
	if _, err := server.Write([]Packet{{Data: []byte("x"), Addr: server.Local()}}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("write to a closed socket: %v", err)
	}
}

// waiting returns when the reader has asked the kernel once: it has received a
// packet that is too large to hand out.
func waiting(t *testing.T, s *Socket) {
	t.Helper()
	from := open(t, Config{Remote: s.Local()})
	if _, err := from.Write([]Packet{{Data: make([]byte, 1000)}}); err != nil {
		t.Fatal(err)
	}
	for {
		var queued int
		err := control(s.raw, func(fd int) (err error) { queued, err = unix.IoctlGetInt(fd, unix.SIOCINQ); return err })
		if err != nil {
			t.Fatal(err)
		}
		if queued == 0 {
			return
		}
		runtime.Gosched()
	}
}

func TestDeadline(t *testing.T) {
	server, client := pair(t, loopback4)
	batch := []Packet{{Data: make([]byte, 100)}}
	if err := server.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Read(batch); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read after its deadline: %v", err)
	}
	if _, err := client.Write(batch); err != nil {
		t.Fatal(err)
	}
	limit(t, server)
	if n, err := server.Read(batch); n != 1 || err != nil {
		t.Errorf("read with a later deadline: %d, %v", n, err)
	}
}

func TestOpenErrors(t *testing.T) {
	taken := open(t, Config{Local: loopback4})
	for name, test := range map[string]struct {
		config Config
		want   unix.Errno
	}{
		"address in use":             {Config{Local: taken.Local()}, unix.EADDRINUSE},
		"address of another machine": {Config{Local: netip.MustParseAddrPort("192.0.2.77:0")}, unix.EADDRNOTAVAIL},
		"no such device":             {Config{Device: "nosuchdevice"}, unix.ENODEV},
		"families":                   {Config{Local: loopback4, Remote: loopback6}, unix.EAFNOSUPPORT},
	} {
		if name == "no such device" && os.Geteuid() != 0 {
			continue
		}
		s, err := Open(test.config)
		if !errors.Is(err, test.want) {
			t.Errorf("%s: error is %v, expected %v", name, err, test.want)
		}
		if err == nil {
			s.Close()
		}
	}
}

func TestNoAllocations(t *testing.T) {
	offloads(t, func(t *testing.T, gso, gro bool) {
		server, client := pair(t, loopback6)
		server.without(t, gso, gro)
		client.without(t, gso, gro)
		limit(t, server)
		out, in := make([]Packet, 40), make([]Packet, 40)
		for i := range out {
			out[i].Data, in[i].Data = make([]byte, 1200), make([]byte, 1200)
		}
		got := testing.AllocsPerRun(100, func() {
			if _, err := client.Write(out); err != nil {
				t.Fatal(err)
			}
			for n := 0; n < len(out); {
				k, err := server.Read(in)
				if err != nil {
					t.Fatal(err)
				}
				n += k
			}
		})
		if got != 0 {
			t.Errorf("%v allocations for 40 packets", got)
		}
	})
}

// A kernel or device that refuses several packets in a message gets them one by
// one from then on. Linux does so for a socket without checksums.
func TestFallBack(t *testing.T) {
	server, client := pair(t, loopback4)
	if !client.writer.gso {
		t.Skip("the kernel has no UDP_SEGMENT")
	}
	err := control(client.raw, func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_NO_CHECK, 1) })
	if err != nil {
		t.Fatal(err)
	}
	batch := make([]Packet, 300)
	for i := range batch {
		batch[i].Data = content(i, 1000-i/100)
	}
	for range 2 {
		if n, err := client.Write(batch); n != len(batch) || err != nil {
			t.Fatalf("wrote %d packets: %v", n, err)
		}
		for i, p := range receive(t, server, len(batch), 64, 1000) {
			if !bytes.Equal(p.Data, batch[i].Data) {
				t.Fatalf("packet %d has %d bytes, expected the %d that were sent", i, len(p.Data), len(batch[i].Data))
			}
		}
		if client.writer.gso {
			t.Error("messages of several packets are tried again after they were refused")
		}
	}
}

func BenchmarkLoopback(b *testing.B) {
	for _, gso := range []bool{true, false} {
		b.Run(fmt.Sprintf("GSO and GRO %v", gso), func(b *testing.B) {
			server, client := pair(b, loopback4)
			server.without(b, gso, gso)
			client.without(b, gso, gso)
			const size, packets = 1400, 64
			out, in := make([]Packet, packets), make([]Packet, packets)
			for i := range out {
				out[i].Data, in[i].Data = make([]byte, size), make([]byte, size)
			}
			if err := server.SetReadDeadline(time.Now().Add(10 * time.Minute)); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			sent := 0
			for b.Loop() {
				if _, err := client.Write(out); err != nil {
					b.Fatal(err)
				}
				for n := 0; n < packets; {
					k, err := server.Read(in)
					if err != nil {
						b.Fatal(err)
					}
					n += k
				}
				sent += packets
			}
			seconds := b.Elapsed().Seconds()
			b.ReportMetric(float64(sent)/seconds, "packets/s")
			b.ReportMetric(float64(sent)*size*8/1e9/seconds, "Gbit/s")
		})
	}
}

// TestRefusals: a socket that is not connected learns at which of its other ends nobody
// listens any more, and goes on with the others.
func TestRefusals(t *testing.T) {
	for _, local := range []netip.AddrPort{loopback4, loopback6, {}} {
		server := open(t, Config{Local: local})
		limit(t, server)
		at := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), server.Local().Port())
		if local.Addr().Is6() {
			at = server.Local()
		}
		gone, alive := open(t, Config{Remote: at}), open(t, Config{Remote: at})
		batch := []Packet{{Data: make([]byte, 100)}}
		for _, c := range []*Socket{gone, alive} {
			if _, err := c.Write(batch); err != nil {
				t.Fatal(err)
			}
			receive(t, server, 1, 1, 100)
		}
		gone.Close()
		if server.Connected() || !alive.Connected() {
			t.Error("which socket is connected is not known")
		}
		batch[0].Addr = gone.Local()
		if _, err := server.Write(batch); err != nil {
			t.Fatal(err)
		}
		if _, err := server.Read([]Packet{{Data: make([]byte, 100)}}); !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("%v: read after a refused packet: %v", local, err)
		}
		if got := server.Refusals(); !slices.Equal(got, []netip.AddrPort{gone.Local()}) {
			t.Errorf("%v: refused by %v, expected %v", local, got, gone.Local())
		}
		if got := server.Refusals(); len(got) > 0 {
			t.Errorf("%v: refused a second time by %v", local, got)
		}
		batch[0].Addr = alive.Local()
		if n, err := server.Write(batch); n != 1 || err != nil {
			t.Errorf("%v: write to the one who is alive: %d, %v", local, n, err)
		}
		receive(t, alive, 1, 1, 100)
	}
}
