package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"linktrial/emulator/link"
	"linktrial/internal/radio"
	"linktrial/protocols/contract"
	"linktrial/protocols/probe/pattern"
	"linktrial/protocols/probe/wire"
)

// air is an emulated network between the two ends of a probe, in the time of a bubble.
type air struct {
	mu      sync.Mutex
	network *link.Network
	begin   time.Time
	mtu     int
	swallow int // packets larger than this vanish on the way; 0: none
	header  int
	timer   *time.Timer
	data    map[uint32][]byte
	next    uint32
	ends    map[int]*airEnd
}

type airEnd struct {
	air      *air
	from, to int
	in       chan airPacket
	deadline time.Time
	heard    func(b []byte) // of each datagram that arrives; nil: nothing
}

type airPacket struct {
	b  []byte
	at int64
}

func newAir(t *testing.T, n *radio.Network, seed uint64) (*air, *airEnd, *airEnd) {
	t.Helper()
	l, err := link.New(n, seed)
	if err != nil {
		t.Fatal(err)
	}
	a := &air{network: l, begin: time.Now(), mtu: n.MTUBytes, header: 28, data: map[uint32][]byte{}, ends: map[int]*airEnd{}}
	a.timer = time.AfterFunc(time.Hour, a.wake)
	c, s := l.Node(radio.RoleClient), l.Node(radio.RoleServer)
	for _, e := range []*airEnd{{air: a, from: c, to: s}, {air: a, from: s, to: c}} {
		e.in = make(chan airPacket, 1<<16)
		a.ends[e.from] = e
	}
	return a, a.ends[c], a.ends[s]
}

func (a *air) wake() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.advance()
}

// advance hands out what has left the network.
func (a *air) advance() {
	for _, x := range a.network.Advance(time.Since(a.begin)) {
		b := a.data[x.Handle]
		delete(a.data, x.Handle)
		if x.Outcome == link.Delivered {
			a.ends[x.Node].in <- airPacket{b, a.begin.Add(x.At).UnixNano()}
		}
	}
	if at, ok := a.network.NextEvent(); ok {
		a.timer.Reset(time.Until(a.begin.Add(at)))
	}
}

func (e *airEnd) Write(b []byte) (int, error) {
	a := e.air
	time.Sleep(30 * time.Microsecond) // as sending takes
	a.mu.Lock()
	defer a.mu.Unlock()
	size := len(b) + a.header
	if size > a.mtu {
		return 0, syscall.EMSGSIZE
	}
	a.advance()
	if a.swallow > 0 && size > a.swallow {
		return len(b), nil
	}
	if a.network.Enter(time.Since(a.begin), e.from, e.to, size, a.next, false) {
		a.data[a.next] = append([]byte(nil), b...)
		a.next++
	}
	a.advance()
	return len(b), nil
}

func (e *airEnd) receive(b []byte) (int, int64, error) {
	if !e.deadline.After(time.Now()) {
		select {
		case p := <-e.in:
			return copy(b, p.b), p.at, nil
		default:
			return 0, 0, os.ErrDeadlineExceeded
		}
	}
	timer := time.NewTimer(time.Until(e.deadline))
	defer timer.Stop()
	select {
	case p := <-e.in:
		return copy(b, p.b), p.at, nil
	case <-timer.C:
		return 0, 0, os.ErrDeadlineExceeded
	}
}

func (e *airEnd) SetReadDeadline(t time.Time) error { e.deadline = t; return nil }
func (e *airEnd) Close() error                      { return nil }

// steps keeps the samples of a search.
type steps struct{ all []*contract.Sample }

func (s *steps) Sample(_ string, x *contract.Sample) { s.all = append(s.all, x) }

// measured runs one search over a network, in its own time.
func measured(t *testing.T, n *radio.Network, seed uint64, lasts time.Duration, swallow int) (p *contract.ProbeMetrics, took time.Duration, s *steps) {
	t.Helper()
	return probed(t, n, seed, lasts, func(from, _ *airEnd) { from.air.swallow = swallow }, map[string]any{"pattern": pattern.Capacity})
}

