package protocoltest

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
)

// probeFaults are those of drivers that carry probes; their names begin with
// [ofProbe].
var probeFaults = []sabotage{
	{"probe-ends-early", "probe-alone", "a probe of 1.5s took"},
	{"probe-arrives-before-sent", "probe-alone", "delays from -"},
	{"probe-delays-in-us", "probe-alone", "on one machine"},
	{"probe-drops-tenth", "probe-alone", "expected all of some packets, once and in order"},
	{"probe-counts-twice", "probe-alone", "expected all of some packets, once and in order"},
	{"probe-values-of-client", "probe-alone", "expected the same values"},
	{"probe-does-not-add-up", "output", "expected sent less received"},
	{"probe-median-wrong", "output", "delays out of order"},
	{"probe-percentiles-wrong", "output", "percentiles_ns"},
	{"probe-bytes-wrong", "probe-alone", "size_bytes is"},
	{"probe-without-values", "probe-alone", "without the values of a probe"},
	{"probe-dies-of-sigterm", "probe-ended", "the client ended with exit code 1"},
	{"probe-ignores-sigterm", "probe-ended", "after SIGTERM: the client has not ended"},
	{"probe-mixes-probes", "probe-concurrent", "of 4 at once"},
	{"probe-one-at-a-time", "probe-concurrent", "of 4 at once"},
	{"probe-shares-port", "probe-port-taken", "has not ended"},
	{"probe-asks-for-ever", "probe-no-server", "has not ended"},
	{"probe-refused-is-internal", "probe-no-server", "said internal"},
	{"probe-asks-for-ever", "probe-server-killed", "has not ended"},
	{"probe-one-at-a-time", "probe-client-killed", "the client"},
	{"probe-stops-silently", "probe-stop-server", "no error event with aborted"},
	{"probe-ignores-sigterm", "probe-stop-server", "has not ended"},
	{"probe-hides-losses", "probe-lossy-link", "packets lost, the link lost"},
	{"probe-drops-tenth", "probe-lossy-link", "packets lost, the link lost"},
	{"probe-doubles-are-received", "probe-lossy-link", "packets lost, the link lost"},
	{"probe-delays-in-us", "probe-lossy-link", "over a link of 100ms"},
	{"probe-invents-doubles", "probe-lossy-link", "and duplicated, the link delivered"},
	{"probe-bytes-wrong", "from-server", "size_bytes is"},
	{"probe-drops-tenth", "from-server", "expected all of some packets, once and in order"},
	{"probe-sends-itself", "from-server-lossy-link", "size_bytes is"},
	{"probe-ends-early", "from-server", "a probe of 1.5s took"},
	{"probe-ignores-stop", "from-server-ended", "after SIGTERM: "},
	{"probe-mixes-probes", "from-server-both", "strays"},
	{"probe-sends-for-ever", "from-server-client-killed", "error event for the killed client's probe"},
	{"probe-stops-silently", "from-server-stop", "no error event with aborted"},
	{"probe-hides-losses", "from-server-lossy-link", "packets lost, the link lost"},
	{"probe-delays-in-us", "from-server-lossy-link", "over a link of 100ms"},
	{"probe-polls", "probe-idle-server", "at most 5 % and 10 wake-ups are expected"},
	{"probe-unmarked", "dscp", "the client sent"},
}

const ofProbe = "probe-"

// faultyProbes is the manifest of the driver with these faults.
var faultyProbes = strings.NewReplacer("summary: TCP with one fault", "summary: probes over UDP with one fault\nkind: probe", "network: tcp", "network: udp",
	"roles: [client, server, relay]", "roles: [client, server]", "features: [duration, dscp]", "features: [dscp, from-server]").Replace(faultyManifest)

// manifestOf is the manifest of the driver with a fault.
func manifestOf(fault string) string {
	if isOfProbe(fault) {
		return faultyProbes
	}
	return faultyManifest
}

func isOfProbe(fault string) bool { return strings.HasPrefix(fault, ofProbe) }

// probeMessage is a datagram, in JSON.
type probeMessage struct {
	Kind    string // hello, fetch, here, packet, stop, end, values, bye
	ID      string
	N       int64
	At      int64
	Padding string
	Sent    int64
	Values  *contract.ProbeMetrics
}

func (m *probeMessage) bytes() []byte {
	b, _ := json.Marshal(m) // of strings and numbers
	return b
}

