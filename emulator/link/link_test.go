package link

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"linktrial/internal/radio"
)

const ms = time.Millisecond

// network is nodes in a chain; 8 kbit/s, so that a byte takes a millisecond.
func network(medium radio.Medium, roles ...radio.Role) *radio.Network {
	n := &radio.Network{MTUBytes: 1000, Medium: medium}
	for i, r := range roles {
		n.Nodes = append(n.Nodes, radio.Node{Role: r})
		if i > 0 {
			n.Links = append(n.Links, radio.Link{
				A: roles[i-1], B: r, RateBitsPerSecond: 8000, Delay: 50 * ms,
				Channel: radio.Channel{Model: radio.ChannelPerfect},
			})
		}
	}
	return n
}

func chain(medium radio.Medium) *radio.Network {
	return network(medium, radio.RoleClient, radio.RoleRelay, radio.RoleServer)
}

func pair(medium radio.Medium) *radio.Network {
	return network(medium, radio.RoleClient, radio.RoleServer)
}

func build(t testing.TB, n *radio.Network, seed uint64) *Network {
	t.Helper()
	l, err := New(n, seed)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

type entry struct {
	at       time.Duration
	from, to int
	bytes    int
}

type exit struct {
	at      time.Duration
	handle  uint32
	outcome Outcome
}

// play lets packets in and waits for all to leave, event by event.
func play(t testing.TB, l *Network, in []entry) (out []exit, refused []uint32) {
	t.Helper()
	take := func(now time.Duration) {
		for _, e := range l.Advance(now) {
			out = append(out, exit{e.At, e.Handle, e.Outcome})
		}
	}
	for i, e := range in {
		for {
			at, ok := l.NextEvent()
			if !ok || at > e.at {
				break
			}
			take(at)
		}
		if !l.Enter(e.at, e.from, e.to, e.bytes, uint32(i), false) {
			refused = append(refused, uint32(i))
		}
	}
	for {
		at, ok := l.NextEvent()
		if !ok {
			break
		}
		take(at)
	}
	if l.Inside() != 0 {
		t.Fatalf("%d packets inside a network with no events", l.Inside())
	}
	return out, refused
}

func TestTiming(t *testing.T) {
	const client, relay, server = 0, 1, 2
	with := func(n *radio.Network, change func(*radio.Network)) *radio.Network {
		change(n)
		return n
	}
	for _, tc := range []struct {
		name string
		n    *radio.Network
		in   []entry
		want []exit
	}{
		{"one packet: airtime and delay", pair(radio.MediumFullDuplex),
			[]entry{{7 * ms, client, 1, 100}},
			[]exit{{157 * ms, 0, Delivered}}},
		{"back to back: the second waits for the first", pair(radio.MediumFullDuplex),
			[]entry{{0, client, 1, 100}, {0, client, 1, 100}, {90 * ms, client, 1, 10}},
			[]exit{{150 * ms, 0, Delivered}, {250 * ms, 1, Delivered}, {260 * ms, 2, Delivered}}},
		{"frame overhead costs airtime", with(pair(radio.MediumFullDuplex), func(n *radio.Network) { n.FrameOverheadBytes = 20 }),
			[]entry{{0, client, 1, 100}},
			[]exit{{170 * ms, 0, Delivered}}},
		{"full duplex: directions do not disturb each other", pair(radio.MediumFullDuplex),
			[]entry{{0, client, 1, 100}, {10 * ms, 1, client, 100}},
			[]exit{{150 * ms, 0, Delivered}, {160 * ms, 1, Delivered}}},
		{"half duplex: the other direction waits, and the radio turns", with(pair(radio.MediumHalfDuplex), func(n *radio.Network) { n.Turnaround = 5 * ms }),
			[]entry{{0, client, 1, 100}, {10 * ms, 1, client, 100}},
			[]exit{{150 * ms, 0, Delivered}, {255 * ms, 1, Delivered}}},
		{"no turnaround where the medium lay idle long enough", with(pair(radio.MediumHalfDuplex), func(n *radio.Network) { n.Turnaround = 5 * ms }),
			[]entry{{0, client, 1, 100}, {103 * ms, 1, client, 10}, {200 * ms, client, 1, 10}},
			[]exit{{150 * ms, 0, Delivered}, {165 * ms, 1, Delivered}, {260 * ms, 2, Delivered}}},
		{"no turnaround for the same transmitter", with(pair(radio.MediumHalfDuplex), func(n *radio.Network) { n.Turnaround = 5 * ms }),
			[]entry{{0, client, 1, 100}, {0, client, 1, 100}},
			[]exit{{150 * ms, 0, Delivered}, {250 * ms, 1, Delivered}}},
		{"relay, full duplex: hops overlap", chain(radio.MediumFullDuplex),
			[]entry{{0, client, server, 100}, {0, client, server, 100}},
			[]exit{{300 * ms, 0, Delivered}, {400 * ms, 1, Delivered}}},
		{"relay, half duplex: links do not disturb each other", with(chain(radio.MediumHalfDuplex), func(n *radio.Network) { n.Turnaround = 5 * ms }),
			[]entry{{0, client, server, 100}, {0, client, server, 100}},
			[]exit{{300 * ms, 0, Delivered}, {400 * ms, 1, Delivered}}},
		// 0–100 client, 100–200 client (packet 0 is still on its way),
		// 200–300 relay, 300–400 relay.
		{"relay, shared: each hop costs airtime", chain(radio.MediumShared),
			[]entry{{0, client, server, 100}, {0, client, server, 100}},
			[]exit{{350 * ms, 0, Delivered}, {450 * ms, 1, Delivered}}},
		// 0–100 client, 100–200 client, turn, 205–305 relay, turn, 310–410
		// client, turn, 415–515 relay, 515–615 relay.
		{"shared: radios take turns, each with a turnaround", with(chain(radio.MediumShared), func(n *radio.Network) { n.Turnaround = 5 * ms }),
			[]entry{{0, client, server, 100}, {0, client, server, 100}, {0, client, server, 100}},
			[]exit{{355 * ms, 0, Delivered}, {565 * ms, 1, Delivered}, {665 * ms, 2, Delivered}}},
		// 0–100 client; then relay's turn, then server's, then client's again.
		{"shared: the turn goes round all radios", chain(radio.MediumShared),
			[]entry{{0, client, relay, 100}, {1 * ms, client, relay, 100}, {2 * ms, server, relay, 100}, {3 * ms, relay, client, 100}},
			[]exit{{150 * ms, 0, Delivered}, {250 * ms, 3, Delivered}, {350 * ms, 2, Delivered}, {450 * ms, 1, Delivered}}},
		// The relay's packets for two directions leave in the order they came.
		{"shared: one queue for all of a radio's links", chain(radio.MediumShared),
			[]entry{{0, client, relay, 100}, {1 * ms, relay, server, 100}, {2 * ms, relay, client, 100}},
			[]exit{{150 * ms, 0, Delivered}, {250 * ms, 1, Delivered}, {350 * ms, 2, Delivered}}},
	} {
		out, refused := play(t, build(t, tc.n, 1), tc.in)
		if !slices.Equal(out, tc.want) || len(refused) > 0 {
			t.Errorf("%s:\n got %v, refused %v\nwant %v", tc.name, out, refused, tc.want)
		}
	}
}

// A caller that wakes late and in other steps gets the same moments.
func TestLateCallerGetsSameTimes(t *testing.T) {
	n := chain(radio.MediumShared)
	n.Turnaround = 3 * ms
	n.Queue = radio.Queue{Packets: 4}
	for i := range n.Links {
		n.Links[i].Channel = radio.Channel{Model: radio.ChannelUniform, Loss: 0.2}
	}
	r := rand.New(rand.NewPCG(1, 2))
	var in []entry
	at := time.Duration(0)
	for range 500 {
		at += time.Duration(r.IntN(int(300 * ms)))
		from := r.IntN(3)
		in = append(in, entry{at, from, (from + 1 + r.IntN(2)) % 3, 1 + r.IntN(400)})
	}
	want, wantRefused := play(t, build(t, n, 9), in)
	l := build(t, n, 9)
	var got []exit
	var refused []uint32
	for i, e := range in {
		if !l.Enter(e.at, e.from, e.to, e.bytes, uint32(i), false) {
			refused = append(refused, uint32(i))
		}
		if i%37 == 0 || i == len(in)-1 {
			now := e.at
			if i == len(in)-1 {
				now = e.at + time.Hour
			}
			for _, x := range l.Advance(now) {
				got = append(got, exit{x.At, x.Handle, x.Outcome})
			}
		}
	}
	if !slices.Equal(got, want) || !slices.Equal(refused, wantRefused) {
		t.Errorf("a late caller gets other exits (%d, %d refused) than a punctual one (%d, %d refused)", len(got), len(refused), len(want), len(wantRefused))
	}
}

func TestQueueBounds(t *testing.T) {
	n := pair(radio.MediumFullDuplex)
	var in []entry
	for range 6 {
		in = append(in, entry{0, 0, 1, 100})
	}
	n.Queue = radio.Queue{Packets: 2}
	_, refused := play(t, build(t, n, 1), in)
	if want := []uint32{3, 4, 5}; !slices.Equal(refused, want) { // one on the air, two waiting
		t.Errorf("queue of 2 packets refused %v, expected %v", refused, want)
	}
	n.MTUBytes = 100
	n.Queue = radio.Queue{Bytes: 399}
	l := build(t, n, 1)
	_, refused = play(t, l, in)
	if want := []uint32{4, 5}; !slices.Equal(refused, want) {
		t.Errorf("queue of 399 bytes refused %v, expected %v", refused, want)
	}
	h := l.Hops()[0]
	if h.SentPackets != 4 || h.SentBytes != 400 || h.DroppedPackets != 2 || h.DeliveredPackets != 4 || h.DeliveredBytes != 400 ||
		h.MaxQueueBytes != 300 || h.QueueDelayMax != 300*ms || h.Airtime != 400*ms {
		t.Errorf("counters %+v", h)
	}
}

func TestRelayDropsWhenItsQueueIsFull(t *testing.T) {
	n := chain(radio.MediumFullDuplex)
	n.Links[1].RateBitsPerSecond = 800 // ten times slower onward
	n.Queue = radio.Queue{Packets: 1}
	in := []entry{{0, 0, 2, 100}, {100 * ms, 0, 2, 100}, {200 * ms, 0, 2, 100}, {300 * ms, 0, 2, 100}}
	l := build(t, n, 1)
	out, refused := play(t, l, in)
	want := []exit{{350 * ms, 2, Dropped}, {450 * ms, 3, Dropped}, {1200 * ms, 0, Delivered}, {2200 * ms, 1, Delivered}}
	if !slices.Equal(out, want) || len(refused) > 0 {
		t.Errorf("got %v, refused %v, expected %v", out, refused, want)
	}
	if h := l.Hops()[2]; h.From != radio.RoleRelay || h.To != radio.RoleServer || h.DroppedPackets != 2 {
		t.Errorf("counters of the relay's hop %+v", h)
	}
}

func TestBusyShareAndAirtimeOfAnUnfinishedTransmission(t *testing.T) {
	l := build(t, chain(radio.MediumShared), 1)
	l.Enter(100*ms, 0, 2, 100, 0, false)
	l.Advance(150 * ms)
	if h := l.Hops()[0]; h.Airtime != 50*ms {
		t.Errorf("airtime %s in the middle of a packet, expected 50ms", h.Airtime)
	}
	if b := l.BusyShare(); math.Abs(b-50.0/150) > 1e-9 {
		t.Errorf("busy share %g, expected 1/3", b)
	}
	l.Advance(400 * ms) // 100–200 client, 250–350 relay
	if b := l.BusyShare(); math.Abs(b-0.5) > 1e-9 {
		t.Errorf("busy share %g, expected 0.5", b)
	}
	if b := build(t, pair(radio.MediumFullDuplex), 1).BusyShare(); b != 0 {
		t.Errorf("busy share %g before the start", b)
	}
}

// Every packet is delivered, lost, dropped or inside; once each.
func TestConservation(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := chain([]radio.Medium{radio.MediumFullDuplex, radio.MediumHalfDuplex, radio.MediumShared}[seed%3])
		n.Turnaround = time.Duration(r.IntN(3)) * ms
		n.Queue = radio.Queue{Packets: r.IntN(8), Bytes: []int{0, 1000, 5000}[r.IntN(3)]}
		for i := range n.Links {
			n.Links[i].RateBitsPerSecond = []float64{8000, 16000, 37e6}[r.IntN(3)]
			n.Links[i].Channel = radio.Channel{Model: radio.ChannelGilbertElliott, GoodToBad: 0.1, BadToGood: 0.2, LossBad: r.Float64(), LossGood: 0.01}
		}
		l := build(t, n, seed)
		perHop := map[Outcome]int64{}
		l.Observe(func(e Event) { perHop[e.Outcome]++ })
		state := map[uint32]string{}
		now, entered, refused, handle := time.Duration(0), 0, 0, uint32(0)
		check := func() {
			last := time.Duration(-1)
			for _, e := range l.Advance(now) {
				if state[e.Handle] != "inside" {
					t.Fatalf("seed %d: packet %d leaves, but is %q", seed, e.Handle, state[e.Handle])
				}
				if e.At < last || e.At > now {
					t.Fatalf("seed %d: exit at %s after one at %s, now %s", seed, e.At, last, now)
				}
				last = e.At
				state[e.Handle] = "left"
				entered--
			}
			if entered != l.Inside() {
				t.Fatalf("seed %d: %d packets inside, expected %d", seed, l.Inside(), entered)
			}
		}
		for range 2000 {
			now += time.Duration(r.ExpFloat64() * float64(40*ms))
			from := r.IntN(3)
			handle++
			state[handle] = "refused"
			if l.Enter(now, from, (from+1+r.IntN(2))%3, 20+r.IntN(980), handle, false) {
				state[handle] = "inside"
				entered++
			} else {
				refused++
			}
			if r.IntN(3) == 0 {
				check()
			}
		}
		now += 100 * time.Hour
		check()
		if entered != 0 {
			t.Fatalf("seed %d: %d packets never leave", seed, entered)
		}
		var sent, lost, delivered, dropped int64
		var air time.Duration
		for _, h := range l.Hops() {
			if h.SentPackets != h.LostPackets+h.DeliveredPackets {
				t.Errorf("seed %d: counters do not add up: %+v", seed, h)
			}
			sent, lost, delivered, dropped = sent+h.SentPackets, lost+h.LostPackets, delivered+h.DeliveredPackets, dropped+h.DroppedPackets
			air += h.Airtime
		}
		if perHop[Delivered] != delivered || perHop[Lost] != lost || perHop[Dropped] != dropped {
			t.Errorf("seed %d: observed %v, counted %d delivered, %d lost, %d dropped", seed, perHop, delivered, lost, dropped)
		}
		if n.Medium == radio.MediumShared && air > now {
			t.Errorf("seed %d: %s on the air in %s", seed, air, now)
		}
	}
}

