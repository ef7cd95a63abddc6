package core

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"linktrial/protocols/haul/wire"
)

// pair makes two ends with an open connection over a path without faults.
func pair(t testing.TB, client, server Config) *sim {
	s := newSim(client, server, &path{delay: time.Millisecond}, &path{delay: time.Millisecond}, 5)
	s.offset[0] = time.Second
	for s.step(time.Second) && (s.conns[1] == nil || s.conns[1].packetsReceived == 0 || !s.conns[0].Open()) {
	}
	if s.conns[1] == nil || s.conns[1].packetsReceived == 0 {
		t.Fatal("no connection")
	}
	return s
}

// sealed is a packet of an end with any body.
func (s *sim) sealed(end int, body []byte) []byte {
	c := s.conns[end]
	n := c.packets.end()
	c.packets.push(sentPacket{})
	h := wire.AppendData(nil, c.peer.id, n, false)
	return c.keys.Seal(h, h[:len(h):len(h)], n, body)
}

// works carries a message to the client, with both also to the server; or an
// end is closed already.
func (s *sim) works(t testing.TB, both bool) {
	for end, c := range s.conns {
		if over, err := c.Closed(); over {
			if !errors.Is(err, ErrProtocol) && !errors.Is(err, ErrAborted) && err != nil {
				t.Fatalf("end %d ended: %v", end, err)
			}
			return
		}
	}
	const stream = 77
	text := bytes.Repeat([]byte("genuine "), 1000)
	for end, c := range s.conns {
		if err := c.Send(s.clock(end), Message{Stream: stream, Class: wire.ReliableUnsequenced, Data: text}); err != nil && !errors.Is(err, ErrFinished) {
			t.Fatal(err)
		}
	}
	var got [2]bool
	s.work = func(s *sim) {
		for end, c := range s.conns {
			for m, ok := c.Next(); ok; m, ok = c.Next() {
				got[end] = got[end] || m.Stream == stream && bytes.Equal(m.Data, text)
			}
		}
	}
	limit := s.now + 20*time.Minute
	for s.step(limit) && (!got[0] || both && !got[1]) {
		for end, c := range s.conns {
			if over, _ := c.Closed(); over {
				return
			}
			if held := c.Stats().Held; held > 5*c.config.Buffer+3<<20 {
				t.Fatalf("end %d holds %d bytes", end, held)
			}
		}
	}
	if !got[0] || both && !got[1] {
		t.Fatal("a genuine message did not arrive")
	}
}

// FuzzReceive gives an established connection bodies that its peer has sealed,
// and packets that nobody has: lengths of two bytes cut the input into them.
func FuzzReceive(f *testing.F) {
	add := func(bodies ...[]byte) {
		var all []byte
		for _, b := range bodies {
			all = append(binary.BigEndian.AppendUint16(all, uint16(len(b))), b...)
		}
		f.Add(all, true)
		f.Add(all, false)
	}
	a := wire.Ack{Largest: 3, Received: 3, Credit: 1 << 20, Next: 1, Ranges: []wire.Range{{Missing: 1, Arrived: 1}}}
	add(wire.AppendAck(nil, &a, 100), wire.AppendPing(nil), wire.AppendSuspend(nil))
	token := make([]byte, wire.TokenSize)
	add(wire.AppendToken(nil, wire.FrameChallenge, token), wire.AppendToken(nil, wire.FrameResponse, token))
	add(wire.AppendRequest(nil, wire.Request{Delay: 1}), wire.AppendClose(nil, wire.Close{}))
	item := func(i wire.Item) []byte { return wire.AppendItem(nil, &i, false) }
	add(append(wire.AppendSymbol(nil, 0), item(wire.Item{Number: 5, Offset: 60000, Data: []byte("x")})...),
		append(wire.AppendSymbol(nil, 9), item(wire.Item{Kind: wire.ItemVoid, Number: 0, Offset: 9})...),
		append(wire.AppendSymbol(nil, 4), item(wire.Item{Kind: wire.ItemCancel, Number: 1 << 40, Offset: 9})...),
		append(wire.AppendSymbol(nil, 5), item(wire.Item{Kind: wire.ItemFinish, Number: 0})...),
		append(wire.AppendUnreliable(nil), item(wire.Item{Class: wire.UnreliableSequenced, Number: 1 << 50, Last: true, Data: []byte("x")})...),
		append(wire.AppendRepair(nil, 0, 3, []byte{2}), 0, 9, 9, 9, 9, 9, 9))
	f.Fuzz(func(t *testing.T, input []byte, seal bool) {
		s := pair(t, Config{Buffer: MinBuffer}, Config{Buffer: MinBuffer})
		s.conns[1].Bytewise(0)
		for len(input) >= 2 {
			n := min(int(binary.BigEndian.Uint16(input)), len(input)-2)
			p := input[2 : 2+n]
			input = input[2+n:]
			if seal {
				p = s.sealed(0, p)
			}
			s.arrive(arrival{to: 1, data: append([]byte(nil), p...)})
			s.flush()
		}
		s.works(t, !seal)
	})
}

