package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/pion/logging"
	"github.com/pion/sctp"
	"github.com/quic-go/quic-go"

	"linktrial/protocols/haul"
)

// Parameters of the comparison of short messages.
const (
	messageBytes  = 20
	messageCount  = 10
	messageEvery  = time.Second // as a status has it: each message and its acknowledgement are alone
	headerBytes   = 28          // IPv4 and UDP
	udpHeader     = 8
	costsPatience = 30 * time.Second
)

// traffic counts the packets of one direction, with their IP and UDP headers.
type traffic struct{ packets, bytes int }

func (t traffic) less(o traffic) traffic { return traffic{t.packets - o.packets, t.bytes - o.bytes} }

// relay passes packets between one client and a server, and counts them.
type relay struct {
	mu            sync.Mutex
	client        net.Addr
	near, far     *net.UDPConn
	forward, back traffic
}

func newRelay(tb testing.TB, server netip.AddrPort) *relay {
	tb.Helper()
	near, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		tb.Fatal(err)
	}
	far, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(server))
	if err != nil {
		tb.Fatal(err)
	}
	r := &relay{near: near, far: far}
	var both sync.WaitGroup
	both.Go(func() { r.pass(near, &r.forward, func(b []byte, _ net.Addr) { _, _ = far.Write(b) }) })
	both.Go(func() { r.pass(far, &r.back, func(b []byte, to net.Addr) { _, _ = near.WriteTo(b, to) }) })
	tb.Cleanup(func() { _ = near.Close(); _ = far.Close(); both.Wait() })
	return r
}

func (r *relay) pass(from *net.UDPConn, count *traffic, write func([]byte, net.Addr)) {
	b := make([]byte, 1<<16)
	for {
		n, sender, err := from.ReadFrom(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // a port that nobody listens at any more
		}
		r.mu.Lock()
		if from == r.near {
			r.client = sender
		}
		to := r.client
		count.packets++
		count.bytes += n + headerBytes
		r.mu.Unlock()
		write(b[:n], to)
	}
}

func (r *relay) addr() netip.AddrPort { return r.near.LocalAddr().(*net.UDPAddr).AddrPort() }

func (r *relay) counts() (forward, back traffic) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.forward, r.back
}

// messenger sends messages from one end to another.
type messenger struct {
	name string
	// saved is what a packet needs less where the transport is directly over IP.
	saved int
	// open connects through a relay to a server, and returns what sends a
	// message and what waits for its arrival.
	open func(tb testing.TB) (r *relay, send func([]byte) error, receive func() ([]byte, error))
}

var messengers = []messenger{
	{"UDP", 0, openUDP},
	{"Haul, noise, unreliable", 0, openHaul(haul.Options{}, haul.UnreliableSequenced)},
	{"Haul, noise, reliable", 0, openHaul(haul.Options{}, haul.ReliableSequenced)},
	{"Haul, noise, reliable, no coding", 0, openHaul(haul.Options{NoCoding: true}, haul.ReliableSequenced)},
	{"Haul, plain, unreliable", 0, openHaul(haul.Options{Plain: true}, haul.UnreliableSequenced)},
	{"Haul, plain, reliable", 0, openHaul(haul.Options{Plain: true}, haul.ReliableSequenced)},
	{"SCTP over UDP", 0, openSCTP},
	{"SCTP over IP", udpHeader, openSCTP},
	{"QUIC, datagram", 0, openQUIC(quicDatagrams)},
	{"QUIC, a stream for each message", 0, openQUIC(quicStreams)},
}

// cost is what a messenger needed.
type cost struct {
	openForward, openBack traffic
	forward, back         traffic
	err                   error
}

