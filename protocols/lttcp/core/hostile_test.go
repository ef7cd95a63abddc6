package core

import (
	"math/rand/v2"
	"testing"
	"time"

	"linktrial/protocols/lttcp/wire"
)

// pair is two ends after their handshake.
func pair(t testing.TB, config Config) (client, server *Conn) {
	t.Helper()
	config.Random = random(1)
	client, err := Dial(config)
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewListener(config)
	if err != nil {
		t.Fatal(err)
	}
	var buf [10000]byte
	syn, _ := client.Transmit(time.Second, buf[:])
	server, _ = l.Receive(time.Second, syn, clientAddress, 0)
	grant, _ := server.Transmit(time.Second, buf[:])
	client.Receive(time.Second, grant, 0)
	ack, _ := client.Transmit(time.Second, buf[:])
	if _, fresh := l.Receive(time.Second, ack, clientAddress, 0); !fresh {
		t.Fatal("the handshake opened no connection")
	}
	return client, server
}

// arbitrary is a packet that can be read, with values near those of a connection.
func arbitrary(r *rand.Rand, c *Conn) (wire.Packet, []byte) {
	near := func(v int64) uint32 { return uint32(v + r.Int64N(5000) - pick[int64](r, 0, 100, 2500)) }
	size := 1 + r.IntN(300)
	body := make([]byte, size)
	p := wire.Packet{Kind: wire.Kind(3 + r.IntN(5)), Flags: uint8(r.IntN(8)), Number: uint32(c.in.largest + r.Int64N(5)),
		Seq: near(c.in.next), Index: uint8(r.IntN(254)), Size: uint16(size), Next: near(c.out.una), Limit: near(c.out.limit),
		Largest: uint32(c.out.largest + r.Int64N(3)), Received: uint32(c.out.received + r.Int64N(3))}
	if p.Kind == wire.Fin && r.IntN(200) > 0 { // after one there is not much to say
		p.Kind = wire.Data
	}
	switch p.Kind {
	case wire.Data:
		p.Index %= 8
		if r.IntN(4) == 0 {
			body = body[:1+r.IntN(size)]
		}
	case wire.FEC:
		p.Count = uint8(1 + r.IntN(int(p.Index)+1))
		p.Index = max(p.Index, p.Count)
		p.Last = uint16(1 + r.IntN(size))
	case wire.Ack:
		for range r.IntN(5) {
			p.AddRange(wire.Range{From: near(c.out.una), To: near(c.out.una)})
			p.AddBlock(wire.Block{Start: near(c.out.una), Got: uint8(r.IntN(256))})
		}
	}
	return p, body
}

// The other end may say anything with the right key: memory stays bounded, time
// goes on, and what is sent is what the application wrote.
func TestHostilePeer(t *testing.T) {
	const buffer = MinBuffer
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 3))
		_, c := pair(t, Config{Buffer: buffer})
		now := time.Second
		var buf, space [10000]byte
		for step := range 4000 {
			p, body := arbitrary(r, c)
			c.Receive(now, wire.Append(space[:0], &p, body, &c.theirs), uint8(r.IntN(4)))
			if over, err := c.Closed(); over && err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if _, err := c.Write(make([]byte, r.IntN(3000)), 20_000, r.IntN(2) == 0); err != nil {
				t.Fatal(err)
			}
			if r.IntN(4) == 0 {
				c.Read(space[:r.IntN(5000)])
			}
			sent := 0
			for b, _ := c.Transmit(now, buf[:]); b != nil; b, _ = c.Transmit(now, buf[:]) {
				if sent++; sent > 10_000 {
					t.Fatalf("seed %d, step %d: it does not stop to send", seed, step)
				}
			}
			now += time.Duration(r.Int64N(int64(50 * time.Millisecond)))
			if at, ok := c.Deadline(); ok && at <= now {
				c.Tick(now)
				if at, ok = c.Deadline(); ok && at <= now {
					t.Fatalf("seed %d: a deadline that has passed", seed)
				}
			}
			if held := c.Stats().Held; held > 3*buffer+2*wire.MaxPackets*LongestSegment {
				t.Fatalf("seed %d: %d bytes are held", seed, held)
			}
			if len(c.in.ranges) > 20_000 || len(c.in.waiting) > 20_000 || len(c.in.blocks) > mostBlocks || c.out.pipe < 0 {
				t.Fatalf("seed %d: %d ranges, %d waiting, %d blocks, %d under way", seed, len(c.in.ranges), len(c.in.waiting), len(c.in.blocks), c.out.pipe)
			}
		}
	}
}

// FuzzReceive gives a connection any bytes behind a check that matches.
func FuzzReceive(f *testing.F) {
	f.Add([]byte{1<<4 | byte(wire.Data), 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 7}, uint8(3))
	f.Add([]byte{1<<4 | byte(wire.Ack), 7, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0}, uint8(0))
	f.Fuzz(func(t *testing.T, b []byte, ecn uint8) {
		_, c := pair(t, Config{})
		if _, err := c.Write(make([]byte, 5000), 5000, false); err != nil {
			t.Fatal(err)
		}
		var buf [10000]byte
		for p, _ := c.Transmit(time.Second, buf[:]); p != nil; p, _ = c.Transmit(time.Second, buf[:]) {
		}
		b = wire.Seal(append([]byte(nil), b...), &c.theirs)
		for range 2 { // the second time the number is known
			c.Receive(2*time.Second, b, ecn)
			for p, _ := c.Transmit(2*time.Second, buf[:]); p != nil; p, _ = c.Transmit(2*time.Second, buf[:]) {
			}
		}
		if c.Stats().Held > len(b)*wire.MaxPackets {
			t.Fatalf("%d bytes are held of a packet of %d", c.Stats().Held, len(b))
		}
	})
}
