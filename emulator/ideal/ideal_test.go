package ideal

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"linktrial/emulator/link"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
)

const ms = time.Millisecond

// network is nodes in a chain; 8 kbit/s, so that a byte takes a millisecond;
// 128-byte packets, so that 100 bytes of payload fit.
func network(medium radio.Medium, roles ...radio.Role) *radio.Network {
	n := &radio.Network{MTUBytes: 128, Medium: medium}
	for i, r := range roles {
		n.Nodes = append(n.Nodes, radio.Node{Role: r})
		if i > 0 {
			n.Links = append(n.Links, radio.Link{A: roles[i-1], B: r, RateBitsPerSecond: 8000, Delay: 50 * ms,
				Channel: radio.Channel{Model: radio.ChannelPerfect}})
		}
	}
	return n
}

func chain(m radio.Medium) *radio.Network {
	return network(m, radio.RoleClient, radio.RoleRelay, radio.RoleServer)
}

func pair(m radio.Medium) *radio.Network { return network(m, radio.RoleClient, radio.RoleServer) }

func flow(bytes int64) radiocontrol.Flow {
	return radiocontrol.Flow{From: radio.RoleClient, To: radio.RoleServer, SizeBytes: bytes}
}

func compute(t testing.TB, n *radio.Network, seed uint64, bytes int64) time.Duration {
	t.Helper()
	return times(t, n, seed, bytes).Ideal
}