// Two treatments that send at the same moments meet the same fates, whatever
// else each has sent before.
func TestSameTimeSameLoss(t *testing.T) {
	n := pair(radio.MediumFullDuplex)
	n.Links[0].Channel = radio.Channel{Model: radio.ChannelGilbertElliott, GoodToBad: 0.1, BadToGood: 0.3, LossBad: 0.9, LossGood: 0.05}
	fates := func(seed uint64, every int) map[time.Duration]Outcome {
		var in []entry
		for i := 0; i < 2000; i += every {
			in = append(in, entry{time.Duration(i) * time.Second, 0, 1, 1000})
			in = append(in, entry{time.Duration(i) * time.Second, 1, 0, 40 * every}) // the way back differs
		}
		l, got := build(t, n, seed), map[time.Duration]Outcome{}
		l.Observe(func(e Event) {
			if e.Hop == 0 {
				got[e.At] = e.Outcome
			}
		})
		play(t, l, in)
		return got
	}
	all, some, other := fates(5, 1), fates(5, 3), fates(6, 1)
	for at, o := range some {
		if all[at] != o {
			t.Fatalf("at %s: %v for the one, %v for the other", at, all[at], o)
		}
	}
	same := 0
	for at, o := range all {
		if other[at] == o {
			same++
		}
	}
	if same == len(all) {
		t.Error("another seed gives the same realisation")
	}
}