// TestDropped holds that packets which are not the connection's change nothing
// and are counted.
func TestDropped(t *testing.T) {
	genuine := func(s *sim) []byte { return s.sealed(0, wire.AppendPing(nil)) }
	for _, c := range []struct {
		name   string
		packet func(s *sim) []byte
		count  func(d Dropped) uint64
	}{
		{"truncated header", func(s *sim) []byte { return genuine(s)[:5] }, func(d Dropped) uint64 { return d.Malformed }},
		{"truncated body", func(s *sim) []byte { return genuine(s)[:12] }, func(d Dropped) uint64 { return d.Forged }},
		{"flipped bit", func(s *sim) []byte { p := genuine(s); p[len(p)-1] ^= 1; return p }, func(d Dropped) uint64 { return d.Forged }},
		{"changed number", func(s *sim) []byte { p := genuine(s); p[7]++; return p }, func(d Dropped) uint64 { return d.Forged }},
		{"unknown frame", func(s *sim) []byte { return s.sealed(0, []byte{0xff}) }, func(d Dropped) uint64 { return d.Malformed }},
		{"truncated frame", func(s *sim) []byte { return s.sealed(0, []byte{byte(wire.FrameAck), 1}) }, func(d Dropped) uint64 { return d.Malformed }},
		{"reflected", func(s *sim) []byte {
			p := s.sealed(1, wire.AppendPing(nil))
			binary.BigEndian.PutUint32(p[1:], s.conns[1].id)
			return p
		}, func(d Dropped) uint64 { return d.Forged + d.Replayed }},
		{"another version", func(s *sim) []byte { p := genuine(s); p[0]++; return p }, func(d Dropped) uint64 { return d.Version }},
		{"an answer to a server", func(*sim) []byte { return wire.AppendAnswer(nil, wire.Answer{}) }, func(d Dropped) uint64 { return d.Unexpected }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := pair(t, Config{}, Config{})
			p := c.packet(s)
			v := s.conns[1]
			before, was := v.Stats(), v.packetsReceived
			v.Receive(s.clock(1), p, addresses[0], 0)
			after := v.Stats()
			if c.count(after.Dropped) != c.count(before.Dropped)+1 || v.packetsReceived != was {
				t.Errorf("not counted: %+v, then %+v", before.Dropped, after.Dropped)
			}
			after.Dropped, before.Dropped = Dropped{}, Dropped{}
			after.PacketsReceived = before.PacketsReceived
			if after != before {
				t.Errorf("changed:\n%+v\n%+v", before, after)
			}
			s.works(t, true)
		})
	}
}

func TestReplayed(t *testing.T) {
	s := pair(t, Config{}, Config{})
	p := s.sealed(0, wire.AppendPing(nil))
	v := s.conns[1]
	v.Receive(s.clock(1), append([]byte(nil), p...), addresses[0], 0)
	elsewhere := netip.MustParseAddrPort("10.9.9.9:9")
	v.Receive(s.clock(1), append([]byte(nil), p...), elsewhere, 0)
	if v.Stats().Dropped.Replayed != 1 || v.Remote() != addresses[0] {
		t.Errorf("a replayed packet from elsewhere: %+v, remote %v", v.Stats().Dropped, v.Remote())
	}
}