func times(t testing.TB, n *radio.Network, seed uint64, bytes int64) Times {
	t.Helper()
	d, err := Compute(n, seed, flow(bytes), radiocontrol.IdealHorizon, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestByHand(t *testing.T) {
	with := func(n *radio.Network, change func(*radio.Network)) *radio.Network {
		change(n)
		return n
	}
	turn := func(n *radio.Network) { n.Turnaround = 60 * ms }
	for _, tc := range []struct {
		name  string
		n     *radio.Network
		bytes int64
		want  time.Duration
	}{
		{"nothing: the acknowledgement alone", pair(radio.MediumFullDuplex), 0, 29*ms + 50*ms},
		{"one byte", pair(radio.MediumFullDuplex), 1, 29*ms + 50*ms + 29*ms + 50*ms},
		{"one full packet", pair(radio.MediumFullDuplex), 100, 128*ms + 50*ms + 79*ms},
		{"one byte more takes another packet", pair(radio.MediumFullDuplex), 101, 128*ms + 29*ms + 50*ms + 79*ms},
		{"frame overhead in each packet and the acknowledgement",
			with(pair(radio.MediumFullDuplex), func(n *radio.Network) { n.FrameOverheadBytes = 10 }), 200, 2*138*ms + 50*ms + 39*ms + 50*ms},
		{"half duplex: the delay is longer than the turnaround", with(pair(radio.MediumHalfDuplex), func(n *radio.Network) { n.Turnaround = 20 * ms }), 100, 128*ms + 50*ms + 79*ms},
		{"half duplex: the turnaround is longer than the delay", with(pair(radio.MediumHalfDuplex), turn), 100, 128*ms + 60*ms + 79*ms},
		{"full duplex knows no turnaround", with(pair(radio.MediumFullDuplex), turn), 100, 128*ms + 50*ms + 79*ms},
		{"relay, full duplex: hops overlap", chain(radio.MediumFullDuplex), 300, 3*128*ms + 50*ms + 128*ms + 50*ms + 2*79*ms},
		{"relay, half duplex", with(chain(radio.MediumHalfDuplex), turn), 300, 3*128*ms + 50*ms + 128*ms + 60*ms + 2*79*ms},
		{"relay, full duplex: the slow hop decides",
			with(chain(radio.MediumFullDuplex), func(n *radio.Network) { n.Links[1].RateBitsPerSecond = 4000 }), 300,
			128*ms + 50*ms + 3*256*ms + 50*ms + 58*ms + 50*ms + 79*ms},
		// 2·128 client, 2·128 relay, 50 delay, then the way back.
		{"relay, shared: every hop costs airtime", chain(radio.MediumShared), 200, 4*128*ms + 50*ms + 2*79*ms},
		// One packet must arrive at the relay before it goes on.
		{"relay, shared: one packet", chain(radio.MediumShared), 100, 2*(128+50)*ms + 2*79*ms},
		// 256 client, turn, 256 relay, turn 60 > delay 50, server 29, turn, relay 29, delay.
		{"relay, shared, turnaround: turned once on the way there", with(chain(radio.MediumShared), turn), 200,
			(256+60+256+60+29)*ms + 60*ms + 29*ms + 50*ms},
		{"dead channel", with(pair(radio.MediumFullDuplex), func(n *radio.Network) {
			n.Links[0].Channel = radio.Channel{Model: radio.ChannelUniform, Loss: 1}
		}), 100, 0},
		{"dead channel behind a relay", with(chain(radio.MediumShared), func(n *radio.Network) {
			n.Links[1].Channel = radio.Channel{Model: radio.ChannelGilbertElliott, GoodToBad: 0.1, LossBad: 1}
		}), 100, 0},
		{"more than fits into the horizon", pair(radio.MediumFullDuplex), 1 << 60, 0},
	} {
		if got := compute(t, tc.n, 1, tc.bytes); got != tc.want {
			t.Errorf("%s: %s, expected %s", tc.name, got, tc.want)
		}
	}
}

// brute tries every order in which the hops of a shared two-hop route can
// send, each transmission at its first good moment, millisecond by millisecond.
func brute(t *testing.T, n *radio.Network, seed uint64, packets int) time.Duration {
	t.Helper()
	const steps = 60_000
	air := link.Airtime(n, &n.Links[0], n.MTUBytes)
	ackAir := link.Airtime(n, &n.Links[0], 29)
	route := []radio.Role{radio.RoleClient, radio.RoleRelay, radio.RoleServer}
	good := func(link_, from, to int, air time.Duration) []bool {
		line, err := link.NewLine(n, &n.Links[link_], route[from], route[to], seed)
		if err != nil {
			t.Fatal(err)
		}
		ok := make([]bool, steps)
		for i := range ok {
			at := time.Duration(i) * ms
			lost, _ := line.Process.Foresee(at, at+air, 0)
			ok[i] = !lost
		}
		return ok
	}
	there := [2][]bool{good(0, 0, 1, air), good(1, 1, 2, air)}
	back := [2][]bool{good(1, 2, 1, ackAir), good(0, 1, 0, ackAir)}
	first := func(ok []bool, from time.Duration) time.Duration {
		i := int((from + ms - 1) / ms)
		for ; !ok[i]; i++ {
		}
		return time.Duration(i) * ms
	}
	best := time.Duration(0)
	arrived := make([]time.Duration, packets)
	var search func(sent [2]int, free time.Duration, last int)
	search = func(sent [2]int, free time.Duration, last int) {
		if best > 0 && free >= best {
			return
		}
		if sent[1] == packets {
			ready := max(free+n.Links[1].Delay, free+n.Turnaround)
			for i := range back {
				at := first(back[i], ready)
				ready = max(at+ackAir+n.Links[1-i].Delay, at+ackAir+n.Turnaround)
				if i == 1 {
					ready = at + ackAir + n.Links[0].Delay
				}
			}
			if best == 0 || ready < best {
				best = ready
			}
			return
		}
		for h := range 2 {
			if sent[h] == packets || h == 1 && sent[1] == sent[0] {
				continue
			}
			ready := free
			if last >= 0 && last != h {
				ready += n.Turnaround
			}
			if h == 1 {
				ready = max(ready, arrived[sent[1]])
			}
			end := first(there[h], ready) + air
			next := sent
			next[h]++
			if h == 0 {
				arrived[sent[0]] = end + n.Links[0].Delay
			}
			search(next, end, h)
		}
	}
	search([2]int{}, 0, -1)
	return best
}

func TestSharedAgainstBruteForce(t *testing.T) {
	var worst, sum float64
	exact, cases := 0, 0
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 3))
		n := chain(radio.MediumShared)
		for i := range n.Links {
			n.Links[i].Channel = radio.Channel{Model: radio.ChannelGilbertElliott, GoodToBad: 0.02 + 0.3*r.Float64(), BadToGood: 0.1 + 0.5*r.Float64(), LossBad: 1}
		}
		plain := seed%3 == 0
		for i := range n.Links {
			n.Links[i].Delay = time.Duration(r.IntN(100)) * ms
			if plain {
				n.Links[i].Delay = 0
			}
		}
		if !plain {
			n.Turnaround = time.Duration(r.IntN(100)) * ms
		}
		packets := 1 + r.IntN(6)
		got, want := compute(t, n, seed, int64(packets)*100), brute(t, n, seed, packets)
		if got < want {
			t.Errorf("seed %d, %d packets: %s, but no schedule is faster than %s", seed, packets, got, want)
		}
		over := float64(got)/float64(want) - 1
		if plain && got != want {
			t.Errorf("seed %d, %d packets without turnaround and delay: %s, the best is %s", seed, packets, got, want)
		}
		// Stated in the package comment: a few packets' time.
		if limit := 4 * (128*ms + n.Turnaround); got-want > limit {
			t.Errorf("seed %d, %d packets: %s, the best is %s", seed, packets, got, want)
		}
		cases++
		sum += over
		worst = max(worst, over)
		if got == want {
			exact++
		}
	}
	t.Logf("%d of %d exact; mean excess %.3f %%, worst %.1f %%", exact, cases, 100*sum/float64(cases), 100*worst)
}

