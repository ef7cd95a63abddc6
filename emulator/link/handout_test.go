package link

import (
	"math"
	"slices"
	"testing"
	"time"

	"linktrial/internal/radio"
)

// sendMany sends packets from client to server one after the other and returns what came
// out, with the counters of the last hop.
func sendMany(t *testing.T, n *radio.Network, seed uint64, packets int) (exits []Exit, duplicated, held, delivered int64) {
	t.Helper()
	l, err := New(n, seed)
	if err != nil {
		t.Fatal(err)
	}
	client, server := l.Node(radio.RoleClient), l.Node(radio.RoleServer)
	const every = 2 * time.Millisecond // longer than a packet takes
	for i := range packets {
		at := time.Duration(i) * every
		exits = append(exits, l.Advance(at)...)
		if !l.Enter(at, client, server, 100, uint32(i), false) {
			t.Fatalf("packet %d was not taken", i)
		}
	}
	for {
		at, more := l.NextEvent()
		if !more {
			break
		}
		if next, ok := l.NextExit(); !ok || next < at && next < 0 {
			t.Fatalf("the next exit is at %s, the next event at %s", next, at)
		}
		exits = append(exits, l.Advance(at)...)
	}
	if l.Inside() != 0 || len(l.handOut.held) != 0 {
		t.Fatalf("%d packets are inside, %d held", l.Inside(), len(l.handOut.held))
	}
	for _, h := range l.Hops() {
		if h.To == radio.RoleServer {
			duplicated, held, delivered = duplicated+h.DuplicatedPackets, held+h.HeldPackets, delivered+h.DeliveredPackets
		} else if h.DuplicatedPackets+h.HeldPackets != 0 {
			t.Errorf("%+v: it is no last hop", h)
		}
	}
	return exits, duplicated, held, delivered
}

func handing(r *radio.Reordering, d *radio.Duplication) *radio.Network {
	return &radio.Network{MTUBytes: 1500, Medium: radio.MediumFullDuplex, Queue: radio.Queue{Bytes: 1 << 20}, Reordering: r, Duplication: d,
		Nodes: []radio.Node{{Role: radio.RoleClient, Address: "10.77.0.1"}, {Role: radio.RoleRelay, Address: "10.77.0.2"}, {Role: radio.RoleServer, Address: "10.77.0.3"}},
		Links: []radio.Link{
			{A: radio.RoleClient, B: radio.RoleRelay, RateBitsPerSecond: 1e6, Delay: time.Millisecond, Channel: radio.Channel{Model: radio.ChannelPerfect}},
			{A: radio.RoleRelay, B: radio.RoleServer, RateBitsPerSecond: 1e6, Delay: time.Millisecond, Channel: radio.Channel{Model: radio.ChannelPerfect}},
		}}
}

// Shares are met, every packet comes out once beside its copies, a held one late by the
// delay and no other, and the same seed gives the same to the nanosecond.
func TestHandOut(t *testing.T) {
	const packets, hold = 20000, 9 * time.Millisecond
	plain, _, _, _ := sendMany(t, handing(nil, nil), 1, packets)
	due := make([]time.Duration, packets)
	for _, e := range plain {
		due[e.Handle] = e.At
	}
	for name, c := range map[string]struct{ reordered, duplicated float64 }{
		"neither": {0, 0}, "reordering": {0.05, 0}, "duplication": {0, 0.02}, "both": {0.1, 0.1}, "all": {1, 1},
	} {
		n := handing(&radio.Reordering{Share: c.reordered, Delay: hold}, &radio.Duplication{Share: c.duplicated})
		exits, duplicated, held, delivered := sendMany(t, n, 1, packets)
		again, _, _, _ := sendMany(t, n, 1, packets)
		if !slices.Equal(exits, again) {
			t.Errorf("%s: a repeat with the same seed differs", name)
		}
		if other, _, _, _ := sendMany(t, n, 2, packets); c.reordered > 0 && c.reordered < 1 && slices.Equal(exits, other) {
			t.Errorf("%s: another seed gives the same", name)
		}
		for what, x := range map[string]struct {
			got  int64
			want float64
		}{"held": {held, c.reordered}, "duplicated": {duplicated, c.duplicated}} {
			// Four standard deviations of a binomial share.
			if off := math.Abs(float64(x.got)/packets - x.want); off > 4*math.Sqrt(x.want*(1-x.want)/packets) {
				t.Errorf("%s: %d of %d packets %s, expected a share of %g", name, x.got, packets, what, x.want)
			}
		}
		seen, late, copies, overtaken := make([]int, packets), int64(0), int64(0), 0
		last := -1
		for _, e := range exits {
			if e.Copy {
				copies++
				if e.At != due[e.Handle] || seen[e.Handle] != 0 {
					t.Fatalf("%s: the copy of packet %d came out at %s, expected at %s and first", name, e.Handle, e.At, due[e.Handle])
				}
				continue
			}
			seen[e.Handle]++
			switch e.At - due[e.Handle] {
			case 0:
			case hold:
				late++
			default:
				t.Fatalf("%s: packet %d is late by %s", name, e.Handle, e.At-due[e.Handle])
			}
			if int(e.Handle) < last {
				overtaken++
			}
			last = max(last, int(e.Handle))
		}
		if slices.ContainsFunc(seen, func(n int) bool { return n != 1 }) || copies != duplicated || late != held || delivered != packets {
			t.Errorf("%s: %d copies of %d, %d late of %d, %d delivered", name, copies, duplicated, late, held, delivered)
		}
		// Packets that follow within the hold overtake; where all are held, none does.
		if some := c.reordered > 0 && c.reordered < 1; some != (overtaken > 0) {
			t.Errorf("%s: %d packets were overtaken", name, overtaken)
		}
	}
	neither, _, _, _ := sendMany(t, handing(&radio.Reordering{Delay: hold}, &radio.Duplication{}), 1, packets)
	if !slices.Equal(neither, plain) {
		t.Error("shares of 0 change something")
	}
}

func TestHandOutIsChecked(t *testing.T) {
	for _, n := range []*radio.Network{
		handing(&radio.Reordering{Share: 1.1}, nil), handing(&radio.Reordering{Share: math.NaN()}, nil), handing(&radio.Reordering{Delay: -1}, nil),
		handing(nil, &radio.Duplication{Share: -0.1}), handing(nil, &radio.Duplication{Share: math.NaN()}),
	} {
		if Check(n) == nil {
			t.Errorf("%+v %+v is taken", n.Reordering, n.Duplication)
		}
	}
}