const (
	probeInterval = 20 * time.Millisecond
	probeAgain    = 200 * time.Millisecond
)

// probePackets is a correct driver of probes but for one fault.
func probePackets(fault string) *harness.Packets {
	return &harness.Packets{
		Listen: func(ctx context.Context, p *contract.Parameters) (harness.PacketServer, error) {
			lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
				return c.Control(func(fd uintptr) {
					if fault == "probe-shares-port" {
						_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
					}
					_ = harness.MarkSocket(int(fd), p.DSCP)
				})
			}}
			c, err := lc.ListenPacket(ctx, "udp", net.JoinHostPort(p.Local.Address, strconv.Itoa(p.Local.Port)))
			if err != nil {
				return nil, err
			}
			return &probeServer{UDPConn: c.(*net.UDPConn), fault: fault, p: p, sessions: map[string]*probeSession{}, sending: map[string]*probeSending{}}, nil
		},
		Send: func(ctx context.Context, p *contract.Parameters, out *harness.Reporter) error {
			return (&probeClient{fault: fault, p: p, out: out}).send(ctx)
		},
	}
}

type probeClient struct {
	fault string
	p     *contract.Parameters
	out   *harness.Reporter
	conn  net.Conn
	sent  int64
	bytes int64
	began time.Time
}

func (c *probeClient) send(ctx context.Context) (err error) {
	d := net.Dialer{Control: harness.MarkControl(c.p.DSCP)}
	if c.fault == "probe-unmarked" {
		d.Control = nil
	}
	if c.p.Local.Address != "" {
		d.LocalAddr = &net.UDPAddr{IP: net.ParseIP(c.p.Local.Address)}
	}
	if c.conn, err = d.DialContext(ctx, "udp", net.JoinHostPort(c.p.Remote.Address, strconv.Itoa(c.p.Remote.Port))); err != nil {
		return err
	}
	defer c.conn.Close()
	began := time.Now()
	if c.p.Transfer.FromServer && c.fault != "probe-sends-itself" {
		return c.fetch(ctx, began)
	}
	if _, err := c.ask(ctx, &probeMessage{Kind: "hello", ID: c.p.Transfer.ID}, "here", began.Add(time.Duration(c.p.Limits.ConnectMS)*time.Millisecond)); err != nil {
		return c.told(err, contract.CodeConnectTimeout)
	}
	connect := time.Since(began)
	c.out.Connected(c.p.Transfer.ID, connect)
	c.began = time.Now()
	c.packets(ctx)
	if c.fault == "probe-dies-of-sigterm" && ctx.Err() != nil {
		return harness.Failf(contract.CodeAborted, "SIGTERM")
	}
	until := c.began.Add(time.Duration(c.p.Limits.TransferMS) * time.Millisecond)
	m, err := c.ask(context.WithoutCancel(ctx), &probeMessage{Kind: "end", ID: c.p.Transfer.ID, Sent: c.sent, N: c.bytes}, "values", until)
	if err != nil {
		if errors.Is(err, syscall.ECONNREFUSED) {
			return harness.Failf(contract.CodeReset, "the server has ended")
		}
		return c.told(err, contract.CodeTransferTimeout)
	}
	f := m.Values
	if c.fault == "probe-values-of-client" {
		f.Strays++
	}
	final := c.sample()
	c.out.Sample(c.p.Transfer.ID, final)
	c.out.Result(c.p.Transfer.ID, probeResult(c.fault, &contract.Result{SizeBytes: c.bytes, ElapsedNS: time.Since(c.began).Nanoseconds(), ConnectNS: connect.Nanoseconds(), Final: final, Probe: f}))
	return nil
}

// probeResult makes a result wrong.
func probeResult(fault string, r *contract.Result) *contract.Result {
	switch fault {
	case "probe-bytes-wrong":
		r.SizeBytes++
	case "probe-without-values":
		r.Probe = nil
		r.Digest = strings.Repeat("0", 64)
	}
	return r
}

func (c *probeClient) sample() *contract.Sample {
	return &contract.Sample{ElapsedNS: time.Since(c.began).Nanoseconds(), SentBytes: c.bytes}
}