// probed runs one probe over a network, in its own time.
func probed(t *testing.T, n *radio.Network, seed uint64, lasts time.Duration, change func(from, to *airEnd), options map[string]any) (p *contract.ProbeMetrics, took time.Duration, s *steps) {
	t.Helper()
	a, from, to := newAir(t, n, seed)
	defer a.timer.Stop()
	change(from, to)
	id := contract.TransferID{7}
	params := &contract.Parameters{Options: options}
	spec, err := pattern.Read(params.Options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() { receiving(ctx, newReceiver(params, spec, wire.NewKey(id, seed), false), to) })
	s = &steps{}
	x := &sender{id: id.String(), key: wire.NewKey(id, seed), conn: from, out: s, lasts: lasts, header: 28, interval: time.Hour}
	begin := time.Now()
	p, err = x.run(ctx, nil, spec)
	took = time.Since(begin)
	cancel()
	wait.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return p, took, s
}

// receiving is the end that measures, as a server does.
func receiving(ctx context.Context, r *receiver, conn *airEnd) {
	b := make([]byte, 64<<10)
	var values []byte
	for ctx.Err() == nil {
		_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		n, at, err := conn.receive(b)
		if err == nil {
			if conn.heard != nil {
				conn.heard(b[:n])
			}
			r.packet(b[:n], at)
			if answer, _ := r.answer(b[:n]); answer != nil {
				_, _ = conn.Write(answer)
			}
			if r.end(b[:n]) && values != nil {
				_, _ = conn.Write(values)
			}
		}
		if values == nil && r.over(time.Now()) {
			values = r.key.Metrics(r.metrics())
			_, _ = conn.Write(values)
		}
	}
}

// lineOf is a network of one hop, or with a relay of two that share a medium.
func lineOf(rate float64, delay time.Duration, loss float64, queue int, relay bool) *radio.Network {
	n := &radio.Network{MTUBytes: 1500, Medium: radio.MediumFullDuplex, FrameOverheadBytes: 40, Queue: radio.Queue{Bytes: queue}}
	roles := []radio.Role{radio.RoleClient, radio.RoleServer}
	if relay {
		roles = []radio.Role{radio.RoleClient, radio.RoleRelay, radio.RoleServer}
		n.Medium, n.Turnaround = radio.MediumShared, time.Millisecond
	}
	for i, r := range roles {
		n.Nodes = append(n.Nodes, radio.Node{Role: r})
		if i > 0 {
			c := radio.Channel{Model: radio.ChannelPerfect}
			if loss > 0 {
				c = radio.Channel{Model: radio.ChannelUniform, Loss: loss}
			}
			n.Links = append(n.Links, radio.Link{A: roles[i-1], B: r, RateBitsPerSecond: rate, Delay: delay, Channel: c})
		}
	}
	return n
}

// carries is what a network carries of IP packets of a size in bit/s, as sent. What the
// first hop loses takes no time on the second one.
func carries(n *radio.Network, bytes int) float64 {
	each, share := 0.0, 1.0
	for i := range n.Links {
		each += share * (float64(8*(bytes+n.FrameOverheadBytes))/n.Links[i].RateBitsPerSecond + n.Turnaround.Seconds())
		share *= 1 - n.Links[i].Channel.Loss
	}
	if n.Medium != radio.MediumShared {
		each /= float64(len(n.Links))
	}
	return float64(8*bytes) / each
}

// TestCapacityOfEmulatedRadios: the capacity is within 3 % of what the radio carries of
// packets of this size, in bounded time, and no step makes packets wait for long.
func TestCapacityOfEmulatedRadios(t *testing.T) {
	for _, rate := range []float64{16e3, 64e3, 2e6, 37e6} {
		for _, delay := range []time.Duration{30 * time.Millisecond, 500 * time.Millisecond} {
			for _, loss := range []float64{0, 0.01, 0.1} {
				for _, queue := range []int{64 << 10, 256 << 10} {
					for _, relay := range []bool{false, true} {
						if relay && (rate > 2e6 || queue > 64<<10) {
							continue // in the time that tests have
						}
						t.Run(fmt.Sprintf("%.0f kbit/s, %s, loss %.2f, queue %d KiB, relay %t", rate/1e3, delay, loss, queue>>10, relay), func(t *testing.T) {
							t.Parallel()
							synctest.Test(t, func(t *testing.T) { expectCapacity(t, lineOf(rate, delay, loss, queue, relay), rate, loss, relay) })
						})
					}
				}
			}
		}
	}
}