func TestNoAllocationPerPacket(t *testing.T) {
	n := chain(radio.MediumShared)
	n.Queue = radio.Queue{Packets: 50}
	n.Links[0].Channel = radio.Channel{Model: radio.ChannelGilbertElliott, GoodToBad: 0.1, BadToGood: 0.2, LossBad: 1}
	l := build(t, n, 1)
	now := time.Duration(0)
	step := func() {
		now += 90 * ms
		l.Enter(now, 0, 2, 100, 0, false)
		l.Enter(now, 2, 0, 40, 0, false)
		l.NextEvent()
		l.Advance(now)
	}
	for range 1000 {
		step()
	}
	if a := testing.AllocsPerRun(5000, step); a != 0 {
		t.Errorf("%g allocations a packet, expected none", a)
	}
}

func TestNewReportsEverythingWrong(t *testing.T) {
	n := chain("simplex")
	n.MTUBytes, n.Turnaround, n.FrameOverheadBytes, n.Queue.Bytes = 20, -1, -1, -1
	n.Nodes = append(n.Nodes, n.Nodes[0])
	n.Links[0].RateBitsPerSecond, n.Links[0].Delay, n.Links[0].Channel.Model = math.NaN(), -1, "fog"
	n.Links[1].Back = &radio.Channel{Model: "sleet"}
	n.Framing, n.FEC, n.ARQ, n.Access, n.Queue.RED = &radio.Framing{}, &radio.FEC{}, &radio.ARQ{Persistence: -1}, &radio.Access{}, &radio.RED{}
	n.Links = append(n.Links, n.Links[0], radio.Link{A: "moon", B: "moon"})
	_, err := New(n, 1)
	if err == nil {
		t.Fatal("accepted")
	}
	for _, w := range []string{"MTU", "simplex", "turnaround", "overhead", "queue", "two nodes", "rate is NaN", "delay", "fog", "sleet", "framing", "correction", "ARQ", "access", "RED", "twice", "moon"} {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not name %q", err, w)
		}
	}
}

func TestUnroutable(t *testing.T) {
	n := chain(radio.MediumShared)
	n.Links = n.Links[:1]
	l := build(t, n, 1)
	if l.Routable(0, 2) || l.Routable(1, 1) || !l.Routable(1, 0) || l.Node(radio.RoleServer) != 2 || l.Node("moon") != -1 {
		t.Error("routes are not those of the links")
	}
}

func BenchmarkSharedRelay(b *testing.B) {
	n := chain(radio.MediumShared)
	n.Links[0].Channel = radio.Channel{Model: radio.ChannelGilbertElliott, GoodToBad: 0.01, BadToGood: 0.1, LossBad: 1}
	l := build(b, n, 1)
	b.ReportAllocs()
	for i := range b.N {
		now := time.Duration(i) * 250 * ms
		l.Enter(now, 0, 2, 100, 0, false)
		l.Advance(now)
	}
}