func (m *messenger) measure(tb testing.TB) (c cost) {
	r, send, receive := m.open(tb)
	time.Sleep(messageEvery) // what still belongs to connecting
	c.openForward, c.openBack = r.counts()
	for i := range messageCount {
		message := []byte(fmt.Sprintf("%*d", messageBytes, i))
		if err := send(message); err != nil {
			c.err = err
			return c
		}
		got, err := receive()
		if err != nil || string(got) != string(message) {
			c.err = fmt.Errorf("message %q arrived as %q: %w", message, got, err)
			return c
		}
		time.Sleep(messageEvery) // acknowledgements may be delayed
	}
	forward, back := r.counts()
	c.forward, c.back = forward.less(c.openForward), back.less(c.openBack)
	for _, t := range []*traffic{&c.openForward, &c.openBack, &c.forward, &c.back} {
		t.bytes -= m.saved * t.packets
	}
	return c
}

// BenchmarkMessageCost prints what a message of 20 bytes costs on the wire. Its
// results are bytes, so it takes the same time on every machine.
func BenchmarkMessageCost(b *testing.B) {
	costs := make([]cost, len(messengers))
	for b.Loop() {
		var all sync.WaitGroup
		for i := range messengers {
			all.Go(func() { costs[i] = messengers[i].measure(b) })
		}
		all.Wait()
	}
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "transport\tmessage, bytes\tback, bytes\tpackets, out and back\tconnecting, bytes\tpackets, out and back\t")
	for i, c := range costs {
		if c.err != nil {
			b.Errorf("%s: %v", messengers[i].name, c.err)
			continue
		}
		each := func(n int) float64 { return float64(n) / messageCount }
		fmt.Fprintf(table, "%s\t%.1f\t%.1f\t%.1f, %.1f\t%d, %d\t%d, %d\t\n", messengers[i].name, each(c.forward.bytes), each(c.back.bytes), each(c.forward.packets), each(c.back.packets),
			c.openForward.bytes, c.openBack.bytes, c.openForward.packets, c.openBack.packets)
		if c.forward.bytes < messageCount*(messageBytes+headerBytes-messengers[i].saved) {
			b.Errorf("%s: %d bytes for %d messages, less than they and their headers have", messengers[i].name, c.forward.bytes, messageCount)
		}
	}
	if err := table.Flush(); err != nil {
		b.Fatal(err)
	}
	b.Logf("a message of %d bytes every %v, with the headers of IPv4 and UDP:\n%s", messageBytes, messageEvery, text.String())
	b.ReportMetric(0, "ns/op") // says nothing here
}

func loopback() *net.UDPAddr { return &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)} }

func openUDP(tb testing.TB) (*relay, func([]byte) error, func() ([]byte, error)) {
	server, err := net.ListenUDP("udp4", loopback())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = server.Close() })
	r := newRelay(tb, server.LocalAddr().(*net.UDPAddr).AddrPort())
	client, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(r.addr()))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = client.Close() })
	return r, func(b []byte) error { _, err := client.Write(b); return err }, func() ([]byte, error) { return once(server) }
}

// once reads one message.
func once(r io.Reader) ([]byte, error) {
	b := make([]byte, 1500)
	n, err := r.Read(b)
	return b[:n], err
}

func openHaul(o haul.Options, class haul.Class) func(testing.TB) (*relay, func([]byte) error, func() ([]byte, error)) {
	return func(tb testing.TB) (*relay, func([]byte) error, func() ([]byte, error)) {
		ctx, cancel := context.WithTimeout(context.Background(), costsPatience)
		tb.Cleanup(cancel)
		l, err := haul.Listen(netip.MustParseAddrPort("127.0.0.1:0"), o)
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = l.Close() })
		r := newRelay(tb, l.Addr())
		o.Packet = 1472 // as over Ethernet, not the loopback's 64 KiB
		client, err := haul.Dial(ctx, netip.AddrPort{}, r.addr(), o)
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { client.Abort("measured") })
		server, err := l.Accept()
		if err != nil {
			tb.Fatal(err)
		}
		return r, func(b []byte) error { return client.Send(ctx, haul.Message{Class: class, Data: b}) },
			func() ([]byte, error) { m, err := server.Receive(ctx); return m.Data, err }
	}
}