// packets sends until the time is up or ctx ends.
func (c *probeClient) packets(ctx context.Context) {
	end := time.Duration(c.p.Transfer.DurationMS) * time.Millisecond
	if c.fault == "probe-ends-early" {
		end /= 3
	}
	if c.fault == "probe-ignores-sigterm" {
		ctx = context.WithoutCancel(ctx)
	}
	tick := time.NewTicker(probeInterval)
	defer tick.Stop()
	for end == 0 || time.Since(c.began) < end {
		b := (&probeMessage{Kind: "packet", ID: c.p.Transfer.ID, N: c.sent, At: time.Now().UnixNano(), Padding: strings.Repeat("x", 40)}).bytes()
		c.sent++
		c.bytes += int64(len(b))
		_, _ = c.conn.Write(b)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// ask sends a question until it is answered.
func (c *probeClient) ask(ctx context.Context, q *probeMessage, kind string, until time.Time) (*probeMessage, error) {
	defer context.AfterFunc(ctx, func() { _ = c.conn.SetReadDeadline(time.Unix(1, 0)) })()
	buf := make([]byte, 64<<10)
	for ctx.Err() == nil {
		if time.Now().After(until) && c.fault != "probe-asks-for-ever" {
			return nil, os.ErrDeadlineExceeded
		}
		_, err := c.conn.Write(q.bytes())
		if err == nil {
			_ = c.conn.SetReadDeadline(time.Now().Add(probeAgain))
			var n int
			for err == nil {
				var m probeMessage
				if n, err = c.conn.Read(buf); err == nil && json.Unmarshal(buf[:n], &m) == nil && m.Kind == kind && m.ID == c.p.Transfer.ID {
					return &m, nil
				}
			}
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) && c.fault != "probe-asks-for-ever" {
			return nil, err
		}
	}
	return nil, ctx.Err()
}

// told is an error with the code that it has, or this one where its time was up.
func (c *probeClient) told(err error, late contract.Code) error {
	switch {
	case c.fault == "probe-refused-is-internal" && errors.Is(err, syscall.ECONNREFUSED):
		return harness.Failf(contract.CodeInternal, "refused")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return harness.Failf(late, "no answer in time")
	case errors.Is(err, context.Canceled):
		return harness.Failf(contract.CodeAborted, "SIGTERM")
	}
	return err
}

type probeServer struct {
	*net.UDPConn
	fault string
	p     *contract.Parameters
	out   *harness.Reporter

	mu       sync.Mutex
	sessions map[string]*probeSession // by identity
	sending  map[string]*probeSending
}

type probeSession struct {
	began, last time.Time
	sampled     time.Time
	seen        map[int64]bool
	delays      []int64
	f           contract.ProbeMetrics
	highest     int64
	ending      bool
	done        bool
}

func (s *probeServer) Serve(ctx context.Context, out *harness.Reporter) error {
	s.out = out
	if s.fault == "probe-ignores-sigterm" {
		ctx = context.WithoutCancel(ctx)
	}
	defer context.AfterFunc(ctx, func() { _ = s.SetReadDeadline(time.Unix(1, 0)) })()
	if s.fault == "probe-polls" {
		go func() {
			for ; ctx.Err() == nil; spun.Add(1) {
				time.Sleep(5 * time.Millisecond)
			}
		}()
	}
	buf := make([]byte, 64<<10)
	for {
		n, from, err := s.ReadFromUDPAddrPort(buf)
		if ctx.Err() != nil {
			break
		}
		var m probeMessage
		if err != nil || json.Unmarshal(buf[:n], &m) != nil {
			continue // the client has ended
		}
		answer := func(a *probeMessage) { _, _ = s.WriteToUDPAddrPort(a.bytes(), from) }
		if !s.takeSending(&m, answer) {
			s.take(&m, n, answer)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, x := range s.sending {
		if !x.done && s.fault != "probe-stops-silently" {
			x.done = true
			out.Fail(id, harness.Failf(contract.CodeAborted, "SIGTERM"))
		}
	}
	for id, x := range s.sessions {
		if !x.done && s.fault != "probe-stops-silently" {
			out.Fail(id, harness.Failf(contract.CodeAborted, "SIGTERM"))
		}
	}
	return nil
}

var probesOpen atomic.Int64

func (s *probeServer) take(m *probeMessage, size int, answer func(*probeMessage)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.sessions[m.ID]
	if x == nil {
		if m.Kind != "hello" || s.fault == "probe-one-at-a-time" && probesOpen.Load() > 0 {
			return
		}
		probesOpen.Add(1)
		x = &probeSession{began: time.Now(), seen: map[int64]bool{}, highest: -1}
		s.sessions[m.ID] = x
		s.out.Connected(m.ID, 0)
	}
	switch m.Kind {
	case "hello":
		answer(&probeMessage{Kind: "here", ID: m.ID})
	case "packet":
		if s.fault == "probe-mixes-probes" {
			for id, o := range s.sessions {
				if id != m.ID && !o.done {
					o.f.Strays++
				}
			}
		}
		x.packet(s.fault, m, size)
		if s.p.SampleIntervalMS > 0 && time.Since(x.sampled) >= time.Duration(s.p.SampleIntervalMS)*time.Millisecond {
			x.sampled = time.Now()
			s.out.Sample(m.ID, x.sample())
		}
	case "end":
		if x.done {
			answer(&probeMessage{Kind: "values", ID: m.ID, Values: &x.f})
			return
		}
		if x.ending {
			return
		}
		x.ending = true
		sent, bytes := m.Sent, m.N
		wait := time.Second
		if x.f.Received >= sent {
			wait = 0
		}
		time.AfterFunc(wait, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			x.settle(s.fault, sent, bytes)
			answer(&probeMessage{Kind: "values", ID: m.ID, Values: &x.f})
			probesOpen.Add(-1)
			final := x.sample()
			s.out.Sample(m.ID, final)
			s.out.Result(m.ID, probeResult(s.fault, &contract.Result{SizeBytes: x.f.ReceivedBytes, ElapsedNS: final.ElapsedNS, Final: final, Probe: &x.f}))
		})
	}
}

func (x *probeSession) sample() *contract.Sample {
	return &contract.Sample{ElapsedNS: x.last.Sub(x.began).Nanoseconds(), SentBytes: x.f.ReceivedBytes}
}

// packet counts an arrival.
func (x *probeSession) packet(fault string, m *probeMessage, size int) {
	x.last = time.Now()
	if fault == "probe-drops-tenth" && m.N%10 == 9 {
		return
	}
	if x.seen[m.N] && fault != "probe-doubles-are-received" || fault == "probe-counts-twice" && m.N == 1 {
		x.f.Duplicated++
	}
	if x.seen[m.N] && fault != "probe-doubles-are-received" {
		return
	}
	x.seen[m.N] = true
	if m.N < x.highest {
		x.f.Reordered++
	}
	x.highest = max(x.highest, m.N)
	x.f.Received++
	x.f.ReceivedBytes += int64(size)
	delay := x.last.UnixNano() - m.At
	switch fault {
	case "probe-arrives-before-sent":
		delay -= time.Second.Nanoseconds()
	case "probe-delays-in-us":
		if delay < time.Millisecond.Nanoseconds() {
			delay *= 1e6 // what the path alone needs, as it would be in other units
		} else {
			delay /= 1000
		}
	}
	x.delays = append(x.delays, delay)
}

// settle makes the values.
func (x *probeSession) settle(fault string, sent, bytes int64) {
	x.done = true
	f := &x.f
	f.Sent, f.SentBytes = sent, bytes
	switch fault {
	case "probe-hides-losses":
		f.Received, f.ReceivedBytes = sent, bytes
	case "probe-invents-doubles":
		f.Duplicated += 1000
	}
	f.Lost = f.Sent - f.Received
	run := int64(0)
	for n := range sent {
		if x.seen[n] || f.Lost <= 0 {
			run = 0
			continue
		}
		if run++; run == 1 {
			f.LossBursts++
		}
		f.LongestLossBurst = max(f.LongestLossBurst, run)
	}
	f.LossBursts, f.LongestLossBurst = min(f.LossBursts, max(f.Lost, 0)), min(f.LongestLossBurst, max(f.Lost, 0))
	if len(x.delays) > 0 {
		slices.Sort(x.delays)
		at := func(p int) int64 { return x.delays[max(0, (len(x.delays)*p+99)/100-1)] }
		sum := int64(0)
		for _, d := range x.delays {
			sum += d
		}
		f.Delay = &contract.Delays{MinNS: at(0), MeanNS: sum / int64(len(x.delays)), P50NS: at(50), P95NS: at(95), P99NS: at(99), MaxNS: at(100)}
		switch fault {
		case "probe-median-wrong":
			f.Delay.P50NS = f.Delay.MaxNS + 1
		case "probe-percentiles-wrong":
			f.Delay.PercentilesNS = []int64{f.Delay.MinNS, f.Delay.MaxNS}
		}
	}
	if fault == "probe-does-not-add-up" {
		f.Lost++
	}
}