// refusal is the error of a client that says hello to a server of another kind.
func refusal(t *testing.T, client, server Config, change func([]byte)) string {
	s := newSim(client, server, &path{delay: time.Millisecond}, &path{delay: time.Millisecond}, 5)
	for range 1000 {
		s.now += 10 * time.Millisecond
		if n, _ := s.conns[0].Transmit(s.now, s.buf[:]); n > 0 {
			change(s.buf[:n])
			var reply [1500]byte
			_, _, r := s.listener.Receive(s.now, s.buf[:n], addresses[0], 0, reply[:])
			s.conns[0].Receive(s.now, r, addresses[1], 0)
		}
		if over, err := s.conns[0].Closed(); over {
			if !errors.Is(err, ErrRefused) {
				t.Fatalf("ended with %v", err)
			}
			return err.Error()
		}
	}
	t.Fatal("not refused")
	return ""
}

func TestRefusals(t *testing.T) {
	none := func([]byte) {}
	key := func(b byte) (c Config) {
		c.Secure.PSK = bytes.Repeat([]byte{b}, 32)
		return c
	}
	plain := Config{}
	plain.Secure.Plain = true
	for name, got := range map[string]string{
		"another version":         refusal(t, Config{}, Config{}, func(p []byte) { p[0]++ }),
		"another key":             refusal(t, key(1), key(2), none),
		"a key, and none":         refusal(t, key(1), Config{}, none),
		"encryption, and plain":   refusal(t, Config{}, plain, none),
		"plain, and encryption":   refusal(t, plain, Config{}, none),
		"no key where one is due": refusal(t, Config{}, key(1), none),
	} {
		if strings.Contains(got, "\n") || len(got) > 250 {
			t.Errorf("%s: %q is not one sentence", name, got)
		}
		want := "another encryption or pre-shared key"
		if name == "another version" {
			want = "version"
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %q does not say %q", name, got, want)
		}
	}
}

// TestHelloFlood holds that hellos from many addresses are asked for cookies
// from the 65th on, and harm no connection.
func TestHelloFlood(t *testing.T) {
	s := pair(t, Config{}, Config{})
	l := s.listener
	retries, answered := 0, 0
	for i := range 3_000 {
		config := Config{Random: random(uint64(1000 + i%200))}
		c, err := Dial(config, addresses[1], nil)
		if err != nil {
			t.Fatal(err)
		}
		from := netip.AddrPortFrom(netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)}), 9)
		n, _ := c.Transmit(0, s.buf[:])
		var reply [1500]byte
		conn, _, r := l.Receive(s.clock(1), s.buf[:n], from, 0, reply[:])
		if len(r) > 3*n {
			t.Fatalf("%d bytes answer %d", len(r), n)
		}
		if r != nil {
			retries++
		}
		if conn != nil {
			answered++
			sent := 0
			_ = conn.Send(s.clock(1), Message{Data: make([]byte, 10_000)})
			for k, _ := conn.Transmit(s.clock(1), s.buf[:]); k > 0; k, _ = conn.Transmit(s.clock(1), s.buf[:]) {
				sent += k
			}
			if sent > 3*n {
				t.Fatalf("%d bytes were sent to an address that nobody has proven, for %d", sent, n)
			}
		}
	}
	if answered > halfOpenFree || retries < 2_900 || len(l.conns) > halfOpenFree+1 {
		t.Errorf("%d connections, %d retries, %d kept", answered, retries, len(l.conns))
	}
	s.works(t, true)
	if over, err := s.conns[1].Closed(); over {
		t.Errorf("the connection ended: %v", err)
	}
}

// TestCookieFlood holds that clients with cookies, who then say nothing more, are bounded.
func TestCookieFlood(t *testing.T) {
	s := pair(t, Config{}, Config{})
	l := s.listener
	l.Always = true
	for i := range halfOpenMost + 200 {
		c, err := Dial(Config{Random: random(uint64(1000 + i))}, addresses[1], nil)
		if err != nil {
			t.Fatal(err)
		}
		var reply [1500]byte
		n, _ := c.Transmit(0, s.buf[:])
		_, _, r := l.Receive(s.clock(1), s.buf[:n], addresses[0], 0, reply[:])
		c.Receive(0, r, addresses[1], 0)
		n, _ = c.Transmit(time.Second, s.buf[:])
		if conn, fresh, _ := l.Receive(s.clock(1), s.buf[:n], addresses[0], 0, reply[:]); conn == nil || !fresh {
			t.Fatalf("client %d with a cookie gets no connection", i)
		}
	}
	if len(l.conns) > halfOpenMost+1 {
		t.Errorf("%d connections are kept", len(l.conns))
	}
	s.works(t, true)
}