// A sender that pushes full-sized packets as fast as its queue takes them, with
// immediate and free knowledge of every loss, is a real transfer as good as they come.
func TestNoTransferBeatsIdeal(t *testing.T) {
	for seed := range uint64(90) {
		r := rand.New(rand.NewPCG(seed, 8))
		n := chain([]radio.Medium{radio.MediumFullDuplex, radio.MediumHalfDuplex, radio.MediumShared}[seed%3])
		n.Turnaround = time.Duration(r.IntN(2)*7) * ms
		for i := range n.Links {
			n.Links[i].Channel = radio.Channel{Model: radio.ChannelGilbertElliott, GoodToBad: 0.05, BadToGood: 0.2, LossGood: 0.01, LossBad: r.Float64(), Slot: time.Duration(r.IntN(3)) * 500 * ms}
		}
		const packets = 40
		ideal := compute(t, n, seed, packets*100)
		took := eager(t, n, seed, packets)
		if ideal > took || ideal <= 0 {
			t.Errorf("seed %d %s: ideal %s, a sender took %s", seed, n.Medium, ideal, took)
		}
		var air time.Duration
		for i := range n.Links {
			air += packets * link.Airtime(n, &n.Links[i], n.MTUBytes)
		}
		if n.Medium != radio.MediumShared {
			air /= 2
		}
		if ideal < air {
			t.Errorf("seed %d: ideal %s is less than %s on the air", seed, ideal, air)
		}
	}
}

// eager keeps two packets in the source's radio and sends a lost one again at once.
func eager(t *testing.T, n *radio.Network, seed uint64, packets int) time.Duration {
	l, err := link.New(n, seed)
	if err != nil {
		t.Fatal(err)
	}
	todo := make([]uint32, packets)
	for i := range todo {
		todo[i] = uint32(i)
	}
	inside, delivered, now := 0, 0, time.Duration(0)
	for {
		for inside < 3 && len(todo) > 0 {
			l.Enter(now, 0, len(n.Nodes)-1, n.MTUBytes, todo[0], false)
			todo = todo[1:]
			inside++
		}
		next, ok := l.NextEvent()
		if !ok {
			t.Fatal("nothing more happens")
		}
		now = next
		for _, e := range l.Advance(now) {
			if e.Handle == uint32(packets) { // the acknowledgement
				if e.Outcome == link.Delivered {
					return e.At
				}
				l.Enter(now, len(n.Nodes)-1, 0, 29, e.Handle, false)
				continue
			}
			inside--
			if e.Outcome == link.Delivered {
				if delivered++; delivered == packets {
					l.Enter(now, len(n.Nodes)-1, 0, 29, uint32(packets), false)
				}
			} else {
				todo = append(todo, e.Handle)
			}
		}
	}
}

func TestRefusesAndCancels(t *testing.T) {
	n := chain(radio.MediumShared)
	if _, err := Compute(n, 1, radiocontrol.Flow{From: radio.RoleClient, To: "moon"}, time.Hour, nil); err == nil {
		t.Error("a flow to nowhere was accepted")
	}
	if _, err := Compute(n, 1, flow(-1), time.Hour, nil); err == nil {
		t.Error("a negative size was accepted")
	}
	n.Links[0].Channel = radio.Channel{Model: radio.ChannelUniform, Loss: 1 - 1e-12}
	if _, err := Compute(n, 1, flow(100), radiocontrol.IdealHorizon, func() bool { return true }); !errors.Is(err, ErrCancelled) {
		t.Errorf("cancelled: %v", err)
	}
	n.MTUBytes = 1
	if _, err := Compute(n, 1, flow(1), time.Hour, nil); err == nil {
		t.Error("a bad network was accepted")
	}
}

func BenchmarkSharedMebibyte(b *testing.B) {
	n := chain(radio.MediumShared)
	n.MTUBytes = 1500
	for i := range n.Links {
		n.Links[i].RateBitsPerSecond = 2e6
		n.Links[i].Channel = radio.Channel{Model: radio.ChannelGilbertElliott, GoodToBad: 0.01, BadToGood: 0.1, LossBad: 1}
	}
	for range b.N {
		compute(b, n, 1, 1<<20)
	}
}