// peer is a socket that talks with whoever has written to it last, which SCTP's
// library wants as a connection.
type peer struct {
	*net.UDPConn
	mu   sync.Mutex
	with net.Addr
}

func (p *peer) Read(b []byte) (int, error) {
	n, from, err := p.ReadFrom(b)
	p.mu.Lock()
	p.with = from
	p.mu.Unlock()
	return n, err
}

func (p *peer) Write(b []byte) (int, error) {
	p.mu.Lock()
	to := p.with
	p.mu.Unlock()
	return p.WriteTo(b, to)
}

func openSCTP(tb testing.TB) (*relay, func([]byte) error, func() ([]byte, error)) {
	socket, err := net.ListenUDP("udp4", loopback())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = socket.Close() })
	r := newRelay(tb, socket.LocalAddr().(*net.UDPAddr).AddrPort())
	conn, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(r.addr()))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	quiet := logging.NewDefaultLoggerFactory()
	accepted := make(chan *sctp.Stream, 1)
	go func() {
		a, err := sctp.Server(sctp.Config{NetConn: &peer{UDPConn: socket}, LoggerFactory: quiet})
		if err != nil {
			return
		}
		if s, err := a.AcceptStream(); err == nil {
			accepted <- s
		}
	}()
	a, err := sctp.Client(sctp.Config{NetConn: conn, LoggerFactory: quiet})
	if err != nil {
		tb.Fatal(err)
	}
	s, err := a.OpenStream(0, sctp.PayloadTypeWebRTCBinary)
	if err != nil {
		tb.Fatal(err)
	}
	var server *sctp.Stream
	return r, func(b []byte) error { _, err := s.Write(b); return err }, func() ([]byte, error) {
		if server == nil {
			select {
			case server = <-accepted:
			case <-time.After(costsPatience):
				return nil, errors.New("the server has no stream")
			}
		}
		return once(server)
	}
}

func quicDatagrams(client, server *quic.Conn) (func([]byte) error, func(context.Context) ([]byte, error)) {
	return client.SendDatagram, server.ReceiveDatagram
}

func quicStreams(client, server *quic.Conn) (func([]byte) error, func(context.Context) ([]byte, error)) {
	return func(b []byte) error {
			s, err := client.OpenUniStream()
			if err != nil {
				return err
			}
			_, err = s.Write(b)
			return errors.Join(err, s.Close())
		}, func(ctx context.Context) ([]byte, error) {
			s, err := server.AcceptUniStream(ctx)
			if err != nil {
				return nil, err
			}
			return io.ReadAll(s)
		}
}

func openQUIC(use func(client, server *quic.Conn) (func([]byte) error, func(context.Context) ([]byte, error))) func(testing.TB) (*relay, func([]byte) error, func() ([]byte, error)) {
	return func(tb testing.TB) (*relay, func([]byte) error, func() ([]byte, error)) {
		ctx, cancel := context.WithTimeout(context.Background(), costsPatience)
		tb.Cleanup(cancel)
		identity, err := certificate()
		if err != nil {
			tb.Fatal(err)
		}
		// Its search for the path's MTU is no part of a message.
		config := &quic.Config{EnableDatagrams: true, DisablePathMTUDiscovery: true}
		l, err := quic.ListenAddr("127.0.0.1:0", identity, config)
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = l.Close() })
		r := newRelay(tb, l.Addr().(*net.UDPAddr).AddrPort())
		client, err := quic.DialAddr(ctx, r.addr().String(), quicTrust(), config)
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = client.CloseWithError(0, "") })
		server, err := l.Accept(ctx)
		if err != nil {
			tb.Fatal(err)
		}
		send, receive := use(client, server)
		return r, send, func() ([]byte, error) { return receive(ctx) }
	}
}