// TestReaderStops holds that a receiver that does not read stops the sender of
// reliable messages, and nothing else.
func TestReaderStops(t *testing.T) {
	s := pair(t, Config{Buffer: MinBuffer}, Config{Buffer: MinBuffer})
	c, v := s.conns[0], s.conns[1]
	for range 40 {
		if err := c.Send(s.clock(0), Message{Data: make([]byte, 10_000)}); err != nil {
			t.Fatal(err)
		}
	}
	for s.step(s.now + 10*time.Second) {
		if s.now > 10*time.Second {
			break
		}
	}
	if held := v.Stats().Held; held > 3*MinBuffer || c.Queued() < 300_000 {
		t.Errorf("%d bytes held, %d queued", held, c.Queued())
	}
	if n := c.Stats().PacketsSent; n > 400 {
		t.Errorf("%d packets were sent to an end that does not read", n)
	}
	// The other way, and what is unreliable, still goes.
	_ = v.Send(s.clock(1), Message{Data: []byte("back")})
	_ = c.Send(s.clock(0), Message{Class: wire.UnreliableSequenced, Priority: 1, Data: []byte("unreliable")})
	back, unreliable, got := false, false, 0
	s.work = func(*sim) {
		if m, ok := c.Next(); ok {
			back = back || string(m.Data) == "back"
		}
		if m, ok := v.NextOf(func(r *Received) bool { return !r.Class.Reliable() }); ok {
			unreliable = unreliable || string(m.Data) == "unreliable"
		}
	}
	for s.step(20*time.Second) && (!back || !unreliable) {
	}
	if !back || !unreliable {
		t.Errorf("back %v, unreliable %v", back, unreliable)
	}
	s.work = func(*sim) {
		for m, ok := v.Next(); ok; m, ok = v.Next() {
			got += len(m.Data)
		}
	}
	for s.step(40*time.Second) && got < 400_000 {
	}
	if got != 400_000 {
		t.Errorf("%d bytes arrived after all", got)
	}
}

// TestGone holds how often an end asks when the other is gone.
func TestGone(t *testing.T) {
	s := pair(t, Config{}, Config{})
	s.conns[1], s.asleep[1] = nil, time.Hour
	_ = s.conns[0].Send(s.clock(0), Message{Data: []byte("x")})
	from := s.now
	for s.step(from + 15*time.Minute) {
	}
	n := s.conns[0].Stats().PacketsSent
	if most := uint64(15*time.Minute/probeEvery) + 1000; n > most || n < 100 {
		t.Errorf("%d packets in 15 minutes, expected up to %d", n, most)
	}
	for s.step(from + 45*time.Minute) {
	}
	if more := s.conns[0].Stats().PacketsSent - n; more > uint64(30*time.Minute/probeSeldom)+100 {
		t.Errorf("%d packets in the half hour after that", more)
	}
}

// TestPrioritiesShareBuffer holds that messages which wait in order behind one
// of a lower priority do not take the buffer that this one needs.
func TestPrioritiesShareBuffer(t *testing.T) {
	s := pair(t, Config{Buffer: MinBuffer}, Config{Buffer: MinBuffer})
	s.paths[0].rate = 100e3
	c, v := s.conns[0], s.conns[1]
	send := func(priority uint8, size int) {
		t.Helper()
		if err := c.Send(s.clock(0), Message{Priority: priority, Data: make([]byte, size)}); err != nil {
			t.Fatal(err)
		}
	}
	send(0, 32_000)
	for limit := s.now + time.Minute; s.step(limit) && c.Queued() > 20_000; {
	}
	for range 4 {
		send(1, 30_000)
	}
	got := 0
	s.work = func(*sim) {
		for m, ok := v.Next(); ok; m, ok = v.Next() {
			got += len(m.Data)
		}
	}
	for limit := s.now + time.Minute; s.step(limit) && got < 152_000; {
	}
	if got != 152_000 {
		t.Errorf("%d bytes arrived; %+v", got, v.Stats())
	}
}