func expectCapacity(t *testing.T, n *radio.Network, rate, loss float64, relay bool) {
	t.Helper()
	lasts := 20 * time.Second
	if rate < 2e6 || relay {
		lasts = 4 * time.Minute
	}
	p, took, s := measured(t, n, 11, lasts, 0)
	c := p.Capacity
	if c == nil {
		t.Fatalf("no capacity: %+v", p)
	}
	want := carries(n, int(c.PacketBytes))
	arrived := float64(c.HeldReceived) / float64(c.HeldSent)
	worst := time.Duration(0)
	for _, x := range s.all {
		worst = max(worst, time.Duration(x.More["search_queue_delay_us"]*1e3))
	}
	t.Logf("%+v\nwant %.0f (times %.3f that arrived): maximum %.4f, mean %.4f, sent %.4f, bottleneck %.4f; took %s, at most %s in the queue", *c, want, arrived,
		float64(c.MaximumBPS)/want/arrived, float64(c.MeanBPS)/want/arrived, float64(c.RateBPS)/want, float64(c.BottleneckBPS)/want, took, worst)
	near := 0.03
	if relay && loss >= 0.1 { // how long the medium is busy is by chance, as losses on the first hop are: 1.5 % of 100 packets
		near = 0.06
	}
	off := func(bps int64, want float64) float64 { return math.Abs(float64(bps)/want - 1) }
	if off(c.MeanBPS, want*arrived) > near || off(c.RateBPS, want) > near || off(c.BottleneckBPS, want) > 0.1 {
		t.Errorf("expected %.0f bit/s within %.0f %%", want, 100*near)
	}
	if loss == 0 && off(c.MaximumBPS, want) > near { // the maximum is also that of the chance by which packets are lost
		t.Errorf("maximum: expected %.0f bit/s within %.0f %%", want, 100*near)
	}
	if c.End != contract.CapacityFound && loss < 0.1 || c.LargestPayloadBytes != 1472 {
		t.Errorf("ended with %s, largest payload %d", c.End, c.LargestPayloadBytes)
	}
	if took > lasts+5*time.Second {
		t.Errorf("took %s of %s", took, lasts)
	}
	if worst > 5*time.Second {
		t.Errorf("packets waited for %s", worst)
	}
	if got, err := contract.ParseEvent(eventOf(t, p)); err != nil || got.Result.Probe.Capacity == nil {
		t.Errorf("%v", err)
	}
}

// eventOf is the line of a driver with these metrics.
func eventOf(t *testing.T, p *contract.ProbeMetrics) []byte {
	t.Helper()
	b, err := json.Marshal(&contract.Event{Event: contract.KindResult, Transfer: contract.TransferID{7}.String(), Result: &contract.Result{SizeBytes: p.SentBytes, Probe: p}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestCapacityInTime: a search that a short time bounds ends with what it knows.
func TestCapacityInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := lineOf(16e3, 500*time.Millisecond, 0, 256<<10, false)
		p, took, _ := measured(t, n, 1, 20*time.Second, 0)
		if c := p.Capacity; c == nil || c.End != contract.CapacityTime || took > 23*time.Second || math.Abs(float64(c.BottleneckBPS)/carries(n, int(c.PacketBytes))-1) > 0.2 {
			t.Errorf("%+v, %s", c, took)
		}
	})
}

// TestLargestPayload: the largest payload is that of the node's own limit, or of a way that
// swallows larger packets without a word.
func TestLargestPayload(t *testing.T) {
	for _, c := range []struct{ mtu, swallow, want int }{{1000, 0, 972}, {1500, 1280, 1252}, {9000, 0, 8972}, {9000, 4000, 3972}, {60000, 0, 8972}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := lineOf(2e6, 30*time.Millisecond, 0, 256<<10, false)
				n.MTUBytes = c.mtu
				p, _, _ := measured(t, n, 1, time.Minute, c.swallow)
				if p.Capacity == nil || p.Capacity.LargestPayloadBytes != int64(c.want) || p.Capacity.End != contract.CapacityFound || p.Capacity.PayloadBytes > int64(c.want) {
					t.Errorf("%+v, expected %d", p.Capacity, c.want)
				}
			})
		})
	}
}

// TestCapacityHighest: a search does not exceed the rate that it may have.
func TestCapacityHighest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _, _ := measured(t, lineOf(1e9, 10*time.Millisecond, 0, 8<<20, false), 1, 8*time.Second, 0)
		if c := p.Capacity; c == nil || c.End != contract.CapacityHighest || math.Abs(float64(c.MaximumBPS)/200e6-1) > 0.01 || c.HighBPS != 0 {
			t.Errorf("%+v", c)
		}
	})
}
